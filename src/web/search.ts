import { isUuid } from "../domain/fields/uuid.ts";

/** One of these values from an address; undefined: another, or none. */
export function oneOf<Value extends string>(values: readonly Value[], given: unknown): Value | undefined {
  return values.find((value) => value === given);
}

/** A text from an address; undefined: none. */
export function textOf(given: unknown): string | undefined {
  return typeof given === "string" ? given : undefined;
}

/** A UUID from an address; undefined: something else, or none. */
export function uuidOf(given: unknown): string | undefined {
  return typeof given === "string" && isUuid(given) ? given : undefined;
}

/** A day such as `2030-01-31` from an address; undefined: something else, or none. */
export function dayOf(given: unknown): string | undefined {
  return typeof given === "string" && /^\d{4}-\d\d-\d\d$/u.test(given) ? given : undefined;
}
