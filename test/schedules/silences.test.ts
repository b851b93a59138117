import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogger } from "../../src/observability.ts";
import { reviewSilences } from "../../src/store/automations/silences.ts";
import { pruneJobs } from "../../src/store/prune.ts";
import { readQueueStats } from "../../src/store/queue/stats.ts";
import { tickSchedules } from "../../src/worker/background/schedule-ticks.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { broken, createRuns, type Runs } from "../runs/run.ts";

const forever = new AbortController().signal;
let api: TestApp;
let runs: Runs;
beforeEach(async () => {
  api = await createTestApp();
  runs = createRuns(api);
  await api.post("/webhook/create", {
    url: "https://example.com/announced",
    events: ["automation.silent", "automation.recovered"],
  });
});
afterEach(() => api.close());

/** An automation that ticks every hour, as if it had been saved before 07:00. */
async function addSchedule(settings: object = {}, missed = "runOnce"): Promise<string> {
  const id = await runs.add({ triggers: [{ type: "schedule", cron: "0 * * * *", missed }], ...settings });
  await setNext(id, "2026-07-03T07:00:00Z");
  return id;
}
const setNext = (id: string, at: string) =>
  api.database.pool.query("update trigger set next_at = $2 where automation_id = $1 and type = 'schedule'", [id, at]);
const on = (time: string): Date => new Date(`2026-07-03T${time}Z`);
const tick = (time: string) =>
  tickSchedules(
    { database: api.database, logger: createLogger("silent"), templates: api.templates, now: () => on(time) },
    forever,
  );
const look = (time: string) => reviewSilences(api.database, on(time));
const update = async (id: string, changes: object): Promise<void> => {
  expect((await api.post(`/automation/${id}/update`, changes)).status).toBe(200);
};
/** The webhook events of an automation, the oldest first, without its names. */
async function announced(id: string) {
  const { rows } = await api.database.pool.query<{ type: string; data: { since: string; reason: string } }>(
    "select type, data from webhook_delivery where data ->> 'id' = $1 order by created_at",
    [id],
  );
  return rows.map(({ type, data: { since, reason } }) => [type, since, reason]);
}
const recovered = (since: string, reason = "nothing that is expected of it is overdue any more") => [
  "automation.recovered",
  since,
  reason,
];

