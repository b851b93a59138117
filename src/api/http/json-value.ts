import { InvalidInputError } from "../../domain/errors/errors.ts";

/** More than the nesting of any forge's events, and little enough for every recursive function. */
const deepest = 64;

/**
 * Limits the nesting of a value, so that recursive functions don't overflow the stack.
 * @throws InvalidInputError
 */
export function checkNesting(value: unknown, name: string): void {
  const left: { value: unknown; depth: number }[] = [{ value, depth: 0 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value: inner, depth } = next;
    if (depth > deepest) throw new InvalidInputError(`${name} is nested deeper than ${deepest} levels`);
    if (typeof inner !== "object" || inner === null) continue;
    for (const item of Object.values(inner)) left.push({ value: item, depth: depth + 1 });
  }
}

/** Characters that all numbers of one value may take in the database, which stores them without exponents. */
const longestNumbers = 1024 * 1024;

/**
 * Checks that the database can store a JSON value that a client sent: no NUL, no unpaired surrogates, and not much
 * larger than it was sent. `1e308` has 5 characters, but takes 309 in the database: a body of such numbers became 50
 * MB, for which a trigger took 4 s and a worker 8 s.
 * @throws InvalidInputError with the path of the problem
 */
export function checkJsonValue(value: unknown, name: string): void {
  const left: { value: unknown; path: string }[] = [{ value, path: name }];
  let digits = 0;
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value: inner, path } = next;
    if (typeof inner === "string") checkString(inner, path);
    if (typeof inner === "number") digits += lengthWrittenOut(inner);
    if (digits > longestNumbers) {
      throw new InvalidInputError(`${name} has too many numbers with a large exponent: write them as strings`);
    }
    if (typeof inner !== "object" || inner === null) continue;
    for (const [key, item] of Object.entries(inner)) {
      checkString(key, `a name in ${path}`);
      left.push({ value: item, path: Array.isArray(inner) ? `${path}[${key}]` : `${path}.${key}` });
    }
  }
}

/** Length of a number without an exponent. */
function lengthWrittenOut(value: number): number {
  const [mantissa = "", exponent = "0"] = String(value).split("e");
  return mantissa.length + Math.abs(Number(exponent));
}

function checkString(value: string, path: string): void {
  if (value.includes("\0")) throw new InvalidInputError(`${path.slice(0, 200)} must not contain NUL (U+0000)`);
  if (!value.isWellFormed()) {
    throw new InvalidInputError(`${path.slice(0, 200)} must be valid Unicode: it has half of a surrogate pair`);
  }
}
