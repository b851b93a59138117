import { useEffect, useState } from "react";

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const ahead = new Intl.RelativeTimeFormat("en");

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const day = new Intl.DateTimeFormat("en", { dateStyle: "medium" });
const longAgoMs = 30 * 86_400_000;

/** The time in the browser's time zone, with the zone. */
export function exactTime(at: string): string {
  return exact.format(new Date(at));
}

/** How long ago a time was, with the exact time as its title; after a month, the date. */
export function Ago({ at }: { at: string }) {
  const now = useNow(30_000);
  const age = now - Date.parse(at);
  const unit = units.find(([, ms]) => age >= ms);
  const text =
    age >= longAgoMs
      ? day.format(new Date(at))
      : unit === undefined
        ? "just now"
        : relative.format(-Math.floor(age / unit[1]), unit[0]);
  return (
    <time dateTime={at} title={exactTime(at)} className="whitespace-nowrap">
      {text}
    </time>
  );
}

/** The date of a time, with the exact time as its title. */
export function Day({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exactTime(at)} className="whitespace-nowrap">
      {day.format(new Date(at))}
    </time>
  );
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

/** The time of day, with the exact time as its title. */
export function Clock({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exactTime(at)} className="shrink-0 text-xs leading-5 text-muted tabular-nums">
      {clock.format(new Date(at))}
    </time>
  );
}

/** How long it is until a time, with the exact time as its title. */
export function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useNow(1_000);
  const [name, ms] = units.find(([, unitMs]) => left >= unitMs) ?? (["second", 1_000] as const);
  return (
    <time dateTime={at} title={exactTime(at)} className="whitespace-nowrap">
      {left < 1_000 ? "now" : ahead.format(Math.floor(left / ms), name)}
    </time>
  );
}

/** The present time in ms, updated every `everyMs`; never if null. */
export function useNow(everyMs: number | null): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (everyMs === null) return undefined;
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Formats a duration: `840 ms`, `3.2 s`, `2 min 05 s`, `1 h 04 min`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  return minutes < 60
    ? `${minutes} min ${two(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}
