import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { createLogger } from "../../src/observability.ts";
import { listDueSchedules, tickSchedule, untilNextTick } from "../../src/store/automations/ticks.ts";
import { createScheduleTicks, tickSchedules } from "../../src/worker/background/schedule-ticks.ts";
import { createTestApp, type TestApp } from "../api/app.ts";

const logger = createLogger("silent");
const forever = new AbortController().signal;
const passes = () => Promise.resolve({ passes: true, key: null });
let api: TestApp;
beforeAll(async () => {
  api = await createTestApp();
});
afterAll(() => api.close());

interface Made {
  readonly automationId: string;
  readonly id: string;
}

async function addSchedule(trigger: object = {}): Promise<Made> {
  const macro = `m-${randomUUID().slice(0, 13)}`;
  const { status, body } = await api.post("/automation/create", {
    name: macro,
    macro,
    instructions: "Work",
    triggers: [{ type: "schedule", cron: "0 * * * *", ...trigger }],
  });
  expect([status, body.error]).toEqual([200, undefined]);
  return { automationId: body.id, id: body.triggers[1].id };
}

/** As if the schedule had been saved before that time. */
async function setNext({ id }: Made, at: string): Promise<void> {
  await api.database.pool.query("update trigger set next_at = $2 where id = $1", [id, at]);
}

const tickAt = (at: string, database: Database = api.database) =>
  tickSchedules({ database, logger, templates: api.templates, now: () => new Date(at) }, forever);
/** What is in the ledger of an automation, the oldest first: `fired` here is a job that waits. */
async function ledger({ automationId }: Made) {
  const { entries } = (await api.get(`/ledger/list?limit=100&automationId=${automationId}`)).body;
  const whole = [];
  for (const { id } of entries) whole.push((await api.get(`/ledger/${id}`)).body);
  return whole
    .map(({ outcome, reason, payload }) => ({ tick: payload?.scheduledAt ?? null, outcome, reason }))
    .toSorted((one, other) => String(one.tick).localeCompare(String(other.tick)));
}
async function findDue({ id }: Made, now: Date) {
  const all = await listDueSchedules(api.database, { limit: 100, except: [], worker: "a", now });
  const due = all.find((each) => each.id === id);
  if (due === undefined) throw new Error("it is not due");
  return due;
}
const nextAt = async ({ automationId }: Made): Promise<string> =>
  (await api.get(`/automation/${automationId}`)).body.triggers[1].nextAt;

