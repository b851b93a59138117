import { useEffect, useEffectEvent, useRef, useSyncExternalStore } from "react";
import UPlot from "uplot";
import "./plot.css";
import { currentPreferences, onPreferences } from "../shell/preferences.ts";
import { formatShortUtcDay } from "../texts/formats.ts";
import { currentLanguage, onLanguage } from "../texts/language.ts";

/** Values of one thing, one for each period. */
export interface PlottedSeries {
  readonly colour: "accent" | "good" | "bad" | "warn" | "merged" | "edge";
  /** Null: there are no data for this period. */
  readonly values: readonly (number | null)[];
}

const height = 176;
const day = 86_400;
const dashes = [[], [6, 3], [2, 3]] as const;

interface PlotProps {
  readonly kind: "bars" | "lines";
  /** First days of the periods, ascending, such as `2030-01-31`. */
  readonly days: readonly string[];
  readonly series: readonly PlottedSeries[];
  readonly format: (value: number) => string;
  /** Called with the period under the pointer; null: none is. */
  readonly onPoint: (index: number | null) => void;
}

/**
 * A plot of values over time, with the width of its container. Screen readers skip it: beside it are the values of the
 * whole time, and a table.
 */
export function Plot(props: PlotProps) {
  const { theme, contrast } = useSyncExternalStore(onPreferences, currentPreferences);
  const isDark = useSyncExternalStore(onScheme, () => matchMedia(darkScheme).matches);
  const language = useSyncExternalStore(onLanguage, currentLanguage);
  // Another theme or language redraws it.
  return <Drawing key={`${theme} ${contrast} ${isDark} ${language}`} {...props} />;
}

function Drawing({ kind, days, series, format, onPoint }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const point = useEffectEvent(onPoint);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const options = optionsOf(element, { kind, days, series, format, onPoint: point });
    const plot = new UPlot(options, dataOf({ kind, days, series }), element);
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [kind, days, series, format]);
  return <div ref={place} aria-hidden className="w-full overflow-hidden" style={{ height }} />;
}

const darkScheme = "(prefers-color-scheme: dark)";

function onScheme(listener: () => void): () => void {
  const query = matchMedia(darkScheme);
  query.addEventListener("change", listener);
  return () => query.removeEventListener("change", listener);
}

/** Bars are stacked; the uppermost is drawn first, so that each covers the rest. */
function dataOf({ kind, days, series }: Pick<PlotProps, "kind" | "days" | "series">): UPlot.AlignedData {
  const times = days.map((each) => Date.parse(each) / 1_000);
  if (kind === "lines") return [times, ...series.map(({ values }) => [...values])];
  const below = days.map(() => 0);
  const tops = series.map(({ values }) =>
    values.map((value, index) => (below[index] = (below[index] ?? 0) + (value ?? 0))),
  );
  return [times, ...tops.toReversed()];
}

function optionsOf(element: HTMLElement, { kind, days, series, format, onPoint }: PlotProps): UPlot.Options {
  const [ink, line] = [colourOf(element, "muted"), colourOf(element, "line")];
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: ink, font, ticks: { show: false }, grid: { stroke: line, width: 1 } };
  const first = Date.parse(days[0] ?? "") / 1_000;
  const last = Date.parse(days.at(-1) ?? "") / 1_000;
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false }, points: { show: kind === "lines" } },
    // A bar is in the middle of its day.
    scales: {
      x: { time: true, range: [first - day / 2, last + day / 2] },
      y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 64,
        incrs: [1, 2, 7, 14, 28, 56, 91].map((count) => count * day),
        values: (_plot, splits) => splits.map((at) => formatShortUtcDay(at * 1_000)),
      },
      { ...axis, size: 64, values: (_plot, splits) => splits.map((value) => format(value)) },
    ],
    series: [{}, ...(kind === "bars" ? bars(element, series) : lines(element, series))],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  };
}

function bars(element: HTMLElement, series: readonly PlottedSeries[]): UPlot.Series[] {
  const paths = UPlot.paths.bars?.({ size: [0.7, 40] });
  return series.toReversed().map(({ colour }) => ({
    fill: colourOf(element, colour),
    width: 0,
    points: { show: false },
    ...(paths !== undefined && { paths }),
  }));
}

function lines(element: HTMLElement, series: readonly PlottedSeries[]): UPlot.Series[] {
  return series.map(({ colour }, index) => ({
    stroke: colourOf(element, colour),
    width: 2,
    dash: [...(dashes[index] ?? [])],
    spanGaps: true,
    points: { show: true, size: 5 },
  }));
}

/** The present value of a colour of the theme, as a canvas takes it. */
function colourOf(element: HTMLElement, name: PlottedSeries["colour"] | "muted" | "line"): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