describe("a schedule whose tick did not fire", () => {
  const seven = "2026-07-03T07:00:00.000Z";

  test("is announced once, after ten minutes, and again when it fires", async () => {
    const id = await addSchedule({}, "skip");
    expect(await look("07:09:59")).toEqual({ silent: 0, recovered: 0 });
    expect(await look("07:10:00")).toEqual({ silent: 1, recovered: 0 });
    const reason = `the tick of ${seven} is due, and no worker has decided it`;
    expect((await runs.get(id)).alert).toEqual({ since: seven, reason });
    expect((await readQueueStats(api.database)).automations.silent).toBe(1);
    // The server was restarted, other workers look too, and what was missed does not run.
    for (const time of ["07:11:00", "07:40:00"]) expect(await look(time)).toEqual({ silent: 0, recovered: 0 });
    await tick("08:20:00");
    expect(await look("08:20:01")).toEqual({ silent: 0, recovered: 0 });
    await tick("09:00:01");
    expect(await look("09:00:30")).toEqual({ silent: 0, recovered: 1 });
    expect(await announced(id)).toEqual([["automation.silent", seven, reason], recovered(seven)]);
    expect((await runs.get(id)).alert).toBeNull();
    expect(await look("09:30:00")).toEqual({ silent: 0, recovered: 0 });
  });

  test("is announced even if the server is back, and has run it, before the watch did", async () => {
    const id = await addSchedule();
    await tick("09:20:00");
    await look("09:20:30");
    const reason = `the tick of ${seven} did not fire in time: no worker looked at its schedule for 2 h 20 min`;
    expect(await announced(id)).toEqual([["automation.silent", seven, reason], recovered(seven)]);
    // A short restart is none.
    await setNext(id, "2026-07-03T10:00:00Z");
    await tick("10:05:00");
    await look("10:20:00");
    expect(await announced(id)).toHaveLength(2);
  });

  test("that was missed and is skipped is announced if the next is not soon", async () => {
    const id = await addSchedule({}, "skip");
    await tick("07:03:00");
    expect(await look("07:09:00")).toEqual({ silent: 0, recovered: 0 });
    expect(await look("07:10:00")).toEqual({ silent: 1, recovered: 0 });
    expect((await runs.get(id)).alert.reason).toBe(`the tick of ${seven} did not fire: no worker looked at it in time`);
  });

  test("because runs failed in a row is announced; resuming is no firing", async () => {
    const id = await addSchedule({ failuresBeforePause: 1 });
    for (const session of await runs.begin(id)) await runs.end(session, broken);
    await tick("07:00:01");
    await tick("08:00:01");
    expect(await look("08:01:00")).toEqual({ silent: 1, recovered: 0 });
    const { alert } = await runs.get(id);
    expect(alert).toEqual({
      since: seven,
      reason: expect.stringContaining("the automation is paused, because a run failed") as string,
    });
    await update(id, { paused: false });
    expect(await look("08:02:00")).toEqual({ silent: 0, recovered: 0 });
    await setNext(id, "2026-07-03T09:00:00Z");
    await tick("09:00:01");
    expect(await look("09:00:30")).toEqual({ silent: 0, recovered: 1 });
    // Resumed before an announcement: nothing is overdue.
    for (const session of await runs.begin(id)) await runs.end(session, broken);
    await tick("10:00:01");
    await update(id, { paused: false });
    expect(await look("10:11:00")).toEqual({ silent: 0, recovered: 0 });
  });

  test("is not expected of an automation that a person paused, disabled or deleted", async () => {
    const paused = await addSchedule({ paused: true });
    await tick("07:00:01");
    expect(await look("07:30:00")).toEqual({ silent: 0, recovered: 0 });
    expect(await announced(paused)).toEqual([]);
    const ids = [await addSchedule(), await addSchedule(), await addSchedule()];
    expect(await look("07:30:00")).toEqual({ silent: 3, recovered: 0 });
    const [pausedNow = "", deleted = "", disabled = ""] = ids;
    await update(pausedNow, { paused: true });
    await api.post(`/automation/${deleted}/delete`, {});
    await update(disabled, { triggers: [] });
    expect(await look("07:31:00")).toEqual({ silent: 0, recovered: 3 });
    expect((await announced(pausedNow)).at(-1)).toEqual(recovered(seven, "somebody paused it"));
    expect((await announced(deleted)).at(-1)).toEqual(recovered(seven, "it was deleted"));
    expect((await announced(disabled)).at(-1)).toEqual(recovered(seven));
  });

  test("because the workers are behind is announced until one begins its run", async () => {
    const id = await addSchedule();
    await tick("07:00:01");
    await api.database.pool.query("update job set created_at = $2 where automation_id = $1", [id, on("07:00:01")]);
    expect(await look("07:09:00")).toEqual({ silent: 0, recovered: 0 });
    expect(await look("07:11:00")).toEqual({ silent: 1, recovered: 0 });
    expect((await runs.get(id)).alert.reason).toContain("has waited for a worker since 2026-07-03T07:00:01.000Z");
    await runs.runNextJob();
    expect(await look("07:12:00")).toEqual({ silent: 0, recovered: 1 });
  });

  test("because the run before it never ends is announced once the next tick's run waits behind it", async () => {
    const queue = { concurrency: { key: "'one'", policy: "queue" } };
    const id = await addSchedule({
      triggers: [{ type: "schedule", cron: "0 * * * *", missed: "skip", ...queue }],
    });
    /** The tick of an hour, and its run as of then. */
    const tickAt = async (hour: number): Promise<void> => {
      const time = `0${hour}:00:01`;
      await tick(time);
      await api.database.pool.query(
        "update job set created_at = $2 where id = (select id from job where automation_id = $1 order by created_at desc limit 1)",
        [id, on(time)],
      );
    };
    await tickAt(7);
    await runs.runNextJob();
    await tickAt(8);
    // A run may last longer than from one tick to the next.
    expect(await look("08:50:00")).toEqual({ silent: 0, recovered: 0 });
    await tickAt(9);
    expect(await look("09:01:00")).toEqual({ silent: 1, recovered: 0 });
    const { reason } = (await runs.get(id)).alert;
    expect(reason).toContain("has waited for the runs before it since 2026-07-03T08:00:01.000Z");
    // The first one ends, and the second begins.
    await api.database.pool.query(
      "update job set held_until = null where id = (select id from job where automation_id = $1 and held_until is not null order by created_at limit 1)",
      [id],
    );
    await runs.runNextJob();
    expect(await look("09:12:00")).toEqual({ silent: 0, recovered: 1 });
  });

  test("raises one alert if several workers look at once, and if the clock jumps and comes back", async () => {
    const id = await addSchedule();
    const found = await Promise.all([1, 2, 3, 4].map(() => look("07:30:00")));
    expect(found.reduce((sum, { silent }) => sum + silent, 0)).toBe(1);
    await tick("07:30:00");
    expect(await look("07:30:30")).toEqual({ silent: 0, recovered: 1 });
    expect(await look("23:30:00")).toEqual({ silent: 1, recovered: 0 });
    expect(await look("07:31:00")).toEqual({ silent: 0, recovered: 1 });
    expect(await look("07:32:00")).toEqual({ silent: 0, recovered: 0 });
    expect(await announced(id)).toHaveLength(4);
  });
});