describe("a schedule", () => {
  test("starts a run at its tick, with the time, zone and cron as the event, and goes on to the next", async () => {
    const made = await addSchedule({ cron: "30 9 * * 1-5", timeZone: "Europe/Berlin" });
    await setNext(made, "2026-07-03T07:30:00Z");
    await tickAt("2026-07-03T07:29:59Z");
    expect(await ledger(made)).toEqual([]);
    await tickAt("2026-07-03T07:30:01Z");
    const [entry] = (await api.get(`/ledger/list?automationId=${made.automationId}`)).body.entries;
    expect((await api.get(`/ledger/${entry.id}`)).body).toMatchObject({
      outcome: null,
      triggerId: made.id,
      payload: { scheduledAt: "2026-07-03T07:30:00.000Z", timeZone: "Europe/Berlin", cron: "30 9 * * 1-5" },
    });
    expect(await nextAt(made)).toBe("2026-07-06T07:30:00.000Z");
    await tickAt("2026-07-03T07:31:00Z");
    expect(await ledger(made)).toHaveLength(1);
  });

  test("that missed ticks runs once for all of them, or not at all, as set; each is in the ledger", async () => {
    const once = await addSchedule({ missed: "runOnce" });
    const never = await addSchedule({ missed: "skip" });
    for (const made of [once, never]) await setNext(made, "2026-07-03T07:00:00Z");
    await tickAt("2026-07-03T09:20:00Z");
    const late = (hours: string, then: string) =>
      `no worker looked at the schedule in time: it was ${hours} late, and ${then}`;
    const instead = "the tick of 2026-07-03T09:00:00.000Z runs in its place (missed: runOnce)";
    const skipped = "it does not run (missed: skip)";
    expect(await ledger(once)).toEqual([
      { tick: "2026-07-03T07:00:00.000Z", outcome: "missed", reason: late("2 h 20 min", instead) },
      { tick: "2026-07-03T08:00:00.000Z", outcome: "missed", reason: late("1 h 20 min", instead) },
      { tick: "2026-07-03T09:00:00.000Z", outcome: null, reason: null },
    ]);
    expect(await ledger(never)).toEqual([
      { tick: "2026-07-03T07:00:00.000Z", outcome: "missed", reason: late("2 h 20 min", skipped) },
      { tick: "2026-07-03T08:00:00.000Z", outcome: "missed", reason: late("1 h 20 min", skipped) },
      { tick: "2026-07-03T09:00:00.000Z", outcome: "missed", reason: late("20 min", skipped) },
    ]);
    const [newest] = (await api.get(`/ledger/list?automationId=${never.automationId}`)).body.entries;
    const replayed = await api.post(`/ledger/${newest.id}/replay`, {});
    expect(replayed.status).toBe(200);
    expect((await ledger(never)).filter(({ outcome }) => outcome === null)).toEqual([
      { tick: "2026-07-03T09:00:00.000Z", outcome: null, reason: null },
    ]);
  });

  test("that missed thousands of ticks has the newest 1,000 in the ledger, and the number of the others", async () => {
    const made = await addSchedule({ cron: "* * * * *", missed: "skip" });
    await setNext(made, "2026-07-01T00:00:00Z");
    await tickAt("2026-07-01T23:59:59Z");
    const { rows } = await api.database.pool.query<{ outcome: string; count: number }>(
      "select outcome, count(*)::integer as count from arrival where trigger_id = $1 group by outcome",
      [made.id],
    );
    // Of 1,440 ticks the newest 1,000 are looked at one by one; the last two of them were on time, and run.
    expect(rows).toEqual([{ outcome: "missed", count: 999 }]);
    const reasons = await api.database.pool.query<{ id: string; reason: string }>(
      "select id, reason from arrival where trigger_id = $1 and payload is null",
      [made.id],
    );
    expect(reasons.rows).toEqual([
      {
        id: expect.any(String) as string,
        reason:
          "440 more ticks, up to that of 2026-07-01T07:19:00.000Z, were missed too: only the newest 1000 have entries of their own",
      },
    ]);
    expect((await api.post(`/ledger/${reasons.rows[0]?.id}/replay`, {})).status).toBe(409);
    expect(await nextAt(made)).toBe("2026-07-02T00:00:00.000Z");
  });

  test("does not tick while its automation is paused, and has missed nothing when that is resumed", async () => {
    const made = await addSchedule();
    const pause = (paused: boolean) => api.post(`/automation/${made.automationId}/update`, { paused });
    await pause(true);
    await setNext(made, "2026-07-03T07:00:00Z");
    await tickAt("2026-07-03T07:00:01Z");
    expect([await ledger(made), await nextAt(made)]).toEqual([[], "2026-07-03T08:00:00.000Z"]);
    // No worker runs until it is resumed.
    const before = new Date().toISOString();
    await pause(false);
    expect((await nextAt(made)) > before).toBe(true);
    await tickAt(new Date().toISOString());
    expect(await ledger(made)).toEqual([]);
  });

  test("keeps what it missed if an automation is saved that was not paused", async () => {
    const made = await addSchedule();
    await setNext(made, "2026-07-03T07:00:00Z");
    await api.post(`/automation/${made.automationId}/update`, { paused: false });
    await tickAt("2026-07-03T07:10:00Z");
    expect(await ledger(made)).toMatchObject([{ tick: "2026-07-03T07:00:00.000Z", outcome: null }]);
  });

  test("ticks no more if its automation is deleted, it is removed, or it is disabled", async () => {
    const gone = await addSchedule();
    await api.post(`/automation/${gone.automationId}/delete`, {});
    const removed = await addSchedule();
    await api.post(`/automation/${removed.automationId}/update`, { triggers: [] });
    const disabled = await addSchedule();
    const triggers = [{ type: "schedule", id: disabled.id, cron: "0 * * * *", enabled: false }];
    await api.post(`/automation/${disabled.automationId}/update`, { triggers });
    const all = [gone, removed, disabled];
    for (const made of all) await setNext(made, "2026-07-03T07:00:00Z");
    await tickAt("2026-07-03T07:00:01Z");
    expect(await Promise.all(all.map(ledger))).toEqual([[], [], []]);
  });

  test("of a deleted automation never keeps a worker from looking at the time of the next tick", async () => {
    const gone = await addSchedule();
    await setNext(gone, "2000-01-01T00:00:00Z");
    const dayMs = 24 * 60 * 60_000;
    // The positive control: while the automation is there, the tick is due for years.
    expect(await untilNextTick(api.database)).toBeLessThan(-9_000 * dayMs);
    // As a version of Offstage left it that deleted the automation alone.
    await api.database.pool.query("update automation set deleted_at = now() where id = $1", [gone.automationId]);
    const untilMs = await untilNextTick(api.database);
    expect(untilMs ?? 0).toBeGreaterThan(-9_000 * dayMs);
  });

  test("has its condition evaluated for each tick, and says why it did not run", async () => {
    const condition = "event.scheduledAt < '2026-07-03T08'";
    const made = await addSchedule({ condition });
    const wrong = await addSchedule({ condition: "event.nothing == 1" });
    for (const each of [made, wrong]) {
      await setNext(each, "2026-07-03T07:00:00Z");
      await tickAt("2026-07-03T07:00:01Z");
      await tickAt("2026-07-03T08:00:01Z");
    }
    expect(await ledger(made)).toEqual([
      { tick: "2026-07-03T07:00:00.000Z", outcome: null, reason: null },
      { tick: "2026-07-03T08:00:00.000Z", outcome: "filtered", reason: "its condition does not hold" },
    ]);
    expect(await ledger(wrong)).toMatchObject([{ outcome: "filtered" }, { outcome: "filtered" }]);
    const { triggers } = (await api.get(`/automation/${wrong.automationId}`)).body;
    expect(triggers[1].problem).toContain("nothing");
  });
});

