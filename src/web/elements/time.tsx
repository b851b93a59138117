import { useEffect, useState } from "react";
import { useElementTexts } from "../texts/elements.ts";
import { formatAge, formatAhead, formatClock, formatDay, formatTime } from "../texts/formats.ts";

const longAgoMs = 30 * 86_400_000;

/** How long ago a time was, with the exact time as its title; after a month, the date. */
export function Ago({ at }: { at: string }) {
  const { justNow } = useElementTexts();
  const age = useNow(30_000) - Date.parse(at);
  return (
    <time dateTime={at} title={formatTime(at)} className="whitespace-nowrap">
      {age >= longAgoMs ? formatDay(at) : (formatAge(age) ?? justNow)}
    </time>
  );
}

/** The date of a time, with the exact time as its title. */
export function Day({ at }: { at: string }) {
  return (
    <time dateTime={at} title={formatTime(at)} className="whitespace-nowrap">
      {formatDay(at)}
    </time>
  );
}

/** The time of day, with the exact time as its title. */
export function Clock({ at }: { at: string }) {
  return (
    <time dateTime={at} title={formatTime(at)} className="shrink-0 text-xs leading-5 text-muted tabular-nums">
      {formatClock(at)}
    </time>
  );
}

/** How long it is until a time, with the exact time as its title. */
export function Until({ at }: { at: string }) {
  const { now } = useElementTexts();
  const left = Date.parse(at) - useNow(1_000);
  return (
    <time dateTime={at} title={formatTime(at)} className="whitespace-nowrap">
      {left < 1_000 ? now : formatAhead(left)}
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
