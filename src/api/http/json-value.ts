import { InvalidInputError } from "../../domain/errors/errors.ts";
import { lengthWrittenOut } from "../../domain/fields/written-numbers.ts";

/** More than the nesting of any forge's events, and little enough for every recursive function. */
const deepest = 64;

/**
 * Calls `visit` with each value in a JSON value, itself included, and with its name if it has one in an object. Without recursion, so
 * that no nesting overflows the stack.
 * @throws InvalidInputError if it is nested too deep
 */
function walk(value: unknown, name: string, visit: (inner: unknown, key: string | null) => void): void {
  const left: { readonly container: object; readonly depth: number }[] = [];
  const enter = (inner: unknown, key: string | null, depth: number): void => {
    if (depth > deepest) throw new InvalidInputError(`${name} is nested deeper than ${deepest} levels`);
    visit(inner, key);
    if (typeof inner === "object" && inner !== null) left.push({ container: inner, depth });
  };
  enter(value, null, 0);
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { container, depth } = next;
    if (Array.isArray(container)) for (const item of container) enter(item, null, depth + 1);
    else for (const key of Object.keys(container)) enter((container as Record<string, unknown>)[key], key, depth + 1);
  }
}

/**
 * Limits the nesting of a value, so that recursive functions don't overflow the stack.
 * @throws InvalidInputError
 */
export function checkNesting(value: unknown, name: string): void {
  walk(value, name, () => undefined);
}

/**
 * Whether the database can store a JSON value as it is, as nearly all: no NUL, no unpaired surrogates, and not much larger than it was
 * sent. `1e308` has 5 characters, but takes 309 in the database: a body of such numbers became 50 MB, for which a trigger took 4 s and a
 * worker 8 s.
 * @throws InvalidInputError if it is nested too deep
 */
export function isStorableJson(value: unknown, name: string): boolean {
  let digits = 0;
  let areTexts = true;
  walk(value, name, (inner, key) => {
    if (typeof inner === "string") areTexts &&= isStorableText(inner);
    else if (typeof inner === "number") digits += lengthWrittenOut(inner);
    if (key !== null) areTexts &&= isStorableText(key);
  });
  return areTexts && digits <= longestNumbers;
}

const isStorableText = (text: string): boolean => text.isWellFormed() && !text.includes("\0");

/** Characters that all numbers of one value may take in the database, which stores them without exponents. */
const longestNumbers = 1024 * 1024;

/**
 * Checks that the database can store a JSON value that a client sent, see `isStorableJson`.
 * @throws InvalidInputError with the path of the problem
 */
export function checkJsonValue(value: unknown, name: string): void {
  if (isStorableJson(value, name)) return;
  checkTexts(value, name);
  throw new InvalidInputError(`${name} has too many numbers with a large exponent: write them as strings`);
}

/** @param value whose nesting was checked */
function checkTexts(value: unknown, path: string): void {
  if (typeof value === "string") checkText(value, path);
  if (typeof value !== "object" || value === null) return;
  const isList = Array.isArray(value);
  for (const [key, item] of Object.entries(value)) {
    if (!isList) checkText(key, `a name in ${path}`);
    checkTexts(item, isList ? `${path}[${key}]` : `${path}.${key}`);
  }
}

function checkText(value: string, path: string): void {
  if (value.includes("\0")) throw new InvalidInputError(`${path.slice(0, 200)} must not contain NUL (U+0000)`);
  if (!value.isWellFormed()) {
    throw new InvalidInputError(`${path.slice(0, 200)} must be valid Unicode: it has half of a surrogate pair`);
  }
}
