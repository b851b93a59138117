import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newSession } from "../../src/domain/sessions/new-session.ts";
import { createLogger } from "../../src/observability.ts";
import { claimJob, failJob, recoverJobs, type ClaimedJob } from "../../src/store/automations/jobs.ts";
import { createSession } from "../../src/store/sessions/new-session.ts";
import { noTraces } from "../../src/traces.ts";
import { releaseJobs } from "../../src/worker/background/held-jobs.ts";
import { runJob } from "../../src/worker/run-job.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { longLeaseMs, requireClaim } from "../store/fixtures.ts";
import { broken, createRuns, type Runs } from "./run.ts";
import { noForge } from "../no-forge.ts";

let api: TestApp;
let runs: Runs;
beforeEach(async () => {
  api = await createTestApp();
  runs = createRuns(api);
});
afterEach(() => api.close());

// oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
const job = async (id: string): Promise<any> => (await api.get(`/job/${id}`)).body;
const statusOf = async (sessionId: string): Promise<unknown> => (await api.get(`/session/${sessionId}`)).body.status;
async function claimNext(): Promise<ClaimedJob> {
  const claimed = await claimJob(api.database, { worker: "w", leaseMs: longLeaseMs });
  if (claimed === null) throw new Error("no job was pending");
  return claimed;
}
async function recover(id: string): Promise<void> {
  await api.database.pool.query("update job set lease_until = now() - interval '1 second' where id = $1", [id]);
  await recoverJobs(api.database, {});
}

/** A worker of the version before creates the job's session, and is killed before it completes the job, which is then pending again. */
async function kill(automationId: string): Promise<{ readonly id: string; readonly sessionId: string }> {
  const id = await runs.trigger(automationId);
  const claimed = await claimNext();
  expect(claimed.id).toBe(id);
  const session = newSession({ prompt: "Work", repositories: [], sandboxed: true, automationId, jobId: id });
  await createSession(api.database, api.organizationId, session);
  await recover(id);
  expect((await job(id)).status).toBe("pending");
  return { id, sessionId: session.id };
}

test("a worker that is killed between creating a run's session and completing its job has created none", async () => {
  const id = await runs.trigger(await runs.add());
  const claimed = await claimNext();
  // The server refuses the last statement of it.
  await api.database.pool.query(`create function refuse() returns trigger language plpgsql as $$
    begin raise exception 'killed'; end $$;
    create trigger refuse before update on job for each row when (new.status = 'completed') execute function refuse()`);
  const dependencies = {
    database: api.database,
    logger: createLogger("silent"),
    traces: noTraces,
    ...noForge,
    sandboxed: true,
  };
  await runJob({ ...dependencies, templates: api.templates }, claimed);
  expect(await job(id)).toMatchObject({ status: "running", sessions: [] });
  await api.database.pool.query("drop trigger refuse on job");
  await recover(id);
  await runs.runNextJob();
  expect(await job(id)).toMatchObject({ status: "completed", sessions: [{ status: "queued" }] });
});

describe("a run whose worker was killed after it had created the session", () => {
  test("is cancelled with its session", async () => {
    const { id, sessionId } = await kill(await runs.add());
    const { status, body } = await api.post(`/job/${id}/cancel`, {});
    expect([status, body.sessions]).toMatchObject([200, [{ id: sessionId, status: "cancelled" }]]);
    expect(await statusOf(sessionId)).toBe("cancelled");
    await runs.runNextJob();
    expect(await job(id)).toMatchObject({ status: "completed", sessionId, runStatus: "cancelled" });
  });

  test("keeps its key until the session, of which a newer run takes the place, is cancelled", async () => {
    const automationId = await runs.add({
      triggers: [{ type: "api", concurrency: { key: "'one'", policy: "cancelOlder" } }],
    });
    const { id, sessionId } = await kill(automationId);
    const newer = await runs.trigger(automationId);
    // What has begun nothing is cancelled at once.
    await runs.trigger(automationId);
    expect((await job(newer)).status).toBe("cancelled");
    expect(await job(id)).toMatchObject({ status: "pending", error: expect.stringContaining("cancelOlder") as string });
    expect(await releaseJobs(api.database, createLogger("silent"))).toBe(0);
    expect(await statusOf(sessionId)).toBe("cancelled");
    await runs.runNextJob();
    expect(await releaseJobs(api.database, createLogger("silent"))).toBe(1);
  });

  test("counts when the session ends, and once", async () => {
    const automationId = await runs.add();
    const { id } = await kill(automationId);
    await runs.end(await requireClaim(api.database), broken);
    expect((await runs.get(automationId)).failedInARow).toBe(1);
    // A worker of the version before claims the job, and can't render it.
    await failJob(api.database, await claimNext(), "it can't be rendered");
    expect((await job(id)).status).toBe("failed");
    expect((await runs.get(automationId)).failedInARow).toBe(1);
  });

  test("goes on with its session, whatever became of the instructions meanwhile", async () => {
    const automationId = await runs.add();
    const { id, sessionId } = await kill(automationId);
    await api.post(`/automation/${automationId}/update`, { instructions: "{{ event.missing }}" });
    await runs.runNextJob();
    expect(await job(id)).toMatchObject({ status: "completed", sessionId, sessions: [{ id: sessionId }] });
    // The positive control.
    const other = await runs.trigger(automationId);
    await runs.runNextJob();
    expect((await job(other)).status).toBe("failed");
  });
});

test("a run that failed before it had a session counts once, and what becomes of a late session counts nothing", async () => {
  const automationId = await runs.add();
  const id = await runs.trigger(automationId);
  const claimed = await claimNext();
  await failJob(api.database, claimed, "it broke");
  const { rows } = await api.database.pool.query("select counted from job where id = $1", [id]);
  expect(rows).toEqual([{ counted: "failed" }]);
  expect((await runs.get(automationId)).failedInARow).toBe(1);
});
