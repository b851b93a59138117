import { InvalidArgumentError } from "commander";

/** Parses an amount of US dollars; null: none. */
export function parseDollars(value: string): number | null {
  if (value === "none") return null;
  const dollars = Number(value);
  if (value.trim() === "" || !Number.isFinite(dollars) || dollars < 0) {
    throw new InvalidArgumentError("must be an amount such as 2.50, or none.");
  }
  return dollars;
}
