import { Cron } from "croner";

/** Whether a text is a cron expression of five fields (minute, hour, day of the month, month, day of the week) with a tick to come. */
export function isCron(text: string): boolean {
  if (text.trim().split(/\s+/u).length !== 5) return false;
  try {
    return new Cron(text, { mode: "5-part" }).nextRun() !== null;
  } catch {
    return false;
  }
}

/** Whether a text is a name of the IANA time zone database, such as `Europe/Berlin`. */
export function isTimeZone(text: string): boolean {
  // Offsets such as +01:00 are accepted by Intl too: a schedule of one would silently know no daylight saving time.
  if (!/^[A-Za-z]/u.test(text)) return false;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

/**
 * The next tick of a schedule after a time, in ms since the epoch; null if there is none. A time that daylight saving skips ticks
 * at the first moment after it, and one that comes twice ticks once, the first time.
 */
export function nextTick(
  { cron, timeZone }: { readonly cron: string; readonly timeZone: string },
  after: number,
): number | null {
  return new Cron(cron, { mode: "5-part", timezone: timeZone }).nextRun(new Date(after))?.getTime() ?? null;
}
