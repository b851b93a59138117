import stringWidth from "string-width";
import { shade } from "../../event-lines.ts";
import { oneLine, printable } from "../../printable.ts";

/** A column of a table. */
export interface Column<Row> {
  readonly heading: string;
  readonly of: (row: Row) => string;
  /** Whether it gives way if the terminal is narrow. One column may. */
  readonly shrinks?: boolean;
}

/** Fewest places that are left of a column that shrinks. */
const narrowest = 12;
const gap = "  ";

/**
 * Formats rows for people: columns under each other, whatever characters are in them. Nothing of a cell can reach the
 * terminal as a control character or begin another line.
 * @param width places of the terminal; null: no terminal, so nothing is cut
 */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { width, color }: { readonly width: number | null; readonly color: boolean },
): string {
  const cells = rows.map((row) => columns.map(({ of }) => oneLine(printable(of(row)))));
  const widths = columns.map(({ heading }, index) =>
    Math.max(stringWidth(heading), ...cells.map((row) => stringWidth(row[index] ?? ""))),
  );
  const shrinking = columns.findIndex(({ shrinks }) => shrinks === true);
  if (width !== null && shrinking !== -1) {
    const all = widths.reduce((sum, each) => sum + each, gap.length * (columns.length - 1));
    const wanted = (widths[shrinking] ?? 0) - Math.max(0, all - width);
    widths[shrinking] = Math.min(widths[shrinking] ?? 0, Math.max(narrowest, wanted));
  }
  const line = (row: readonly string[]): string =>
    row
      .map((cell, index) => fitted(cell, widths[index] ?? 0))
      .join(gap)
      .trimEnd();
  const headings = shade("dim", line(columns.map(({ heading }) => heading)), color);
  return [headings, ...cells.map(line)].map((each) => `${each}\n`).join("");
}

/** Text of exactly so many places, cut or filled up. */
function fitted(text: string, places: number): string {
  const missing = places - stringWidth(text);
  if (missing >= 0) return text + " ".repeat(missing);
  let kept = "";
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const width = stringWidth(segment);
    if (used + width > places - 1) break;
    kept += segment;
    used += width;
  }
  return `${kept}…${" ".repeat(places - 1 - used)}`;
}

/** Formats names and values for people, one below the other; what is null is left out. */
export function facts(rows: readonly (readonly [name: string, value: string | null])[], color: boolean): string {
  const shown = rows.filter((row): row is readonly [string, string] => row[1] !== null);
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown
    .map(([name, value]) => `${shade("dim", name.padEnd(width), color)}  ${oneLine(printable(value))}\n`)
    .join("");
}

/** How long ago a time was, such as `3 min`. */
export function age(time: string, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - Date.parse(time)) / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}