describe("an automation of which runs are expected", () => {
  const hour = 3_600_000;
  const lookIn = (hours: number) => reviewSilences(api.database, new Date(Date.now() + hours * hour));
  const fire = async (id: string): Promise<void> => void (await runs.begin(id));

  test("raises an alert if fewer fire within the hours, until enough do", async () => {
    const id = await runs.add({ expect: { atLeast: 2, everyHours: 24 } });
    await fire(id);
    expect(await lookIn(23.9)).toEqual({ silent: 0, recovered: 0 });
    await api.database.pool.query(
      "update automation set expect_since = now() - interval '24 hours 1 minute' where id = $1",
      [id],
    );
    expect(await lookIn(0)).toEqual({ silent: 1, recovered: 0 });
    expect((await runs.get(id)).alert.reason).toBe("it fired 1 time within 24 h, and at least 2 are expected");
    // A job that waits has not fired.
    await runs.trigger(id);
    expect(await lookIn(0)).toEqual({ silent: 0, recovered: 0 });
    await runs.runNextJob();
    expect(await lookIn(0)).toEqual({ silent: 0, recovered: 1 });
    expect((await announced(id)).map(([type]) => type)).toEqual(["automation.silent", "automation.recovered"]);
  });

  test("owes nothing while a person has it paused, and begins anew afterwards, or with another expectation", async () => {
    const id = await runs.add({ expect: { atLeast: 1, everyHours: 1 } });
    await update(id, { paused: true });
    expect(await lookIn(5)).toEqual({ silent: 0, recovered: 0 });
    await api.database.pool.query("update automation set expect_since = now() - interval '2 days' where id = $1", [id]);
    await update(id, { paused: false });
    expect(await lookIn(0.5)).toEqual({ silent: 0, recovered: 0 });
    expect(await lookIn(1.5)).toEqual({ silent: 1, recovered: 0 });
    await update(id, { expect: null });
    expect(await lookIn(1.5)).toEqual({ silent: 0, recovered: 1 });
  });

  test("keeps the jobs that are counted, however soon others are removed", async () => {
    const counted = await runs.add({ expect: { atLeast: 1, everyHours: 72 } });
    const other = await runs.add();
    for (const id of [counted, other]) {
      for (const session of await runs.begin(id)) await runs.end(session, "completed");
    }
    await api.database.pool.query(
      "update job set created_at = now() - interval '2 days', updated_at = now() - interval '2 days'",
    );
    expect(await pruneJobs(api.database, 1, forever)).toBe(1);
    await api.database.pool.query("update automation set expect_since = now() - interval '9 days'");
    expect(await lookIn(0)).toEqual({ silent: 0, recovered: 0 });
    await api.database.pool.query("update job set created_at = now() - interval '4 days'");
    expect(await pruneJobs(api.database, 1, forever)).toBe(1);
    expect(await lookIn(0)).toEqual({ silent: 1, recovered: 0 });
  });

  test("says what can't be expected", async () => {
    const refused = [
      { atLeast: 0, everyHours: 1 },
      { atLeast: 1, everyHours: 745 },
      { atLeast: 1 },
      { atLeast: 1.5, everyHours: 1 },
      "daily",
    ];
    for (const expectation of refused) {
      const body = { name: "a", macro: "refused", instructions: "Work", expect: expectation };
      const answer = await api.post("/automation/create", body);
      expect([answer.status, answer.body.error]).toEqual([400, expect.stringMatching(/^expect/u)]);
    }
  });
});
