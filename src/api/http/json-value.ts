import { InvalidInputError } from "../../domain/errors.ts";

/** Deeper than any event of a forge, and shallow enough for every reader of it. */
const deepest = 64;

/** Whether whatever walks the value can do so on its stack. @throws InvalidInputError */
export function checkNesting(value: unknown, name: string): void {
  const left: { value: unknown; depth: number }[] = [{ value, depth: 0 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value: inner, depth } = next;
    if (depth > deepest) throw new InvalidInputError(`${name} is nested deeper than ${deepest} levels`);
    if (typeof inner !== "object" || inner === null) continue;
    for (const item of Object.values(inner)) left.push({ value: item, depth: depth + 1 });
  }
}

/** Characters that the numbers of one value may take in the database, which writes all of their digits out. */
const longestNumbers = 1024 * 1024;

/**
 * Whether the database can keep a JSON value that a client sent: no NUL, no half of a surrogate pair, and no more than it
 * was sent as: `1e308` has 5 characters, and comes back with 309. A body of nothing else became 50 MB, for which a trigger
 * took 4 s and a worker 8 s.
 * @throws InvalidInputError naming where the problem is
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

/** Without an exponent. */
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
