import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runStatusOf } from "../../src/domain/automations/run.ts";
import { newSession } from "../../src/domain/sessions/new-session.ts";
import { createLogger } from "../../src/observability.ts";
import { releaseHeldJobs } from "../../src/store/automations/firings.ts";
import { claimJob, completeJob, recoverJobs, type ClaimedJob } from "../../src/store/automations/jobs.ts";
import type { ClaimedSession } from "../../src/store/queue/claims.ts";
import { recordGate } from "../../src/store/queue/gate.ts";
import { createRun } from "../../src/store/sessions/new-run.ts";
import { createSession } from "../../src/store/sessions/new-session.ts";
import { deleteSession } from "../../src/store/sessions/delete-session.ts";
import { queueSession } from "../../src/store/sessions/sessions.ts";
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

const repositories = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `https://example.com/acme/r${index}`);
const addFanOut = (count: number, settings: object = {}): Promise<string> =>
  runs.add({ fanOut: true, repositories: repositories(count), ...settings });
// oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
const job = async (id: string): Promise<any> => (await api.get(`/job/${id}`)).body;
async function start(automationId: string): Promise<string> {
  const id = await runs.trigger(automationId);
  await runs.runNextJob();
  return id;
}
async function claimNext(): Promise<ClaimedJob> {
  const claimed = await claimJob(api.database, { worker: "w", leaseMs: longLeaseMs });
  if (claimed === null) throw new Error("no job was pending");
  return claimed;
}
const run = (claimed: ClaimedJob): Promise<void> =>
  runJob(
    {
      database: api.database,
      logger: createLogger("silent"),
      traces: noTraces,
      ...noForge,
      templates: api.templates,
      sandboxed: true,
    },
    claimed,
  );
async function sessionsOf(id: string): Promise<number> {
  const { rowCount } = await api.database.pool.query("select from session where job_id = $1", [id]);
  return rowCount ?? 0;
}

describe("an automation that fans out", () => {
  test("is filtered once the gate of each of its sessions has said so", async () => {
    const id = await start(await addFanOut(2, { gate: "exit 1" }));
    const filtered = { outcome: "filtered", code: 1, output: "", log: "", reason: "nothing to do" } as const;
    await recordGate(api.database, await requireClaim(api.database), filtered);
    expect((await job(id)).status).toBe("completed");
    await recordGate(api.database, await requireClaim(api.database), filtered);
    expect(await job(id)).toMatchObject({ status: "cancelled", error: "nothing to do" });
  });

  test("has a session for each repository, which its job shows with one state; an older client sees the first", async () => {
    const id = await start(await addFanOut(3));
    const shown = await job(id);
    expect(shown).toMatchObject({ status: "completed", runStatus: "running", error: null });
    expect(shown.sessions.map(({ repositories: [{ name }] }: { repositories: [{ name: string }] }) => name)).toEqual([
      "acme/r0",
      "acme/r1",
      "acme/r2",
    ]);
    expect([shown.sessionId, shown.sessionHtmlUrl]).toEqual([shown.sessions[0].id, shown.sessions[0].htmlUrl]);
    for (const { id: sessionId } of shown.sessions) {
      expect((await api.get(`/session/${sessionId}`)).body).toMatchObject({ jobId: id, status: "queued" });
    }
    const claimed = [await requireClaim(api.database), await requireClaim(api.database)];
    const third = await requireClaim(api.database);
    for (const session of claimed) await runs.end(session, "completed");
    expect((await job(id)).runStatus).toBe("running");
    await runs.end(third, broken);
    expect((await job(id)).runStatus).toBe("failed");
    expect((await api.get(`/ledger/${id}`)).body.outcome).toBe("fired");
    // Deleting the first leaves the others.
    await deleteSession(api.database, api.organizationId, shown.sessionId);
    expect(await job(id)).toMatchObject({ sessionId: shown.sessions[1].id, sessions: [{}, {}] });
  });

  test("has one session as before if it has one repository or none, or does not fan out", async () => {
    for (const settings of [
      { fanOut: true, repositories: repositories(1) },
      { fanOut: true },
      { repositories: repositories(3) },
    ]) {
      const id = await start(await runs.add(settings));
      expect(await job(id)).toMatchObject({ status: "completed", sessions: [{ status: "queued" }] });
    }
  });

  test("may have 100 repositories, and only while it fans out", async () => {
    const id = await addFanOut(100);
    expect((await runs.get(id)).repositories).toHaveLength(100);
    const refused = async (settings: object) => (await api.post(`/automation/${id}/update`, settings)).body.error;
    expect(await refused({ fanOut: false })).toBe(
      "fanOut: the automation has 100 repositories, and a session can have at most 20",
    );
    expect(await refused({ repositories: repositories(101) })).toMatch(/at most 100$/u);
    expect(await refused({ fanOut: false, repositories: repositories(21) })).toMatch(/at most 20$/u);
    await expect(runs.add({ repositories: repositories(21) })).rejects.toThrow("at most 20");
    const started = await start(id);
    expect(await sessionsOf(started)).toBe(100);
    expect((await job(started)).sessions).toHaveLength(100);
    expect(await refused({ fanOut: false, repositories: repositories(20) })).toBeUndefined();
  });
});

