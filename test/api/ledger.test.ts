import { afterAll, beforeAll, expect, test } from "vitest";
import { createLogger } from "../../src/observability.ts";
import { claimJob, recoverJobs, type ClaimedJob } from "../../src/store/automations/jobs.ts";
import { noTraces } from "../../src/traces.ts";
import { runJob } from "../../src/worker/run-job.ts";
import { createTestApp, type TestApp } from "./app.ts";
import { noForge } from "../no-forge.ts";

let api: TestApp;
let automationId: string;

beforeAll(async () => {
  api = await createTestApp();
  const { body } = await api.post("/automation/create", {
    name: "Fix",
    macro: "fix",
    instructions: "Fix {{ event.issue }}",
  });
  automationId = body.id;
});

afterAll(() => api.close());

async function takeJob(): Promise<ClaimedJob> {
  const job = await claimJob(api.database, { worker: "worker", leaseMs: 60_000 });
  if (job === null) throw new Error("no job was pending");
  return job;
}

/** Carries out what is pending, as a worker does. */
async function runNext(database = api.database): Promise<ClaimedJob> {
  const job = await takeJob();
  const { templates } = api;
  await runJob(
    { database, logger: createLogger("silent"), traces: noTraces, templates, ...noForge, sandboxed: true },
    job,
  );
  return job;
}

const trigger = async (event: unknown, headers: Record<string, string> = {}): Promise<string> =>
  (await api.post("/automation/fix/trigger", event, { headers })).body.id;
const entry = async (id: string) => (await api.get(`/ledger/${id}`)).body;

test("a trigger is under way, and then fired with its session", async () => {
  const id = await trigger({ issue: 7 });
  expect(await entry(id)).toMatchObject({ automationId, outcome: null, sessionId: null });
  await runNext();
  expect(await entry(id)).toMatchObject({ outcome: "fired", sessionId: expect.any(String) as string });
});

test("sessions are narrowed to those of an automation, in lists and in searches", async () => {
  const id = await trigger({ issue: "narrow" });
  await runNext();
  const { sessionId } = await entry(id);
  const other = await api.post("/session/create", { prompt: "Fix another narrow thing", queueRightAway: false });
  const idsOf = async (path: string): Promise<string[]> =>
    (await api.get(path)).body.sessions.map((session: { id: string }) => session.id);
  const ofAutomation = await idsOf(`/session/list?automationId=${automationId}`);
  expect(ofAutomation).toContain(sessionId);
  expect(ofAutomation).not.toContain(other.body.id);
  expect(await idsOf("/session/search?q=narrow")).toEqual([other.body.id, sessionId]);
  expect(await idsOf(`/session/search?q=narrow&automationId=${automationId}`)).toEqual([sessionId]);
  expect(await idsOf("/session/search?q=narrow&status=draft")).toEqual([other.body.id]);
  expect((await api.get("/session/list?automationId=none")).status).toBe(400);
});

test("a trigger whose instructions can't be rendered has failed, and says why", async () => {
  const id = await trigger({ something: "else" });
  await runNext();
  expect(await entry(id)).toMatchObject({ outcome: "failed", reason: expect.stringContaining("issue") as string });
});

test("a trigger that is sent again is a duplicate of the first, and fires nothing", async () => {
  const headers = { "Idempotency-Key": "once" };
  const id = await trigger({ issue: 8 }, headers);
  expect(await trigger({ issue: 8 }, headers)).toBe(id);
  await runNext();
  expect(await claimJob(api.database, { worker: "worker", leaseMs: 60_000 })).toBeNull();
  const { entries } = (await api.get("/ledger/list?outcome=duplicate")).body;
  expect(entries).toHaveLength(1);
  expect(entries[0]).toMatchObject({ originalId: id, automationId, sessionId: null });
  // What was a duplicate is repeated with what the first came with.
  const { body: job } = await api.post(`/ledger/${entries[0].id}/replay`, {});
  expect((await runNext()).payload).toEqual({ issue: 8 });
  expect(await entry(job.id)).toMatchObject({ originalId: entries[0].id, outcome: "fired" });
});

test("a job whose worker breaks off ten times is dead-lettered, and can be replayed", async () => {
  const id = await trigger({ issue: 9 });
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    expect((await takeJob()).id).toBe(id);
    await recoverJobs(api.database, { worker: "worker" });
  }
  expect(await entry(id)).toMatchObject({
    outcome: "dead-lettered",
    reason: expect.stringContaining("broke off 10 times") as string,
  });
  const { body: again } = await api.post(`/ledger/${id}/replay`, {});
  await runNext();
  expect(await entry(again.id)).toMatchObject({ outcome: "fired", originalId: id });
});

test("what breaks inside Offstage is tried again and loses no trigger", async () => {
  const id = await trigger({ issue: 10 });
  const broken = { ...api.database, pool: { query: () => Promise.reject(new Error("the connection broke")) } };
  await runNext(broken as never);
  expect(await entry(id)).toMatchObject({ outcome: null });
  await recoverJobs(api.database, { worker: "worker" });
  await runNext();
  expect(await entry(id)).toMatchObject({ outcome: "fired" });
});

test("a replay is refused while the entry is under way, while the automation is paused, and once it is gone", async () => {
  const id = await trigger({ issue: 11 });
  expect(await api.post(`/ledger/${id}/replay`, {})).toMatchObject({
    status: 409,
    body: { error: expect.stringContaining("not finished yet") as string },
  });
  await runNext();
  await api.post("/automation/fix/update", { paused: true });
  expect(await api.post(`/ledger/${id}/replay`, {})).toMatchObject({
    status: 409,
    body: { error: expect.stringContaining("is paused") as string },
  });
  await api.post("/automation/fix/update", { paused: false });
  await api.post("/automation/fix/delete", {});
  expect(await api.post(`/ledger/${id}/replay`, {})).toMatchObject({
    status: 409,
    body: { error: expect.stringContaining("is gone") as string },
  });
});

test("pages give every entry once, jobs and duplicates in one order", async () => {
  const all: { id: string; createdAt: string }[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `&cursor=${cursor}`;
    const { body } = await api.get(`/ledger/list?limit=2${query}`);
    all.push(...body.entries);
    cursor = body.nextCursor;
  } while (cursor !== null);
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  expect(all.length).toBeGreaterThanOrEqual(8);
  expect(all.map(({ createdAt }) => createdAt)).toEqual(
    all
      .map(({ createdAt }) => createdAt)
      .toSorted()
      .reverse(),
  );
  const other = await api.get("/ledger/list", { key: null });
  expect(other.status).toBe(401);
});
