import { currentLanguage, localeOf, type Language } from "./language.ts";

/** Makes a value once for each language: formats are slow to make. */
function perLanguage<Value>(make: (locale: string) => Value): () => Value {
  const made = new Map<Language, Value>();
  return () => {
    const language = currentLanguage();
    const known = made.get(language) ?? make(localeOf(language));
    made.set(language, known);
    return known;
  };
}

const number = perLanguage((locale) => new Intl.NumberFormat(locale));
const tenths = perLanguage((locale) => new Intl.NumberFormat(locale, { maximumFractionDigits: 1 }));
const compact = perLanguage(
  (locale) => new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 }),
);
const percent = perLanguage((locale) => new Intl.NumberFormat(locale, { style: "percent" }));
const dollars = perLanguage((locale) => new Intl.NumberFormat(locale, { style: "currency", currency: "USD" }));
const small = perLanguage(
  (locale) => new Intl.NumberFormat(locale, { style: "currency", currency: "USD", maximumSignificantDigits: 2 }),
);
const relative = perLanguage((locale) => new Intl.RelativeTimeFormat(locale, { numeric: "auto" }));
const ahead = perLanguage((locale) => new Intl.RelativeTimeFormat(locale));
const exact = perLanguage((locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "long" }));
const day = perLanguage((locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium" }));
const utcDay = perLanguage((locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }));
const shortUtcDay = perLanguage(
  (locale) => new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", timeZone: "UTC" }),
);
const weekday = perLanguage(
  (locale) => new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long" }),
);
const clock = perLanguage((locale) => new Intl.DateTimeFormat(locale, { timeStyle: "short" }));
const one = perLanguage(
  (locale) => new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 }),
);
const byteUnits = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

/** A number with its digits in groups: `12,345`. */
export function formatNumber(value: number): string {
  return number().format(value);
}

/** A number with one digit behind the point at most: `1.8`. */
export function formatTenths(value: number): string {
  return tenths().format(value);
}

/** A large number, short: `12.3K`. */
export function formatCompact(value: number): string {
  return compact().format(value);
}

/** A share from 0 to 1: `34%`. */
export function formatPercent(share: number): string {
  return percent().format(share);
}

/** US dollars: `$1,234.50`; below a cent, the first significant digits. */
export function formatDollars(amount: number): string {
  return (amount > 0 && amount < 0.01 ? small() : dollars()).format(amount);
}

/** Bytes in the unit that suits them, in powers of 1,000: `1.5 GB`. */
export function formatBytes(bytes: number): string {
  const power = Math.min(byteUnits.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return new Intl.NumberFormat(localeOf(currentLanguage()), {
    style: "unit",
    unit: byteUnits[power] ?? "byte",
    maximumFractionDigits: power === 0 ? 0 : 1,
  }).format(bytes / 1_000 ** power);
}

/** A duration: `840 ms`, `3.2 s`, `2 min 05 s`, `1 h 04 min`. The signs of the units are the same in every language. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${one().format(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  return minutes < 60
    ? `${minutes} min ${two(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

/** The time in the browser's time zone, with the zone. */
export function formatTime(at: string): string {
  return exact().format(new Date(at));
}

/** The date of a time. */
export function formatDay(at: string): string {
  return day().format(new Date(at));
}

/** A day of UTC, such as `2030-01-31`. */
export function formatUtcDay(at: string): string {
  return utcDay().format(new Date(at));
}

/** A day of UTC without its year, for where there is little room. @param at in ms since 1970 */
export function formatShortUtcDay(at: number): string {
  return shortUtcDay().format(at);
}

/** The date of a time as a heading of what happened that day, without the year. */
export function formatWeekday(at: string): string {
  return weekday().format(new Date(at));
}

/** The time of day. */
export function formatClock(at: string): string {
  return clock().format(new Date(at));
}

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** How long ago a time was, in whole days, hours or minutes; null if it is less than a minute. */
export function formatAge(ageMs: number): string | null {
  const unit = units.find(([, ms]) => ageMs >= ms);
  return unit === undefined ? null : relative().format(-Math.floor(ageMs / unit[1]), unit[0]);
}

/** How long it is until a time, in whole days, hours, minutes or seconds. */
export function formatAhead(leftMs: number): string {
  const [name, ms] = units.find(([, unitMs]) => leftMs >= unitMs) ?? (["second", 1_000] as const);
  return ahead().format(Math.floor(leftMs / ms), name);
}

/** Today or yesterday as a word, as the language has it. @param daysAgo 0 or 1 */
export function formatRecentDay(daysAgo: 0 | 1): string {
  const word = relative().format(-daysAgo, "day");
  return word.charAt(0).toLocaleUpperCase(localeOf(currentLanguage())) + word.slice(1);
}
