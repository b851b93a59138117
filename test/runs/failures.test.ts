import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isUuid } from "../../src/domain/fields/uuid.ts";
import { claimJob, completeJob, failJob, recoverJobs } from "../../src/store/automations/jobs.ts";
import type { ClaimedSession } from "../../src/store/queue/claims.ts";
import { fanOutNotices } from "../../src/store/notices/deliveries.ts";
import { readQueueStats } from "../../src/store/queue/stats.ts";
import { cancelSession, queueSession } from "../../src/store/sessions/sessions.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { addPerson, addSession, longLeaseMs, requireClaim } from "../store/fixtures.ts";
import { broken, createRuns, type Runs } from "./run.ts";

let api: TestApp;
let runs: Runs;
beforeEach(async () => {
  api = await createTestApp();
  runs = createRuns(api);
  // The outbox has deliveries for those that listen alone.
  await api.post("/webhook/create", { url: "https://example.com/told", events: ["automation.paused"] });
});
afterEach(() => api.close());

async function beginOne(automationId: string): Promise<ClaimedSession> {
  const [session] = await runs.begin(automationId);
  if (session === undefined) throw new Error("the run has no session");
  return session;
}
const fail = async (automationId: string): Promise<void> => runs.end(await beginOne(automationId), broken);
const complete = async (automationId: string): Promise<void> => runs.end(await beginOne(automationId), "completed");
async function deliveredOf(automationId: string): Promise<Record<string, unknown>[]> {
  const { rows } = await api.database.pool.query<{ data: Record<string, unknown> }>(
    "select data from webhook_delivery where type = 'automation.paused' and data ->> 'id' = $1",
    [automationId],
  );
  return rows.map(({ data }) => data);
}

