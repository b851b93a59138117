import { describe, expect, test } from "vitest";
import { judgeTicks } from "../../src/domain/automations/due-ticks.ts";
import { nextTick, ticksBefore } from "../../src/domain/automations/schedule.ts";
import { expectations, expectedTicks } from "./oracle.ts";

const dayMs = 24 * 60 * 60_000;
const zones = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo"];

/** Moments in 2026 at which the zone's clocks change: only the days around them are walked for crons that tick often. */
function changes(timeZone: string): number[] {
  const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  const offsetAt = (at: number) => format.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value;
  return Array.from({ length: 365 }, (_, day) => Date.UTC(2026, 0, 1 + day)).filter(
    (at) => offsetAt(at) !== offsetAt(at + dayMs),
  );
}

function following(cron: string, timeZone: string, from: number, to: number): number[] {
  const ticks: number[] = [];
  for (let at = nextTick({ cron, timeZone }, from - 1); at !== null && at < to; at = nextTick({ cron, timeZone }, at)) {
    ticks.push(at);
  }
  return ticks;
}

function preceding(cron: string, timeZone: string, from: number, to: number): number[] {
  const ticks: number[] = [];
  for (const tick of ticksBefore({ cron, timeZone }, to)) {
    if (tick < from) break;
    ticks.push(tick);
  }
  return ticks.toReversed();
}

const iso = (ticks: readonly number[] | undefined) => ticks?.map((tick) => new Date(tick).toISOString());

describe.each(zones)("around each change of the clocks in %s", (timeZone) => {
  test("clocks do change twice", () => expect(changes(timeZone)).toHaveLength(2));

  test.each(expectations.map(({ cron }) => cron))(
    "%s ticks as a walk over every minute has it, forwards and backwards",
    (cron) => {
      for (const change of changes(timeZone)) {
        // The other crons are walked over more days, to see those that tick once a day on both sides.
        const margin = cron === "* * * * *" ? dayMs / 8 : cron.startsWith("*") ? dayMs / 2 : 3 * dayMs;
        const [from, to] = [change - margin, change + dayMs + margin];
        const expected = expectedTicks(timeZone, from, to).get(cron);
        expect(iso(following(cron, timeZone, from, to))).toEqual(iso(expected));
        expect(iso(preceding(cron, timeZone, from, to))).toEqual(iso(expected));
      }
    },
  );
});

test("a time that is skipped just before midnight is the one that is lost, as documented", () => {
  const ticks = following("30 23 * * *", "America/Nuuk", Date.UTC(2026, 2, 27), Date.UTC(2026, 2, 31));
  expect(iso(ticks)).toEqual(["2026-03-27T01:30:00.000Z", "2026-03-28T01:30:00.000Z", "2026-03-30T00:30:00.000Z"]);
});

test("a year of daily ticks has one on each day", () => {
  const [from, to] = [Date.UTC(2026, 0, 1), Date.UTC(2027, 0, 1)];
  for (const timeZone of zones.slice(0, 3)) {
    const expected = expectedTicks(timeZone, from, to);
    for (const cron of ["30 2 * * *", "15 2 * * *", "30 1 * * *", "45 1 * * *"]) {
      expect(expected.get(cron)).toHaveLength(365);
      expect(iso(following(cron, timeZone, from, to))).toEqual(iso(expected.get(cron)));
    }
  }
});

describe("of the ticks that are due", () => {
  const now = Date.UTC(2026, 0, 1, 12);
  const ago = (minutes: number) => now - minutes * 60_000;

  test("those of the last two minutes run", () => {
    const judged = judgeTicks([ago(1), ago(0)], { now, missed: "skip" });
    expect(judged).toEqual({ run: [ago(1), ago(0)], missed: [], instead: null });
  });

  test("older ones are missed, and the newest of them runs if it is set so", () => {
    const ticks = [ago(4), ago(3), ago(2)];
    expect(judgeTicks(ticks, { now, missed: "skip" })).toEqual({ run: [], missed: ticks, instead: null });
    expect(judgeTicks(ticks, { now, missed: "runOnce" })).toEqual({
      run: [ago(2)],
      missed: [ago(4), ago(3)],
      instead: ago(2),
    });
  });

  test("no missed one runs beside one that is on time", () => {
    expect(judgeTicks([ago(61), ago(1)], { now, missed: "runOnce" })).toEqual({
      run: [ago(1)],
      missed: [ago(61)],
      instead: ago(1),
    });
  });
});
