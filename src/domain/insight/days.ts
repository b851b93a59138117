import { InvalidInputError } from "../errors/errors.ts";
import { mostInsightDays, type InsightQuery } from "./insight.ts";

/** Days of UTC, each as `2030-01-31`, both included. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

const dayMs = 24 * 3_600_000;
const usualDays = 30;

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
const msOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);

/**
 * The days that are asked for.
 * @throws InvalidInputError if they end before they begin, or are too many
 */
export function daysOf({ from, to }: Pick<InsightQuery, "from" | "to">, now: Date): DayRange {
  const last = to ?? dayOf(now.getTime());
  const first = from ?? dayOf(msOf(last) - (usualDays - 1) * dayMs);
  const count = (msOf(last) - msOf(first)) / dayMs + 1;
  if (count < 1) throw new InvalidInputError(`from: must not be after the last day, ${last}`);
  if (count > mostInsightDays)
    throw new InvalidInputError(`from: must be at most ${mostInsightDays} days before the end`);
  return { from: first, to: last };
}

/** The first days of the periods of a time. The first period begins with the time itself, and others of a week on Mondays. */
export function periodsOf({ from, to }: DayRange, by: InsightQuery["by"]): string[] {
  const periods: string[] = [];
  for (let day = msOf(from); day <= msOf(to); day += dayMs) {
    if (by === "day" || periods.length === 0 || new Date(day).getUTCDay() === 1) periods.push(dayOf(day));
  }
  return periods;
}
