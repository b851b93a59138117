import { Cron } from "croner";

/** Characters of a cron expression. */
const longestCron = 200;

/**
 * Why a text is no cron expression of five fields (minute, hour, day of the month, month, day of the week) with a
 * future tick, as the end of a sentence; null if it is one.
 */
export function cronProblem(text: string): string | null {
  const form = "must be five fields of cron: minute, hour, day of the month, month, day of the week";
  if (text.length > longestCron || text.trim().split(/\s+/u).length !== 5) return form;
  try {
    const isEver = new Cron(text, { mode: "5-part" }).nextRun() !== null;
    return isEver ? null : "never comes: no month that it names has that day";
  } catch {
    return form;
  }
}

/** Whether a text is a name of the IANA time zone database, such as `Europe/Berlin`. */
export function isTimeZone(text: string): boolean {
  if (text.length > 100) return false;
  // Offsets such as +01:00 are accepted by Intl too: a schedule of one would silently know no daylight saving time.
  if (!/^[A-Za-z]/u.test(text)) return false;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

/** When a trigger of type `schedule` ticks. */
export interface Schedule {
  /** Five fields, with which `cronProblem` finds nothing wrong. */
  readonly cron: string;
  /** As `isTimeZone` takes it. */
  readonly timeZone: string;
}

/**
 * Reads a schedule. Which crons name fixed times is decided as in Vixie cron, which ran the crons that people bring along: by the
 * package's own default, `30 2,14 * * *` would be left out on the day on which the clock skips 02:30, and `30 1,13 * * *` would come three
 * times on the day on which it shows 01:30 twice.
 */
function parse({ cron, timeZone }: Schedule): Cron {
  return new Cron(cron, { mode: "5-part", timezone: timeZone, fixedTimeRule: "no-wildcard" });
}

/**
 * The next tick of a schedule after a time, in ms since the epoch; null if there is none. When clocks are changed it depends on whether
 * minute and hour name fixed times, by numbers, lists and ranges alone. A fixed time that the clock skips ticks at the first moment after
 * it (unless that is on another day), and one that the clock shows twice ticks once, the first time. With `*` or a step in minute or
 * hour each moment counts whose local time fits: what the clock skips is left out, and what it shows twice ticks twice.
 * @throws Error if the schedule can't be read
 */
export function nextTick(schedule: Schedule, after: number): number | null {
  return parse(schedule).nextRun(new Date(after))?.getTime() ?? null;
}

/**
 * The ticks of a schedule before a time, the newest first. Each takes about 0.2 ms of processor time: compute few at
 * once.
 * @throws Error if the schedule can't be read
 */
export function* ticksBefore(schedule: Schedule, before: number): Generator<number, void, undefined> {
  const cron = parse(schedule);
  let reference = new Date(before);
  for (;;) {
    const [tick] = cron.previousRuns(1, reference);
    if (tick === undefined) return;
    yield tick.getTime();
    reference = tick;
  }
}
