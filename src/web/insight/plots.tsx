import { lazy, Suspense, useMemo, useState } from "react";
import type { Figures, Insight } from "../../domain/insight/insight.ts";
import { Icon } from "../elements/icon.tsx";
import {
  formatCompact,
  formatDollars,
  formatDuration,
  formatNumber,
  formatPercent,
  formatTenths,
  formatUtcDay,
} from "../texts/formats.ts";
import { useInsightTexts, type InsightTexts } from "../texts/insight.ts";
import { requireLocale } from "../texts/language.ts";
import type { PlottedSeries } from "./plot.tsx";

const Plot = lazy(async () => {
  // uPlot makes a format of numbers when it is loaded.
  requireLocale();
  const { Plot: component } = await import("./plot.tsx");
  return { default: component };
});

type Name = keyof InsightTexts["figures"];

/** One plot's values for each period. */
interface PlotOf {
  readonly name: keyof InsightTexts["plots"];
  /** Bars are stacked; a line has separate values, and none if there are no data. */
  readonly kind: "bars" | "lines";
  readonly series: readonly {
    readonly name: Name;
    readonly colour: PlottedSeries["colour"];
    of(figures: Figures): number | null;
  }[];
  readonly format: (value: number) => string;
}

const figure = (name: Exclude<Name, "open">, colour: PlottedSeries["colour"]) =>
  ({ name, colour, of: (figures: Figures): number | null => figures[name] }) as const;

const plots: readonly PlotOf[] = [
  {
    name: "sessions",
    kind: "bars",
    series: [
      figure("completed", "good"),
      figure("failed", "bad"),
      figure("cancelled", "edge"),
      figure("underWay", "accent"),
    ],
    format: formatNumber,
  },
  {
    name: "pullRequests",
    kind: "bars",
    series: [
      figure("merged", "merged"),
      figure("closed", "bad"),
      {
        name: "open",
        colour: "good",
        of: ({ pullRequests, merged, closed }) => pullRequests - merged - closed,
      },
    ],
    format: formatNumber,
  },
  { name: "shareMerged", kind: "lines", series: [figure("shareMerged", "merged")], format: formatPercent },
  {
    name: "times",
    kind: "lines",
    series: [figure("openingP50Ms", "accent"), figure("mergingP50Ms", "merged"), figure("waitP50Ms", "warn")],
    format: formatDuration,
  },
  { name: "reviewRounds", kind: "lines", series: [figure("reviewRounds", "accent")], format: formatTenths },
  {
    name: "tokens",
    kind: "bars",
    series: [figure("inputTokens", "accent"), figure("cacheReadTokens", "edge"), figure("outputTokens", "good")],
    format: formatCompact,
  },
  { name: "cost", kind: "bars", series: [figure("costUsd", "accent")], format: formatDollars },
  { name: "costPerMerged", kind: "lines", series: [figure("costPerMergedUsd", "merged")], format: formatDollars },
];

/** The figures over time, as plots, each of which is a table too. @param csv address of all of them as a file */
export function Plots({ insight, csv }: { insight: Insight; csv: string }) {
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      {plots.map((plot) => (
        <PlotFigure key={plot.name} plot={plot} insight={insight} csv={csv} />
      ))}
    </div>
  );
}

function PlotFigure({ plot, insight, csv }: { plot: PlotOf; insight: Insight; csv: string }) {
  const texts = useInsightTexts();
  /** The period under the pointer. */
  const [pointed, setPointed] = useState<number | null>(null);
  const { periods, total, by } = insight;
  const { name, kind, series, format } = plot;
  // The same while the pointer moves: else each move would redraw everything.
  const days = useMemo(() => periods.map(({ from }) => from), [periods]);
  const values = useMemo(
    () => series.map(({ colour, of }) => ({ colour, values: periods.map(of) })),
    [series, periods],
  );
  const shown = pointed === null ? undefined : periods[pointed];
  const nameOf = (from: string): string => (by === "week" ? texts.week(formatUtcDay(from)) : formatUtcDay(from));
  return (
    <figure className="card min-w-0 space-y-2 p-3">
      <figcaption className="flex flex-wrap items-baseline gap-x-4 gap-y-1 text-sm">
        <span className="me-auto">
          <span className="font-medium">{texts.plots[name]}</span>{" "}
          <span className="text-xs text-muted">{shown === undefined ? "" : nameOf(shown.from)}</span>
        </span>
        {series.map((each, index) => (
          <span key={each.name} className="flex items-baseline gap-1.5 text-xs">
            <Swatch colour={each.colour} isDashed={kind === "lines" && index > 0} />
            <span className="text-muted">{texts.figures[each.name]}</span>
            <span className="tabular-nums">{valueOf(each.of(shown ?? total), format)}</span>
          </span>
        ))}
      </figcaption>
      <Suspense fallback={<div className="h-44 animate-pulse rounded bg-sunken" />}>
        <Plot kind={kind} days={days} series={values} format={format} onPoint={setPointed} />
      </Suspense>
      <FigureTable plot={plot} insight={insight} nameOf={nameOf} csv={csv} />
    </figure>
  );
}

const swatches: Readonly<Record<PlottedSeries["colour"], string>> = {
  accent: "border-accent",
  good: "border-good",
  bad: "border-bad",
  warn: "border-warn",
  merged: "border-merged",
  edge: "border-edge",
};

function Swatch({ colour, isDashed }: { colour: PlottedSeries["colour"]; isDashed: boolean }) {
  return (
    <span
      aria-hidden
      className={`inline-block w-3.5 self-center border-t-4 ${swatches[colour]} ${isDashed ? "border-dashed" : ""}`}
    />
  );
}

/** A plot's values as a table, the newest period first; with the file of all. */
function FigureTable({
  plot: { name, series, format },
  insight: { periods, total, by },
  nameOf,
  csv,
}: {
  plot: PlotOf;
  insight: Insight;
  nameOf: (from: string) => string;
  csv: string;
}) {
  const texts = useInsightTexts();
  const [isOpen, setIsOpen] = useState(false);
  const rows = [
    ...periods.toReversed().map((figures) => ({ name: nameOf(figures.from), figures })),
    { name: texts.all, figures: total },
  ];
  return (
    <details className="text-xs" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary className="w-fit cursor-pointer text-muted hover:text-ink">
        {texts.table}
        <span className="sr-only">: {texts.plots[name]}</span>
      </summary>
      {isOpen && (
        <section className="mt-2 max-h-64 overflow-auto" tabIndex={0} aria-label={texts.plots[name]}>
          <table className="w-full text-end tabular-nums">
            <thead>
              <tr className="text-muted">
                <th scope="col" className="py-0.5 text-start font-medium">
                  {by === "week" ? texts.weekHeading : texts.day}
                </th>
                {series.map((each) => (
                  <th key={each.name} scope="col" className="ps-3 text-end font-medium">
                    {texts.figures[each.name]}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.name} className="border-t border-line">
                  <th scope="row" className="py-0.5 text-start font-normal whitespace-nowrap">
                    {row.name}
                  </th>
                  {series.map((each) => (
                    <td key={each.name} className="ps-3">
                      {valueOf(each.of(row.figures), format)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {isOpen && (
        <a href={csv} download className="mt-2 inline-flex items-center gap-1 text-accent underline">
          <Icon name="download" className="size-3.5" />
          {texts.csv}
        </a>
      )}
    </details>
  );
}

function valueOf(value: number | null, format: (value: number) => string): string {
  return value === null ? "–" : format(value);
}