describe("runs that fail in a row", () => {
  test("pause their automation, of which its creator is notified by push, and others only if they chose it", async () => {
    const { database, organizationId } = api;
    const [ada, grace, boss] = [
      await addPerson(database, organizationId, { name: "Ada" }),
      await addPerson(database, organizationId, { name: "Grace" }),
      await addPerson(database, organizationId, { name: "Boss" }),
    ];
    for (const { userId, key } of [ada, grace, boss]) {
      const browser = { endpoint: `https://push.example/${userId}`, keys: { p256dh: "BAAA", auth: "AAAA" } };
      expect((await api.post("/subscription/create", browser, { key })).status).toBe(200);
    }
    const all = { settings: [{ kind: "automation.paused", push: "all" }] };
    await api.post("/notice/settings/update", all, { key: boss.key });
    const macro = "owned";
    const { body } = await api.post(
      "/automation/create",
      { name: "Owned", macro, instructions: "Work" },
      { key: ada.key },
    );
    const notified = async () => {
      while ((await fanOutNotices(database, new Set(["push"]))) > 0) continue;
      const { rows } = await database.pool.query<{ userId: string }>(
        `select user_id as "userId" from notice_delivery where kind = 'automation.paused' and data ->> 'id' = $1`,
        [body.id],
      );
      return rows.map(({ userId }) => userId).toSorted();
    };
    await fail(body.id);
    await fail(body.id);
    expect(await notified()).toEqual([]);
    await fail(body.id);
    expect(await notified()).toEqual([ada.userId, boss.userId].toSorted());
  });

  test("pause their automation at the third, which webhooks, the log and its page report once", async () => {
    const id = await runs.add();
    expect(await runs.get(id)).toMatchObject({ failuresBeforePause: 3, failedInARow: 0, pausedReason: null });
    await fail(id);
    await fail(id);
    expect(await runs.get(id)).toMatchObject({ paused: false, failedInARow: 2, pausedReason: null });
    const last = await beginOne(id);
    const queued = await runs.trigger(id);
    const { pausedByFailures: before } = (await readQueueStats(api.database)).automations;
    await runs.end(last, broken);
    const reason = "3 runs in a row failed, the last of them: The setup script ended with 1";
    const shown = await runs.get(id);
    expect(shown).toMatchObject({ paused: true, failedInARow: 3, pausedReason: reason });
    const delivered = await deliveredOf(id);
    expect(delivered).toEqual([
      {
        id,
        name: shown.name,
        macro: shown.macro,
        reason,
        failedInARow: 3,
        jobId: expect.toSatisfy(isUuid) as string,
        sessionId: last.sessionId,
      },
    ]);
    const { entries } = (await api.get("/audit/list?action=pauseAutomationAfterFailures")).body;
    expect(entries).toMatchObject([{ actor: "command", target: id, outcome: "allowed" }]);
    expect((await readQueueStats(api.database)).automations.pausedByFailures).toBe(before + 1);
    // As for any paused automation: nothing starts, and what was queued goes on.
    expect((await api.post(`/automation/${id}/trigger`, {})).status).toBe(409);
    expect((await api.get(`/job/${queued}`)).body.status).toBe("pending");
    await runs.runNextJob();
    await runs.end(await requireClaim(api.database), broken);
    expect(await runs.get(id)).toMatchObject({ paused: true, failedInARow: 4, pausedReason: reason });
    expect(await deliveredOf(id)).toHaveLength(1);
  });

  test("are forgiven by a run that is completed, and by a person who resumes the automation", async () => {
    const id = await runs.add({ failuresBeforePause: 2 });
    await fail(id);
    await complete(id);
    await fail(id);
    expect(await runs.get(id)).toMatchObject({ paused: false, failedInARow: 1 });
    await fail(id);
    expect((await runs.get(id)).paused).toBe(true);
    // Who saves it as it is resumes nothing.
    await api.post(`/automation/${id}/update`, { paused: true, name: "Renamed" });
    expect((await runs.get(id)).pausedReason).toMatch(/^2 runs in a row failed/u);
    await api.post(`/automation/${id}/update`, { paused: false });
    expect(await runs.get(id)).toMatchObject({ paused: false, failedInARow: 0, pausedReason: null });
    await fail(id);
    await api.post(`/automation/${id}/update`, { paused: false });
    expect(await runs.get(id)).toMatchObject({ paused: false, failedInARow: 1 });
    await fail(id);
    expect(await deliveredOf(id)).toHaveLength(2);
  });

  test("are counted anew if a node of the version before resumed the automation", async () => {
    const id = await runs.add({ failuresBeforePause: 2 });
    await fail(id);
    await fail(id);
    await api.database.pool.query("update automation set paused = false where id = $1", [id]);
    expect((await runs.get(id)).pausedReason).toBeNull();
    await fail(id);
    expect(await runs.get(id)).toMatchObject({ paused: false, failedInARow: 1 });
  });

  test("are no reason for what a person pauses after a node of the version before has resumed it", async () => {
    const id = await runs.add({ failuresBeforePause: 1 });
    await fail(id);
    await api.database.pool.query("update automation set paused = false where id = $1", [id]);
    await api.post(`/automation/${id}/update`, { paused: true });
    expect(await runs.get(id)).toMatchObject({ paused: true, pausedReason: null });
    const { rows } = await api.database.pool.query("select paused_reason from automation where id = $1", [id]);
    expect(rows).toEqual([{ paused_reason: null }]);
    expect((await readQueueStats(api.database)).automations.pausedByFailures).toBe(0);
  });

  test("count as one each, however often a person has them tried again", async () => {
    const id = await runs.add();
    const session = await beginOne(id);
    await runs.end(session, broken);
    for (let again = 0; again < 3; again += 1) {
      await queueSession(api.database, api.organizationId, session.sessionId);
      await runs.end(await requireClaim(api.database), broken);
    }
    expect((await runs.get(id)).failedInARow).toBe(1);
    await fail(id);
    await queueSession(api.database, api.organizationId, session.sessionId);
    await runs.end(await requireClaim(api.database), "completed");
    expect((await runs.get(id)).failedInARow).toBe(0);
    // It was completed: a later message to it is no run of the automation.
    await queueSession(api.database, api.organizationId, session.sessionId);
    await runs.end(await requireClaim(api.database), broken);
    expect((await runs.get(id)).failedInARow).toBe(0);
  });

  test("do not count while they are tried again by themselves, nor do cancelled and filtered ones in either way", async () => {
    const id = await runs.add();
    await fail(id);
    const passing = await beginOne(id);
    await runs.end(passing, { ...broken, code: "forge_unavailable", passing: true });
    expect((await runs.get(id)).failedInARow).toBe(1);
    await cancelSession(api.database, api.organizationId, passing.sessionId);
    expect((await runs.get(id)).failedInARow).toBe(1);
    const { body } = await api.post(`/automation/${id}/update`, { triggers: [{ type: "api", condition: "false" }] });
    expect(body.triggers[0].condition).toBe("false");
    await runs.trigger(id);
    expect((await runs.get(id)).failedInARow).toBe(1);
  });

  test("count too if they came to no session, and once each", async () => {
    const id = await runs.add({ instructions: "{{ event.missing }}", failuresBeforePause: 1 });
    await runs.trigger(id);
    await runs.runNextJob();
    expect(await runs.get(id)).toMatchObject({ paused: true, failedInARow: 1 });
    const [delivered] = await deliveredOf(id);
    expect(delivered).toMatchObject({ sessionId: null });
    expect(String(delivered?.["reason"])).toMatch(/^a run failed: .*event\.missing/u);
    const other = await runs.add();
    await runs.trigger(other);
    const claimed = await claimJob(api.database, { worker: "w", leaseMs: longLeaseMs });
    if (claimed === null) throw new Error("no job was pending");
    await api.database.pool.query("update job set attempt = 10, lease_until = now() where id = $1", [claimed.id]);
    expect(await recoverJobs(api.database, {})).toBe(1);
    expect(await recoverJobs(api.database, {})).toBe(0);
    // Its worker comes back to life.
    await failJob(api.database, claimed, "too late");
    expect((await runs.get(other)).failedInARow).toBe(1);
    expect((await api.get(`/ledger/${claimed.id}`)).body).toMatchObject({
      outcome: "dead-lettered",
      reason: "its worker broke off 10 times: see the server's log",
    });
  });

  test("are counted if their session ended before its job was", async () => {
    const id = await runs.add();
    await runs.trigger(id);
    const job = await claimJob(api.database, { worker: "w", leaseMs: longLeaseMs });
    if (job === null) throw new Error("no job was pending");
    const session = await addSession(api.database, api.organizationId, { automationId: id, jobId: job.id });
    await runs.end(await requireClaim(api.database), broken);
    await completeJob(api.database.pool, job, session.id);
    expect((await runs.get(id)).failedInARow).toBe(1);
  });

  test("that end at the same moment are all counted, and one of them pauses", async () => {
    const id = await runs.add({ failuresBeforePause: 20 });
    const begun: ClaimedSession[] = [];
    for (let index = 0; index < 20; index += 1) begun.push(await beginOne(id));
    await Promise.all(begun.map((session) => runs.end(session, broken)));
    expect(await runs.get(id)).toMatchObject({ paused: true, failedInARow: 20 });
    expect(await deliveredOf(id)).toHaveLength(1);
  });

  test("do not wait in a circle with triggers that take the place of those under way", async () => {
    const id = await runs.add({
      failuresBeforePause: 0,
      triggers: [{ type: "api", concurrency: { key: "'one'", policy: "cancelOlder" } }],
    });
    for (let round = 0; round < 5; round += 1) {
      const session = await beginOne(id);
      await Promise.all([runs.end(session, broken), ...[1, 2, 3].map(() => runs.trigger(id))]);
      await api.database.pool.query(
        "update job set status = 'cancelled', holds_key = false, held_until = null where status = 'pending'",
      );
    }
    expect(await runs.get(id)).toMatchObject({ paused: false, failedInARow: 5 });
  });

  test("never pause an automation that says so", async () => {
    for (const failuresBeforePause of [0, null]) {
      const id = await runs.add({ failuresBeforePause });
      for (let count = 0; count < 4; count += 1) await fail(id);
      expect(await runs.get(id)).toMatchObject({ failuresBeforePause, paused: false, failedInARow: 4 });
      // The positive control.
      await api.post(`/automation/${id}/update`, { failuresBeforePause: 5 });
      await fail(id);
      expect((await runs.get(id)).paused).toBe(true);
    }
    for (const failuresBeforePause of [-1, 1.5, 1_001, "3"]) {
      const body = { name: "a", macro: "refused", instructions: "Work", failuresBeforePause };
      const { status, body: answer } = await api.post("/automation/create", body);
      expect([status, answer.error]).toEqual([400, expect.stringContaining("failuresBeforePause")]);
    }
  });
});
