import { storable } from "../domain/fields/text.ts";

/** Possible NUL or half of a surrogate pair, which JSON can only have escaped. */
const unstorable = /\\u(?:0000|d[89a-f])/iu;

/**
 * A value that was parsed from JSON, with texts and names that PostgreSQL can store: NUL and halves of surrogate pairs are replaced.
 * @param value of which the nesting was checked: it is walked by recursion
 * @param json what it was parsed from
 */
export function withStorableTexts(value: unknown, json: string): unknown {
  return unstorable.test(json) ? stored(value) : value;
}

function stored(value: unknown): unknown {
  if (typeof value === "string") return storable(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(stored);
  // fromEntries defines what is named `__proto__` like any other field.
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [storable(name), stored(inner)]));
}
