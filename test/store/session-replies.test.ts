import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { EventContext } from "../../src/domain/automations/automation.ts";
import { newSession } from "../../src/domain/sessions/new-session.ts";
import type { SessionStatus } from "../../src/domain/sessions/status.ts";
import { mostRepliesOfSubject } from "../../src/domain/automations/reply-target.ts";
import { noteForgeReply, noteReplyTarget, sayWhatIsDue } from "../../src/store/answers/session-replies.ts";
import { claimJob, createJobs, failJob, recoverJobs, type ClaimedJob } from "../../src/store/automations/jobs.ts";
import { recordGate } from "../../src/store/queue/gate.ts";
import type { Claim } from "../../src/store/queue/lease.ts";
import { nextMessage } from "../../src/store/queue/progress.ts";
import { createSession } from "../../src/store/sessions/new-session.ts";
import { lockSession, moveSession, type MoveDetails } from "../../src/store/sessions/transition.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, atOnce, requireClaim } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;
let automationId: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});
afterAll(() => testDatabase.close());
beforeEach(async () => {
  organizationId = await addOrganization(database);
  automationId = await addAutomation(database, organizationId, "work");
});

const target = { service: "slack", channel: "C1", threadId: "1.1" } as const;

/** A job that a trigger of a source started. */
async function addJob(trigger: object, payload: EventContext) {
  const [triggerId, jobId] = [crypto.randomUUID(), crypto.randomUUID()];
  await database.pool.query(
    "insert into trigger (id, organization_id, automation_id, type, position, settings) values ($1, $2, $3, 'source', 0, $4)",
    [triggerId, organizationId, automationId, JSON.stringify({ source: "slack", hasReplyToken: true, ...trigger })],
  );
  await createJobs(database, [{ id: jobId, organizationId, automationId, priority: 5, payload, triggerId }]);
  return { triggerId, jobId };
}

/** A session that a trigger of a source started. */
async function run(
  trigger: { readonly source?: string; readonly hasReplyToken?: boolean } = {},
  gate: string | null = null,
): Promise<string> {
  const { jobId } = await addJob(trigger, {});
  const session = newSession({ prompt: "Work", repositories: [], sandboxed: true, automationId, jobId, gate });
  const { id } = await createSession(database, organizationId, session);
  await noteReplyTarget(database.pool, { jobId, sessionId: id, target });
  await noteReplyTarget(database.pool, { jobId, sessionId: id, target });
  return id;
}

const say = () => sayWhatIsDue(database, (id) => `https://offstage.example/sessions/${id}`);
/** The agent of a claimed session begins. */
const begin = (claim: Claim) => nextMessage(database, claim);
const move = (id: string, to: SessionStatus, details?: MoveDetails) =>
  database.transaction(async (transaction) => {
    await moveSession(transaction, await lockSession(transaction, organizationId, id), to, details);
  });
async function said(id: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ text: string }>(
    "select text from answer where session_id = $1 order by number",
    [id],
  );
  return rows.map(({ text }) => text.split("\n")[0] ?? "");
}
const dueNow = (id: string) =>
  database.pool.query("update session_reply set due_at = now() where session_id = $1 and due_at is not null", [id]);

test("a run is reported when its agent begins and when it ends, once, however many workers look", async () => {
  const id = await run();
  await atOnce(4, say);
  expect(await said(id)).toEqual([]);
  const claimed = await requireClaim(database);
  await say();
  expect(await said(id)).toEqual([]);
  await begin(claimed);
  await dueNow(id);
  await atOnce(4, say);
  expect(await said(id)).toEqual(["Offstage is working on it."]);
  await move(id, "completed", { summary: "Fixed it." });
  await atOnce(4, say);
  await say();
  expect(await said(id)).toEqual(["Offstage is working on it.", "Offstage is done."]);
  expect(await say()).toBe(0);
});

test("a process that is killed while it says something leaves it to the next one", async () => {
  const id = await run();
  await begin(await requireClaim(database));
  await move(id, "failed", {
    failure: { code: "internal", reason: "It broke.", retryable: true, remedy: "Retry." },
  });
  const killed: Database = {
    ...database,
    transaction: (work) =>
      database.transaction(async (transaction) => {
        await work(transaction);
        throw new Error("killed");
      }),
  };
  await expect(sayWhatIsDue(killed, () => "")).rejects.toThrow("killed");
  expect(await said(id)).toEqual([]);
  await say();
  expect(await said(id)).toEqual(["Offstage could not do it."]);
});

