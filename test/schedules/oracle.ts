/** Local time of a zone at a moment. */
interface LocalTime {
  readonly minute: number;
  readonly hour: number;
  readonly day: number;
  readonly month: number;
  /** 0: Sunday. */
  readonly weekday: number;
}

const minuteMs = 60_000;

/**
 * A cron as the tests' own words have it: what a person expects of its text, without a parser of crons.
 * `isFixed`: it names times of the day; otherwise it asks for each moment that fits.
 */
export interface Expected {
  readonly cron: string;
  readonly isFixed: boolean;
  readonly fits: (local: LocalTime) => boolean;
}

export const expectations: readonly Expected[] = [
  { cron: "* * * * *", isFixed: false, fits: () => true },
  { cron: "*/5 * * * *", isFixed: false, fits: ({ minute }) => minute % 5 === 0 },
  { cron: "0 * * * *", isFixed: false, fits: ({ minute }) => minute === 0 },
  { cron: "20 */6 * * *", isFixed: false, fits: ({ minute, hour }) => minute === 20 && hour % 6 === 0 },
  { cron: "30 2 * * *", isFixed: true, fits: ({ minute, hour }) => minute === 30 && hour === 2 },
  { cron: "15 2 * * *", isFixed: true, fits: ({ minute, hour }) => minute === 15 && hour === 2 },
  { cron: "30 1 * * *", isFixed: true, fits: ({ minute, hour }) => minute === 30 && hour === 1 },
  { cron: "45 1 * * *", isFixed: true, fits: ({ minute, hour }) => minute === 45 && hour === 1 },
  // In Santiago and in Cairo the clocks go forward at midnight, which is skipped then.
  { cron: "0 0 * * *", isFixed: true, fits: ({ minute, hour }) => minute === 0 && hour === 0 },
  { cron: "30 0 * * *", isFixed: true, fits: ({ minute, hour }) => minute === 30 && hour === 0 },
  {
    cron: "0,30 1,2,14 * * *",
    isFixed: true,
    fits: ({ minute, hour }) => minute % 30 === 0 && [1, 2, 14].includes(hour),
  },
  {
    cron: "*/15 1-3 * * 0",
    isFixed: false,
    fits: ({ minute, hour, weekday }) => minute % 15 === 0 && hour >= 1 && hour <= 3 && weekday === 0,
  },
  {
    cron: "20 * * 3,11 0",
    isFixed: false,
    fits: (local) => local.minute === 20 && [3, 11].includes(local.month) && local.weekday === 0,
  },
  {
    cron: "0 9 * * 1-5",
    isFixed: true,
    fits: ({ minute, hour, weekday }) => minute === 0 && hour === 9 && weekday % 6 !== 0,
  },
  {
    cron: "45 1 * * 0",
    isFixed: true,
    fits: ({ minute, hour, weekday }) => minute === 45 && hour === 1 && weekday === 0,
  },
  {
    cron: "0,30 1,2,14 * * 0",
    isFixed: true,
    fits: ({ minute, hour, weekday }) => minute % 30 === 0 && [1, 2, 14].includes(hour) && weekday === 0,
  },
  { cron: "0 0 1 * *", isFixed: true, fits: ({ minute, hour, day }) => minute === 0 && hour === 0 && day === 1 },
];

export function expectationOf(cron: string): Expected {
  const found = expectations.find((each) => each.cron === cron);
  if (found === undefined) throw new Error(`nothing is expected of ${cron}`);
  return found;
}

/** The difference of a zone's local time to UTC, in minutes, at a moment. */
function readOffset(format: Intl.DateTimeFormat, at: number): number {
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0 } = parts;
  return (Date.UTC(year, month - 1, day, hour, minute) - at) / minuteMs;
}

function localOf(wall: number): LocalTime {
  const date = new Date(wall);
  return {
    minute: date.getUTCMinutes(),
    hour: date.getUTCHours(),
    day: date.getUTCDate(),
    month: date.getUTCMonth() + 1,
    weekday: date.getUTCDay(),
  };
}

/**
 * The ticks of each cron in a zone from a time up to another (exclusive), found by a walk over every minute: what the clock on the wall
 * shows then, by the zone's data in Intl, and what it has skipped or shown before. Clocks change at quarters of an hour, so the data is
 * asked four times an hour.
 */
export function expectedTicks(
  timeZone: string,
  from: number,
  to: number,
  crons: readonly Expected[] = expectations,
): Map<string, number[]> {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
  });
  const ticks = new Map(crons.map(({ cron }) => [cron, [] as number[]]));
  /** The latest time that the clock has shown, as if it were UTC. */
  let latest = Number.NEGATIVE_INFINITY;
  let offset = 0;
  // A day earlier, so that what was shown just before `from` is known.
  for (let at = from - 24 * 60 * minuteMs; at < to; at += minuteMs) {
    if (at % (15 * minuteMs) === 0) offset = readOffset(format, at);
    const wall = at + offset * minuteMs;
    const shown = localOf(wall);
    const skipped: LocalTime[] = [];
    if (latest !== Number.NEGATIVE_INFINITY) {
      for (let missing = latest + minuteMs; missing < wall; missing += minuteMs) skipped.push(localOf(missing));
    }
    const isRepeated = wall <= latest;
    latest = Math.max(latest, wall);
    if (at < from) continue;
    for (const { cron, isFixed, fits } of crons) {
      const isTick = isFixed ? (!isRepeated && fits(shown)) || skipped.some(fits) : fits(shown);
      if (isTick) ticks.get(cron)?.push(at);
    }
  }
  return ticks;
}