describe("the sessions of one run", () => {
  test("are all made or none, and never twice, if its worker is killed or has lost the job", async () => {
    const id = await runs.trigger(await addFanOut(7));
    const claimed = await claimNext();
    const sessions = claimed.automation.repositories.map((repository, jobPart) =>
      newSession({ prompt: "Work", repositories: [repository], sandboxed: true, jobId: id, jobPart }),
    );
    // Killed after the first statements of the transaction: the last session refers to no repository that exists.
    const gone = { id: randomUUID(), name: "acme/gone" };
    const broke = [
      ...sessions.slice(0, -1),
      newSession({ prompt: "Work", repositories: [gone], sandboxed: true, jobId: id, jobPart: 6 }),
    ];
    await expect(createRun(api.database, claimed, broke, { replyTarget: null, delivered: null })).rejects.toThrow(
      "foreign key",
    );
    expect(await sessionsOf(id)).toBe(0);
    await api.database.pool.query("update job set lease_until = now() - interval '1 second' where id = $1", [id]);
    await recoverJobs(api.database, {});
    const again = await claimNext();
    // The first worker was only slow.
    expect(await createRun(api.database, claimed, sessions, { replyTarget: null, delivered: null })).toEqual([]);
    expect(await sessionsOf(id)).toBe(0);
    await Promise.all([run(again), run(again)]);
    expect(await sessionsOf(id)).toBe(7);
    expect(await createRun(api.database, again, sessions, { replyTarget: null, delivered: null })).toEqual([]);
    expect(await sessionsOf(id)).toBe(7);
    expect((await job(id)).status).toBe("completed");
  });

  test("stay one if the automation began to fan out after a worker made it, and died", async () => {
    const automationId = await runs.add({ repositories: repositories(3) });
    const id = await runs.trigger(automationId);
    const claimed = await claimNext();
    const made = newSession({
      prompt: "Work",
      repositories: claimed.automation.repositories,
      sandboxed: true,
      automationId,
      jobId: id,
    });
    await createSession(api.database, api.organizationId, made);
    await api.post(`/automation/${automationId}/update`, { fanOut: true });
    await api.database.pool.query("update job set lease_until = now() - interval '1 second' where id = $1", [id]);
    await recoverJobs(api.database, {});
    await run(await claimNext());
    expect(await job(id)).toMatchObject({ status: "completed", sessionId: made.id, sessions: [{ id: made.id }] });
  });

  test("are not made by a node of the version before, which gets no such job", async () => {
    await runs.trigger(await addFanOut(2));
    const old = () => api.database.pool.query("select job_id from claim_job('old', interval '1 minute')");
    expect((await old()).rows).toEqual([]);
    const usual = await runs.add();
    await run(await claimNext());
    // The positive control.
    const id = await runs.trigger(usual);
    expect((await old()).rows).toEqual([{ job_id: id }]);
  });

  test("do not hold up the jobs that a node of the version before gets, however many there are", async () => {
    const old = async (): Promise<unknown[]> =>
      (await api.database.pool.query("select job_id from claim_job('old', interval '1 minute')")).rows;
    // Of one automation alone, of several, and more urgent than the others.
    for (let count = 0; count < 3; count += 1) {
      const id = await addFanOut(2, { priority: 1 });
      for (let each = 0; each < 4; each += 1) await runs.trigger(id);
      expect(await old()).toEqual([]);
    }
    const usual = [await runs.trigger(await runs.add()), await runs.trigger(await runs.add({ priority: 2 }))];
    // The more urgent first.
    expect(await old()).toEqual([{ job_id: usual[1] }]);
    expect(await old()).toEqual([{ job_id: usual[0] }]);
    expect(await old()).toEqual([]);
    expect((await claimNext()).automation.fanOut).toBe(true);
  });

  test("are cancelled together, whatever has ended already", async () => {
    const id = await start(await addFanOut(3));
    await runs.end(await requireClaim(api.database), "completed");
    const { status, body } = await api.post(`/job/${id}/cancel`, {});
    expect([status, body.runStatus]).toEqual([200, "cancelled"]);
    expect(body.sessions.map((session: { status: string }) => session.status).toSorted()).toEqual([
      "cancelled",
      "cancelled",
      "completed",
    ]);
    const again = await api.post(`/job/${id}/cancel`, {});
    expect([again.status, again.body.error]).toEqual([409, `job ${id} has already ended`]);
    const waiting = await runs.trigger(await addFanOut(2));
    expect((await api.post(`/job/${waiting}/cancel`, {})).body).toMatchObject({
      status: "cancelled",
      error: "somebody cancelled it",
      sessions: [],
    });
    const starting = await runs.trigger(await addFanOut(2));
    await claimNext();
    const answer = await api.post(`/job/${starting}/cancel`, {});
    expect([answer.status, answer.headers["retry-after"]]).toEqual([409, "1"]);
    expect((await api.post(`/job/${randomUUID()}/cancel`, {})).status).toBe(404);
  });

  test("hold their run's key until the last has ended, and are superseded together", async () => {
    const queued = await addFanOut(2, {
      triggers: [{ type: "api", concurrency: { key: "'one'", policy: "queue" } }],
    });
    await start(queued);
    const next = await runs.trigger(queued);
    const [first, second] = [await requireClaim(api.database), await requireClaim(api.database)];
    await runs.end(first, "completed");
    expect(await releaseHeldJobs(api.database)).toBe(0);
    await runs.end(second, "completed");
    expect(await releaseHeldJobs(api.database)).toBe(1);
    await api.post(`/job/${next}/cancel`, {});
    const newest = await addFanOut(3, {
      triggers: [{ type: "api", concurrency: { key: "'one'", policy: "cancelOlder" } }],
    });
    const older = await start(newest);
    await runs.trigger(newest);
    expect(await releaseJobs(api.database, createLogger("silent"))).toBe(1);
    expect(await job(older)).toMatchObject({
      runStatus: "cancelled",
      sessions: [{ status: "cancelled" }, { status: "cancelled" }, { status: "cancelled" }],
    });
  });

  test("count as one run, however many of them fail, and once all have ended", async () => {
    const id = await addFanOut(4);
    const begun = await runs.begin(id);
    const [first, ...others] = begun;
    if (first === undefined) throw new Error("the run has no session");
    await runs.end(first, broken);
    expect((await runs.get(id)).failedInARow).toBe(0);
    await Promise.all(others.map((session, index) => runs.end(session, index === 0 ? "completed" : broken)));
    expect((await runs.get(id)).failedInARow).toBe(1);
    // Tried again by a person, all are completed: the run is.
    for (const { sessionId } of begun) {
      await queueSession(api.database, api.organizationId, sessionId).catch(() => undefined);
    }
    for (const _ of begun) await runs.end(await requireClaim(api.database), "completed");
    expect((await runs.get(id)).failedInARow).toBe(0);
  });

  test("count for their automation as the state says that their job shows", async () => {
    const outcomes = ["completed", "failed", "cancelled"] as const;
    for (const one of outcomes) {
      for (const other of outcomes) {
        const id = await addFanOut(2);
        const begun = await runs.begin(id);
        await Promise.all(
          [one, other].map(async (outcome, index) => {
            const session = begun[index] as ClaimedSession;
            await api.database.pool.query("select move_session($1, $2, null, null, null, false, waits_for => null)", [
              session.sessionId,
              outcome,
            ]);
          }),
        );
        const { rows } = await api.database.pool.query("select counted from job where automation_id = $1", [id]);
        const status = runStatusOf("completed", [one, other]);
        expect([one, other, rows]).toEqual([one, other, [{ counted: status === "cancelled" ? null : status }]]);
      }
    }
  });

  test("keep the job that nodes of the version before complete", async () => {
    const id = await runs.trigger(await runs.add());
    const claimed = await claimNext();
    const made = await createSession(
      api.database,
      api.organizationId,
      newSession({ prompt: "Work", repositories: [], sandboxed: true, jobId: id }),
    );
    // A second session of the same job is the first.
    const again = await createSession(
      api.database,
      api.organizationId,
      newSession({ prompt: "Work", repositories: [], sandboxed: true, jobId: id }),
    );
    expect(again.id).toBe(made.id);
    await completeJob(api.database.pool, claimed, made.id);
    expect(await sessionsOf(id)).toBe(1);
  });
});
