import type { Figures } from "../../domain/insight/insight.ts";
import { formatDollars, formatDuration, formatNumber, formatPercent, formatTenths } from "../texts/formats.ts";
import { useInsightTexts } from "../texts/insight.ts";

const orNothing = (value: number | null, format: (value: number) => string): string =>
  value === null ? "–" : format(value);

/** The figures of the whole time. */
export function Totals({ total }: { total: Figures }) {
  const { figures: names, nineInTen } = useInsightTexts();
  const inTime = (p90Ms: number | null): string => (p90Ms === null ? "" : nineInTen(formatDuration(p90Ms)));
  return (
    <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line sm:grid-cols-4">
      <Total
        name={names.sessions}
        value={formatNumber(total.sessions)}
        more={`${names.failed}: ${formatNumber(total.failed)}`}
      />
      <Total
        name={names.shareMerged}
        value={orNothing(total.shareMerged, formatPercent)}
        more={`${formatNumber(total.merged)} / ${formatNumber(total.pullRequests)}`}
      />
      <Total
        name={names.openingP50Ms}
        value={orNothing(total.openingP50Ms, formatDuration)}
        more={inTime(total.openingP90Ms)}
      />
      <Total
        name={names.mergingP50Ms}
        value={orNothing(total.mergingP50Ms, formatDuration)}
        more={inTime(total.mergingP90Ms)}
      />
      <Total name={names.waitP50Ms} value={orNothing(total.waitP50Ms, formatDuration)} more={inTime(total.waitP90Ms)} />
      <Total name={names.reviewRounds} value={orNothing(total.reviewRounds, formatTenths)} more="" />
      <Total name={names.costUsd} value={formatDollars(total.costUsd)} more="" />
      <Total name={names.costPerMergedUsd} value={orNothing(total.costPerMergedUsd, formatDollars)} more="" />
    </dl>
  );
}

function Total({ name, value, more }: { name: string; value: string; more: string }) {
  return (
    <div className="bg-surface p-3">
      <dt className="text-xs text-muted">{name}</dt>
      <dd>
        <span className="text-lg font-semibold tabular-nums">{value}</span>
        <span className="block min-h-4 text-xs text-muted">{more}</span>
      </dd>
    </div>
  );
}