describe("each tick is decided once", () => {
  test("however many workers look at it at once", async () => {
    const all: Made[] = [];
    for (let each = 0; each < 20; each += 1) all.push(await addSchedule());
    for (const made of all) await setNext(made, "2026-07-03T07:00:00Z");
    const counts = await Promise.all(Array.from({ length: 4 }, () => tickAt("2026-07-03T07:00:01Z")));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(20);
    for (const made of all) expect(await ledger(made)).toHaveLength(1);
  });

  test("and in one look, also if one automation has many schedules", async () => {
    const made = await addSchedule();
    const more = Array.from({ length: 9 }, () => ({ type: "schedule", cron: "0 * * * *" }));
    const triggers = [{ type: "schedule", id: made.id, cron: "0 * * * *" }, ...more];
    await api.post(`/automation/${made.automationId}/update`, { triggers });
    await api.database.pool.query("update trigger set next_at = $2 where automation_id = $1", [
      made.automationId,
      "2026-07-03T07:00:00Z",
    ]);
    const counts = await Promise.all([tickAt("2026-07-03T07:00:01Z"), tickAt("2026-07-03T07:00:01Z")]);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(10);
    expect(await ledger(made)).toHaveLength(10);
  });

  test("if a worker dies before it has committed, or before it knows that it has", async () => {
    const made = await addSchedule({ missed: "skip" });
    await setNext(made, "2026-07-03T06:00:00Z");
    const now = new Date("2026-07-03T07:00:01Z");
    const due = await findDue(made, now);
    const before: Database = {
      ...api.database,
      transaction: (work) =>
        api.database.transaction(async (transaction) => {
          await work(transaction);
          throw new Error("died");
        }),
    };
    await expect(tickSchedule(before, due, passes)).rejects.toThrow("died");
    expect(await ledger(made)).toEqual([]);
    const after: Database = {
      ...api.database,
      transaction: async (work) => {
        await api.database.transaction(work);
        throw new Error("died");
      },
    };
    await expect(tickSchedule(after, due, passes)).rejects.toThrow("died");
    // Another one that had listed it before.
    expect(await tickSchedule(api.database, due, passes)).toBe(false);
    await tickAt("2026-07-03T07:00:02Z");
    expect(await ledger(made)).toMatchObject([
      { tick: "2026-07-03T06:00:00.000Z", outcome: "missed" },
      { tick: "2026-07-03T07:00:00.000Z", outcome: null },
    ]);
  });

  test("if it is set back by an API node whose clock is behind", async () => {
    const made = await addSchedule({ condition: "event.scheduledAt < '2026-07-03T07:30'", missed: "skip" });
    for (const at of ["2026-07-03T07:00:01Z", "2026-07-03T08:00:01Z"]) {
      await setNext(made, "2026-07-03T06:00:00Z");
      await tickAt(at);
    }
    // What was filtered is not fired later, under the id of the same entry.
    await setNext(made, "2026-07-03T06:00:00Z");
    await api.database.pool.query("update trigger set condition = '' where id = $1", [made.id]);
    await tickAt("2026-07-03T08:00:02Z");
    expect((await ledger(made)).map(({ tick, outcome }) => [tick.slice(11, 13), outcome])).toEqual([
      ["06", "missed"],
      ["07", null],
      ["08", "filtered"],
    ]);
  });

  test("by what it was saved as when it is decided", async () => {
    const made = await addSchedule();
    await setNext(made, "2026-07-03T07:00:00Z");
    const now = new Date("2026-07-03T07:00:01Z");
    const due = await findDue(made, now);
    const update = { paused: true };
    const evaluate = async () => {
      await api.post(`/automation/${made.automationId}/update`, update);
      return { passes: true, key: null };
    };
    expect(await tickSchedule(api.database, due, evaluate)).toBe(false);
    expect(await ledger(made)).toEqual([]);
  });
});

