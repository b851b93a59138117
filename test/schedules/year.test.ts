import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { createLogger } from "../../src/observability.ts";
import { tickSchedules } from "../../src/worker/background/schedule-ticks.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization } from "../store/fixtures.ts";
import { expectationOf, expectedTicks } from "./oracle.ts";
import { randomOf } from "../random.ts";

const [from, to] = [Date.UTC(2026, 0, 1), Date.UTC(2027, 0, 1)];
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** As documented: a tick that is at least so late was missed. */
const graceMs = 2 * minuteMs;
const zones = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe"];
const crons = ["30 2 * * *", "45 1 * * 0", "0,30 1,2,14 * * 0", "*/15 1-3 * * 0", "20 * * 3,11 0", "0 0 1 * *"];
const forever = new AbortController().signal;
const templates = { evaluateOne: () => Promise.resolve({ passes: true, key: null }) };

let testDatabase: TestDatabase;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
});
afterAll(() => testDatabase.close());

interface Simulated {
  readonly id: string;
  readonly missed: "runOnce" | "skip";
  readonly ticks: readonly number[];
}

async function addSchedules(database: Database): Promise<Simulated[]> {
  const organizationId = await addOrganization(database);
  const schedules: Simulated[] = [];
  for (const timeZone of zones) {
    const expected = expectedTicks(timeZone, from, to, crons.map(expectationOf));
    const automationId = await addAutomation(
      database,
      organizationId,
      timeZone.toLowerCase().replaceAll(/\W|_/gu, "-"),
    );
    for (const [position, cron] of crons.entries()) {
      const id = randomUUID();
      const missed = position % 2 === 0 ? "runOnce" : "skip";
      await database.pool.query(
        `insert into trigger (id, organization_id, automation_id, type, position, settings, next_at)
         values ($1, $2, $3, 'schedule', $4, $5, $6)`,
        [id, organizationId, automationId, position, { cron, timeZone, missed }, new Date(from)],
      );
      schedules.push({ id, missed, ticks: expected.get(cron) ?? [] });
    }
  }
  return schedules;
}

/**
 * The times at which workers look: within a minute of each tick, but for outages of minutes, hours and days, three of them over a change
 * of the clocks.
 */
function looksOver(schedules: readonly Simulated[], random: () => number): number[] {
  const outages = [Date.UTC(2026, 2, 8), Date.UTC(2026, 9, 3, 12), Date.UTC(2026, 9, 25)].map((start) => ({
    start,
    end: start + (8 + 10 * random()) * hourMs,
  }));
  for (let each = 0; each < 40; each += 1) {
    const start = from + random() * (to - from);
    const lengths = [5 * minuteMs, hourMs, 8 * hourMs, 4 * 24 * hourMs];
    outages.push({ start, end: start + random() * (lengths[each % lengths.length] ?? 0) });
  }
  const looks: number[] = [];
  for (const tick of [...new Set(schedules.flatMap(({ ticks }) => ticks))].toSorted((one, other) => one - other)) {
    let look = tick + Math.floor(random() * minuteMs);
    for (;;) {
      const down = outages.find(({ start, end }) => look >= start && look < end);
      if (down === undefined) break;
      look = Math.floor(down.end) + 1;
    }
    if (look > (looks.at(-1) ?? 0)) looks.push(look);
  }
  return looks;
}

/** What has to be in the ledger, by the words of the documentation. */
function expectedOutcomes({ ticks, missed }: Simulated, looks: readonly number[]): Map<number, "ran" | "missed"> {
  const outcomes = new Map<number, "ran" | "missed">();
  let at = 0;
  for (const look of looks) {
    const due: number[] = [];
    for (; at < ticks.length && (ticks[at] ?? 0) <= look; at += 1) due.push(ticks[at] ?? 0);
    const isOnTime = (tick: number): boolean => look - tick < graceMs;
    for (const tick of due) outcomes.set(tick, isOnTime(tick) ? "ran" : "missed");
    const newest = due.at(-1);
    if (missed === "runOnce" && newest !== undefined && !isOnTime(newest)) outcomes.set(newest, "ran");
  }
  return outcomes;
}

/** A database whose transactions sometimes break off: before the commit, or after it without an answer. */
function unreliable(database: Database, random: () => number, died: () => void): Database {
  return {
    ...database,
    transaction: async (work) => {
      const fate = random();
      const result = await database.transaction(async (transaction) => {
        const done = await work(transaction);
        if (fate < 0.03) {
          died();
          throw new Error("the worker died before it committed");
        }
        return done;
      });
      if (fate > 0.97) {
        died();
        throw new Error("the worker died after it had committed");
      }
      return result;
    },
  };
}

test("a year of ticks in three time zones, over outages, crashes, a clock that stands or goes back, and two workers: each is run or missed as it should, once", async () => {
  const { database } = testDatabase;
  const random = randomOf(20_260_101);
  const schedules = await addSchedules(database);
  const looks = looksOver(schedules, random);
  let deaths = 0;
  let stood = 0;
  const workers = [0, 1].map(() => unreliable(database, random, () => (deaths += 1)));
  const logger = createLogger("silent");
  for (const [index, look] of looks.entries()) {
    const now = () => new Date(look);
    // The clock stood still until now, or went back by up to a day, while a worker went on looking: by it, nothing is due.
    const last = looks[index - 1];
    if (last !== undefined && random() < 0.1) {
      const back = random() < 0.5 ? 0 : Math.floor(random() * 24 * hourMs);
      await tickSchedules({ database, logger, templates, now: () => new Date(last - back) }, forever);
      stood += 1;
    }
    const before = deaths;
    const both = random() < 0.3 ? workers : workers.slice(0, 1);
    await Promise.all(both.map((each) => tickSchedules({ database: each, logger, templates, now }, forever)));
    // What a worker that died has left is for one that was started again at once.
    if (deaths > before) await tickSchedules({ database, logger, templates, now }, forever);
  }
  const { rows } = await database.pool.query<{ id: string; ticks: string[]; outcome: string }>(
    `select trigger_id as id, outcome, array_agg(at order by at) as ticks from (
       select trigger_id, 'ran' as outcome, payload ->> 'scheduledAt' as at from job
       union all select trigger_id, outcome, payload ->> 'scheduledAt' from arrival) as entry
     group by trigger_id, outcome`,
  );
  const iso = (ticks: readonly number[]) => ticks.map((tick) => new Date(tick).toISOString());
  const count = { ran: 0, missed: 0 };
  for (const schedule of schedules) {
    const outcomes = [...expectedOutcomes(schedule, looks)];
    for (const outcome of ["ran", "missed"] as const) {
      const expected = outcomes.filter(([, each]) => each === outcome).map(([tick]) => tick);
      const found = rows.find((row) => row.id === schedule.id && row.outcome === outcome)?.ticks ?? [];
      expect(found).toEqual(iso(expected));
      count[outcome] += expected.length;
    }
    expect(outcomes).toHaveLength(schedule.ticks.filter((tick) => tick <= (looks.at(-1) ?? 0)).length);
  }
  // The positive controls: there was something to get wrong.
  expect(rows.every(({ outcome }) => outcome === "ran" || outcome === "missed")).toBe(true);
  expect(count.ran).toBeGreaterThan(3_000);
  expect(count.missed).toBeGreaterThan(200);
  expect(deaths).toBeGreaterThan(100);
  expect(stood).toBeGreaterThan(100);
});
