import type { Figures } from "./insight.ts";

/** A row of figures, and of what. */
export interface InsightRow extends Figures {
  /** The period's first day. */
  readonly from: string;
  readonly key: string;
  readonly name: string | null;
}

/** Beginnings that a spreadsheet would take for a formula. */
const formula = /^[=+\-@\t\r]/u;

/**
 * A field of CSV (RFC 4180). A text that begins like a formula is prefixed with an apostrophe, so that no spreadsheet
 * runs it (https://owasp.org/www-community/attacks/CSV_Injection).
 */
function field(value: string | number | null): string {
  if (typeof value !== "string") return value === null ? "" : String(value);
  return `"${(formula.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`;
}

/** The figures as CSV, a line for each row after one of names. */
export function csvOf(rows: readonly InsightRow[], columns: readonly (keyof InsightRow)[]): string {
  const lines = [columns.map(field), ...rows.map((row) => columns.map((column) => field(row[column])))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}
