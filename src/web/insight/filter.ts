import { useNavigate, useSearch } from "@tanstack/react-router";
import type { z } from "zod";
import type { InsightDimension } from "../../domain/insight/dimension.ts";
import type { insightQuerySchema } from "../../domain/insight/insight.ts";
import { searchOfPage } from "../elements/search-of-page.ts";

/** Periods until today that can be chosen beside the usual one of 30 days, in days. */
export const choiceOfDays = [7, 90, 365] as const;
const usualDays = 30;

/** The filter of figures, as in the page's address. */
export interface InsightFilter {
  /** So many days until today; undefined: 30, or from `from` to `to`. */
  readonly days?: (typeof choiceOfDays)[number] | undefined;
  /** Days such as `2030-01-31`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Undefined: by day. */
  readonly by?: "week" | undefined;
  readonly group?: InsightDimension | undefined;
  /** Only this one of `group`. */
  readonly key?: string | undefined;
  readonly repository?: string | undefined;
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** The request to the API. */
export function questionOf(filter: InsightFilter, now: Date): z.input<typeof insightQuerySchema> {
  const { days, from, to, by, group, key, repository } = filter;
  const first = dayOf(now.getTime() - ((days ?? usualDays) - 1) * 24 * 3_600_000);
  return {
    ...(from === undefined && to === undefined ? { from: first, to: dayOf(now.getTime()) } : { from, to }),
    by: by ?? "day",
    groupBy: group,
    key: group === undefined ? undefined : key,
    repositoryId: repository,
  };
}

/** The filter of the address, and what changes it. */
export function useInsightFilter(): [InsightFilter, (changes: InsightFilter) => void] {
  const given = useSearch({ from: "/insight", shouldThrow: false });
  const filter = searchOfPage(given);
  const navigate = useNavigate();
  return [
    filter,
    // Undefined values are removed from the address.
    (changes) => void navigate({ to: "/insight", search: { ...filter, ...changes }, replace: true }),
  ];
}