test("a run whose gate filtered it, and one whose trigger has no token or another source, say nothing", async () => {
  const filtered = await run({}, "exit 1");
  const decision = { outcome: "filtered", code: 1, output: "", log: "", reason: "nothing to do" } as const;
  await recordGate(database, await requireClaim(database), decision);
  await move(filtered, "completed", { summary: "The gate filtered this run." });
  const others = [await run({ hasReplyToken: false }), await run({ source: "linear" })];
  for (const id of others) {
    await begin(await requireClaim(database));
    await move(id, "completed");
  }
  await say();
  for (const id of [filtered, ...others]) expect(await said(id)).toEqual([]);
});

test.each([
  ["by its worker", async (claimed: ClaimedJob) => failJob(database, claimed, "the instructions need {{ event.x }}")],
  [
    "after its workers broke off",
    async ({ id }: ClaimedJob) => {
      await database.pool.query("update job set attempt = 10 where id = $1", [id]);
      await atOnce(3, () => recoverJobs(database, { worker: "w" }));
    },
  ],
])("a run that fails before it has a session, %s, says so once", async (_, end) => {
  const message = { source: "slack", message: { channel: "C1", threadId: "1.1", text: "Look" } };
  const issue = { source: "linear", issue: { id: "i-1" } };
  const answers = async () => {
    const { rows } = await database.pool.query<{ action: unknown; text: string }>(
      "select action, text from answer where organization_id = $1 order by number",
      [organizationId],
    );
    return rows;
  };
  const failRun = async (payload: EventContext, trigger: object) => {
    const { jobId, triggerId } = await addJob(trigger, payload);
    // Jobs of other tests come first.
    const claim = async (): Promise<ClaimedJob> => {
      const claimed = await claimJob(database, { worker: "w", leaseMs: 60_000 });
      if (claimed === null) throw new Error("there is no job");
      return claimed.id === jobId ? claimed : claim();
    };
    await end(await claim());
    await recoverJobs(database, { worker: "w" });
    return triggerId;
  };
  // No token, another source, and an event of nothing that takes answers.
  await failRun(message, { hasReplyToken: false });
  await failRun(message, { source: "linear" });
  await failRun({ source: "sentry" }, { source: "sentry" });
  expect(await answers()).toEqual([]);
  const slack = await failRun(message, {});
  const linear = await failRun(issue, { source: "linear" });
  const queued = await answers();
  expect(queued.map(({ action }) => action)).toEqual([
    { kind: "service", target, triggerId: slack },
    { kind: "service", target: { service: "linear", issueId: "i-1" }, triggerId: linear },
  ]);
  expect(queued[0]?.text).toMatch(
    /^Offstage could not begin\.\n\n(?:the instructions need|its worker broke off 10 times)/u,
  );
  expect(queued[1]?.text).toMatch(/^Offstage could not begin\.\n\n```text\n/u);
});

/** A session that a forge's event about issue 7 started. */
async function forgeRun(settings: object = { reply: "subject" }) {
  const [triggerId, connectionId, repositoryId] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];
  const { pool } = database;
  await pool.query(
    "insert into trigger (id, organization_id, automation_id, type, position, settings) values ($1, $2, $3, 'forge', 0, $4)",
    [triggerId, organizationId, automationId, JSON.stringify(settings)],
  );
  await pool.query(
    `insert into repository (id, organization_id, name, url, address_key) values ($1, $2, 'acme/shop', $3, $3)`,
    [repositoryId, organizationId, `https://git.example.com/acme/${repositoryId}`],
  );
  await pool.query(
    `insert into forge_connection (id, organization_id, kind, name, web_url, credential, state, sealed, master_key)
     values ($1, $2, 'gitea', 'Gitea', $3, 'token', 'ok', '', '')`,
    [connectionId, organizationId, `https://git.example.com/${connectionId}`],
  );
  const place = { service: "forge", connectionId, repositoryId, subject: { kind: "issue", number: 7 } } as const;
  const start = async (threadId: string | null = null): Promise<string> => {
    const id = crypto.randomUUID();
    await createJobs(database, [{ id, organizationId, automationId, priority: 5, payload: {}, triggerId }]);
    const session = newSession({ prompt: "Work", repositories: [], sandboxed: true, automationId, jobId: id });
    const { id: sessionId } = await createSession(database, organizationId, session);
    const note = { jobId: id, sessionId, target: place, threadId };
    await noteForgeReply(pool, note);
    await noteForgeReply(pool, note);
    await begin(await requireClaim(database));
    return sessionId;
  };
  return { start, triggerId, connectionId };
}

test("of a run that a forge's event started, the result is said once, and nothing else", async () => {
  const { start } = await forgeRun();
  const [done, failed] = [await start(), await start()];
  await say();
  await move(done, "completed", { summary: "Ask @rita.\n/close" });
  await atOnce(4, say);
  await move(done, "queued");
  expect((await requireClaim(database)).sessionId).toBe(done);
  await move(done, "completed", { summary: "Another turn." });
  await move(failed, "failed", {
    failure: { code: "internal", reason: "It broke.", retryable: true, remedy: "Retry." },
  });
  await say();
  const { rows } = await database.pool.query<{ text: string; action: object }>(
    "select text, action from answer where session_id = any($1)",
    [[done, failed]],
  );
  expect(rows).toMatchObject([{ action: { kind: "comment", subject: { kind: "issue", number: 7 } } }]);
  expect(rows[0]?.text).toBe(
    `The result of an automation of Offstage ([session](https://offstage.example/sessions/${done})):\n\n> Ask @\u{200b}rita.\n> /close`,
  );
});

test("of what not everybody may read, the result is said in its thread alone", async () => {
  const { start } = await forgeRun();
  const [open, internal] = [await start(), await start("d1")];
  for (const id of [open, internal]) await move(id, "completed", { summary: "Done." });
  await say();
  const { rows } = await database.pool.query<{ sessionId: string; action: object }>(
    `select session_id as "sessionId", action from answer where session_id = any($1) order by number`,
    [[open, internal]],
  );
  const subject = { kind: "issue", number: 7 };
  expect(new Map(rows.map(({ sessionId, action }) => [sessionId, action]))).toEqual(
    new Map([
      [open, { kind: "comment", subject }],
      [internal, { kind: "reply", thread: { subject, id: "d1" }, otherwise: null }],
    ]),
  );
});

test("nothing is said on a forge for a trigger that does not say so or no longer does, or of a connection that is gone", async () => {
  const silent = await forgeRun({});
  const changed = await forgeRun();
  const gone = await forgeRun();
  const sessions = [await silent.start(), await changed.start(), await gone.start()];
  await database.pool.query('update trigger set settings = settings || \'{"reply": "none"}\' where id = $1', [
    changed.triggerId,
  ]);
  await database.pool.query(
    "update forge_connection set deleted_at = now(), sealed = null, master_key = null where id = $1",
    [gone.connectionId],
  );
  for (const id of sessions) await move(id, "completed", { summary: "Done." });
  await say();
  for (const id of sessions) expect(await said(id)).toEqual([]);
});

test(`at one issue no more than ${mostRepliesOfSubject} results are said`, async () => {
  const { start } = await forgeRun();
  for (let count = 0; count < mostRepliesOfSubject + 2; count += 1) await start(count % 2 === 0 ? null : `d${count}`);
  const { rows } = await database.pool.query<{ count: number }>(
    "select count(*)::integer as count from session_reply join session on session.id = session_id where organization_id = $1",
    [organizationId],
  );
  expect(rows[0]?.count).toBe(mostRepliesOfSubject);
});

test(`in one thread no more than ${mostRepliesOfSubject} runs are reported, so that bots that answer each other end`, async () => {
  for (let count = 0; count < mostRepliesOfSubject + 2; count += 1) await run();
  const { rows } = await database.pool.query<{ count: number }>(
    `select count(*)::integer as count from session_reply join session on session.id = session_id
     where organization_id = $1 and session_reply.target = $2`,
    [organizationId, JSON.stringify(target)],
  );
  expect(rows[0]?.count).toBe(mostRepliesOfSubject);
});