test("schedules that are on time come before what an outage has left", async () => {
  await api.database.pool.query("update trigger set next_at = null");
  const late = await addSchedule();
  const onTime = await addSchedule();
  await setNext(late, "2026-07-02T07:00:00Z");
  await setNext(onTime, "2026-07-03T07:00:00Z");
  const query = { limit: 1, except: [], worker: "a", now: new Date("2026-07-03T07:00:01Z") };
  expect(await listDueSchedules(api.database, query)).toMatchObject([{ id: onTime.id }]);
  await tickAt("2026-07-03T07:00:01Z");
  expect(await listDueSchedules(api.database, query)).toEqual([]);
});

test("one schedule that can't be read holds up no other, and is reported", async () => {
  const broken = await addSchedule();
  const good = await addSchedule();
  for (const made of [broken, good]) await setNext(made, "2026-07-03T07:00:00Z");
  await api.database.pool.query(`update trigger set settings = settings || '{"cron": "no cron"}' where id = $1`, [
    broken.id,
  ]);
  await tickAt("2026-07-03T07:00:01Z");
  expect([await ledger(broken), await ledger(good)]).toMatchObject([[], [{ outcome: null }]]);
  await api.post(`/automation/${broken.automationId}/delete`, {});
});

test("a worker looks at the schedules by itself, by the database's clock", async () => {
  // The other tests' schedules are months behind.
  await api.database.pool.query("update trigger set next_at = null");
  const made = await addSchedule({ cron: "* * * * *" });
  await api.database.pool.query("update trigger set next_at = date_trunc('minute', now()) where id = $1", [made.id]);
  const { database, templates } = api;
  const task = createScheduleTicks({ database, logger, templates });
  await task.start();
  await expect.poll(async () => (await ledger(made)).length).toBeGreaterThan(0);
  await task.stop();
});
