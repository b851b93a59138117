import type { Figures, Insight } from "../../domain/insight/insight.ts";
import type { InsightDimension } from "../../domain/insight/dimension.ts";
import { formatDollars, formatDuration, formatNumber, formatPercent, formatTenths } from "../texts/formats.ts";
import { useInsightTexts, type InsightTexts } from "../texts/insight.ts";
import { useInsightFilter } from "./filter.ts";

interface ColumnOf {
  readonly name: keyof InsightTexts["figures"];
  of(figures: Figures): string;
}

const orNothing = (value: number | null, format: (value: number) => string): string =>
  value === null ? "–" : format(value);

const columns: readonly ColumnOf[] = [
  { name: "sessions", of: ({ sessions }) => formatNumber(sessions) },
  { name: "failed", of: ({ failed }) => formatNumber(failed) },
  { name: "pullRequests", of: ({ pullRequests }) => formatNumber(pullRequests) },
  { name: "shareMerged", of: ({ shareMerged }) => orNothing(shareMerged, formatPercent) },
  { name: "openingP50Ms", of: ({ openingP50Ms }) => orNothing(openingP50Ms, formatDuration) },
  { name: "mergingP50Ms", of: ({ mergingP50Ms }) => orNothing(mergingP50Ms, formatDuration) },
  { name: "reviewRounds", of: ({ reviewRounds }) => orNothing(reviewRounds, formatTenths) },
  { name: "waitP50Ms", of: ({ waitP50Ms }) => orNothing(waitP50Ms, formatDuration) },
  { name: "costUsd", of: ({ costUsd }) => formatDollars(costUsd) },
  { name: "costPerMergedUsd", of: ({ costPerMergedUsd }) => orNothing(costPerMergedUsd, formatDollars) },
];

/** The figures of each group: a group's name leads to its figures over time. */
export function Groups({ insight, dimension }: { insight: Insight; dimension: InsightDimension }) {
  const texts = useInsightTexts();
  const [, change] = useInsightFilter();
  return (
    <section aria-label={texts.dimensions[dimension]} className="space-y-2">
      <h2 className="label">{texts.dimensions[dimension]}</h2>
      <section className="card overflow-x-auto" tabIndex={0} aria-label={texts.groupsName}>
        <table className="w-full text-end text-sm tabular-nums">
          <thead>
            <tr className="text-xs text-muted">
              <th scope="col" className="px-3 text-start font-medium">
                {texts.dimensions[dimension]}
              </th>
              {columns.map(({ name }) => (
                <th key={name} scope="col" className="px-3 py-2 text-end font-medium">
                  {texts.figures[name]}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {insight.groups.map((group) => (
              <tr key={group.key} className="border-t border-line">
                <th scope="row" className="max-w-64 truncate px-3 py-1.5 text-start font-normal">
                  <button
                    type="button"
                    dir="auto"
                    className="max-w-full cursor-pointer truncate text-accent hover:underline"
                    onClick={() => change({ key: group.key })}
                  >
                    {groupName(group, dimension, texts)}
                  </button>
                </th>
                {columns.map(({ name, of }) => (
                  <td key={name} className="px-3 whitespace-nowrap">
                    {of(group)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {insight.groupsLeftOut && <p className="text-xs text-muted">{texts.moreGroups}</p>}
    </section>
  );
}

/** The name of a group. An unknown id is its own name. */
export function groupName(
  { key, name }: { readonly key: string; readonly name: string | null },
  dimension: InsightDimension,
  { noGroup }: InsightTexts,
): string {
  if (name !== null) return name;
  if (key !== "") return key;
  return dimension === "automation" ? noGroup.automation : noGroup.other;
}
