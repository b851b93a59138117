import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claimJob, completeJob } from "../../src/store/automations/jobs.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { addSession, requireClaim } from "../store/fixtures.ts";
import { decideAllEvents } from "./decide-all.ts";

let api: TestApp;

beforeEach(async () => {
  api = await createTestApp();
});
afterEach(() => api.close());

async function addAutomation(trigger: object, more: object = {}): Promise<string> {
  const macro = `m-${randomUUID().slice(0, 13)}`;
  const { status, body } = await api.post("/automation/create", {
    name: macro,
    macro,
    instructions: "Work",
    triggers: [{ type: "forge", ...trigger }],
    ...more,
  });
  expect([status, body.error]).toEqual([200, undefined]);
  return body.id;
}

const decideAll = () => decideAllEvents(api);
const entry = async (id: string) => (await api.get(`/ledger/${id}`)).body;
const runsOf = async (automationId: string) => (await api.get(`/automation/${automationId}/runs`)).body.runs;

async function runSession(automationId: string, status: "completed" | "failed"): Promise<string> {
  await api.post(`/automation/${automationId}/trigger`, {});
  return runNext(status);
}

/** Gives the next job a session, and ends it as a worker does. */
async function runNext(status: "completed" | "failed"): Promise<string> {
  const { database } = api;
  const job = await claimJob(database, { worker: "w", leaseMs: 60_000 });
  if (job === null) throw new Error("no job was pending");
  const session = await addSession(database, api.organizationId, { automationId: job.automation.id, jobId: job.id });
  await completeJob(database.pool, job, session.id);
  expect((await requireClaim(database)).sessionId).toBe(session.id);
  await database.pool.query("select move_session($1, $2, null, null, null, false, waits_for => null)", [
    session.id,
    status,
  ]);
  return job.automation.id;
}

/** Runs whatever events start, to the end, or until there were 50 runs. @returns how many there were */
async function runAll(status: "completed" | "failed" = "completed"): Promise<number> {
  let runs = 0;
  for (; runs < 50; runs += 1) {
    await decideAll();
    const { rows } = await api.database.pool.query("select 1 from job where status = 'pending'");
    if (rows.length === 0) break;
    await runNext(status);
  }
  return runs;
}

test("an event of Offstage itself starts the automations that listen to it, but never its own", async () => {
  const watched = await addAutomation({ events: ["session.failed"] });
  const watcher = await addAutomation({ events: ["session.failed"], condition: "event.session.status == 'failed'" });
  await runSession(watched, "completed");
  await decideAll();
  expect(await runsOf(watcher)).toEqual([]);
  await runSession(watched, "failed");
  await decideAll();
  expect(await runsOf(watched)).toHaveLength(2);
  const [run] = await runsOf(watcher);
  expect((await entry(run.id)).payload.session).toMatchObject({ automationId: watched, status: "failed" });
  await runNext("completed");
});

test("a trigger that names a connection hears events of Offstage itself too, which no connection delivers", async () => {
  const watcher = await addAutomation({ events: ["push", "session.failed"], connectionId: randomUUID() });
  const deaf = await addAutomation({ events: ["push"], connectionId: randomUUID() });
  await runSession(await addAutomation({ events: ["push"] }), "failed");
  await decideAll();
  expect(await runsOf(watcher)).toHaveLength(1);
  expect(await runsOf(deaf)).toEqual([]);
});

test("events of Offstage itself end a chain of automations that start each other", async () => {
  const first = await addAutomation({ events: ["session.completed"] });
  const second = await addAutomation({ events: ["session.completed"] });
  await runSession(first, "completed");
  const runs = await runAll();
  // The positive control: they do start each other.
  expect(await runsOf(second)).not.toEqual([]);
  expect(runs).toBe(2);
});

test("a chain of automations that each start the next ends after five", async () => {
  const ids: string[] = [];
  for (let index = 0; index < 8; index += 1) {
    const condition = index === 0 ? "false" : `event.session.automationId == '${ids[index - 1]}'`;
    ids.push(await addAutomation({ events: ["session.completed"], condition }));
  }
  await runSession(ids[0] ?? "", "completed");
  const runs = await runAll();
  expect(runs).toBe(5);
  const { entries } = (await api.get("/ledger/list?outcome=filtered&limit=100")).body;
  expect(entries.map(({ reason }: { reason: string }) => reason)).toContain(
    "it ends a chain of 5 runs of which each started the next",
  );
});

test("ten automations that listen to every session start no more than ten runs", async () => {
  const ids: string[] = [];
  for (let index = 0; index < 10; index += 1) ids.push(await addAutomation({ events: ["session.completed"] }));
  await runSession(ids[0] ?? "", "completed");
  let runs = 0;
  for (; runs < 100; runs += 1) {
    await decideAll();
    const { rows } = await api.database.pool.query("select 1 from job where status = 'pending'");
    if (rows.length === 0) break;
    await runNext("completed");
  }
  expect(runs).toBe(10);
});

test("automations whose runs all fail, and which nothing pauses, come to rest", async () => {
  const endless = { failuresBeforePause: 0 };
  const ids: string[] = [];
  for (let index = 0; index < 3; index += 1) ids.push(await addAutomation({ events: ["session.failed"] }, endless));
  for (let round = 1; round <= 2; round += 1) {
    await runSession(ids[0] ?? "", "failed");
    expect(await runAll("failed")).toBe(3);
  }
  expect((await api.get(`/automation/${ids[0]}`)).body.paused).toBe(false);
});
