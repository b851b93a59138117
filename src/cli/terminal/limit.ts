import { InvalidArgumentError } from "commander";

/** Parses a number of entries. */
export function parseLimit(value: string): number {
  const limit = Number(value);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) throw new InvalidArgumentError("must be 1 to 100.");
  return limit;
}
