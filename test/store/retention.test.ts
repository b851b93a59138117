import { afterEach, beforeEach, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { NewEvent } from "../../src/domain/sessions/event.ts";
import { createJobs, getJob } from "../../src/store/automations/jobs.ts";
import { boundArrivals, boundEvents, boundJobs, eventBytes, jobBytes } from "../../src/store/prune-by-size.ts";
import { pruneDiffs, pruneSessions } from "../../src/store/prune-sessions.ts";
import { pruneArrivals, pruneConversations, pruneEvents, pruneJobs } from "../../src/store/prune.ts";
import { createRepository } from "../../src/store/repositories/repositories.ts";
import { pruneAudit } from "../../src/store/requests/audit.ts";
import { appendEvents, listEvents } from "../../src/store/sessions/events.ts";
import { addMessage, cancelSession, getDiff, getSession } from "../../src/store/sessions/sessions.ts";
import { pruneDeliveries } from "../../src/store/webhooks/deliveries.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { checksums } from "../database/fill.ts";
import { waitFor } from "../wait-for.ts";
import { addOrganization, addSession, atOnce, requireClaim } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;
const { signal } = new AbortController();

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  organizationId = await addOrganization(database);
});

afterEach(() => testDatabase.close());

const notice = (text: string): NewEvent => ({ type: "notice", data: { level: "info", text } });

/** A session that was over for so many days, with so many notices. */
async function overFor(days: number, notices = 3): Promise<string> {
  const { id } = await addSession(database, organizationId);
  await database.transaction((transaction) =>
    appendEvents(
      transaction,
      id,
      Array.from({ length: notices }, (_, index) => notice(String(index))),
    ),
  );
  await cancelSession(database, organizationId, id);
  await age(id, days);
  return id;
}

const age = (id: string, days: number) =>
  database.pool.query("update session set finished_at = now() - $2 * interval '1 day' where id = $1", [id, days]);

async function seqs(id: string): Promise<number[]> {
  return (await listEvents(database, organizationId, id, 0, 10_000))?.events.map(({ seq }) => seq) ?? [];
}

const removedThrough = async (id: string) => (await getSession(database, organizationId, id))?.eventsRemovedThrough;

test("events go of sessions that were over for so many days, and nothing else does", async () => {
  const old = await overFor(31);
  const young = await overFor(29);
  const { id: queued } = await addSession(database, organizationId);
  const running = await requireClaim(database);
  for (const id of [queued, running.sessionId]) {
    await database.pool.query("update session set created_at = now() - interval '90 days' where id = $1", [id]);
  }
  const { event: _, session: __, ...others } = await checksums(database.pool);
  const before = await Promise.all([young, queued, running.sessionId].map(seqs));
  const count = (await seqs(old)).length;
  expect(await pruneEvents(database, 30, signal)).toBe(count);
  expect(await seqs(old)).toEqual([]);
  expect(await removedThrough(old)).toBe(count);
  expect(await Promise.all([young, queued, running.sessionId].map(seqs))).toEqual(before);
  expect(await removedThrough(young)).toBe(0);
  const { event: ___, session: ____, ...after } = await checksums(database.pool);
  expect(after).toEqual(others);
  expect(await pruneEvents(database, 30, signal)).toBe(0);
});

test("0 days keeps every event and every job", async () => {
  const id = await overFor(10_000);
  expect(await pruneEvents(database, 0, signal)).toBe(0);
  expect(await pruneJobs(database, 0, signal)).toBe(0);
  expect(await seqs(id)).not.toEqual([]);
});

test("a follow-up's events go on in number after those that were removed, and are removed in their turn", async () => {
  const id = await overFor(31);
  const removed = await pruneEvents(database, 30, signal);
  await addMessage(database, organizationId, id, { id: crypto.randomUUID(), text: "go on", from: null });
  const [first] = await seqs(id);
  expect(first).toBe(removed + 1);
  expect(await pruneEvents(database, 30, signal)).toBe(0);
  await cancelSession(database, organizationId, id);
  expect(await pruneEvents(database, 30, signal)).toBe(0);
  // Over for long once more, the removal before being longer ago still.
  await database.pool.query("update session set events_removed_at = now() - interval '90 days' where id = $1", [id]);
  await age(id, 31);
  expect(await pruneEvents(database, 30, signal)).toBeGreaterThan(0);
  expect(await seqs(id)).toEqual([]);
});

test("interrupted between batches it leaves the newer events readable, and goes on from there", async () => {
  const id = await overFor(31, 2_500);
  const all = await seqs(id);
  const stopped = new AbortController();
  const { transaction } = database;
  const once: Database = {
    ...database,
    transaction: async (work) => {
      const result = await transaction(work);
      stopped.abort();
      return result;
    },
  };
  expect(await pruneEvents(once, 30, stopped.signal)).toBe(1_000);
  expect(await removedThrough(id)).toBe(1_000);
  expect(await seqs(id)).toEqual(all.slice(1_000));
  const page = await listEvents(database, organizationId, id, 0, 10);
  expect(page?.events[0]?.seq).toBe(1_001);
  expect(await pruneEvents(database, 30, signal)).toBe(all.length - 1_000);
  expect(await seqs(id)).toEqual([]);
});

test("many workers at once remove each event once, and none waits for the other", async () => {
  const ids = [];
  for (let index = 0; index < 12; index += 1) ids.push(await overFor(31 + index, 5));
  let total = 0;
  for (const id of ids) total += (await seqs(id)).length;
  const counts = await atOnce(6, () => pruneEvents(database, 30, signal));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(total);
  for (const id of ids) expect(await seqs(id)).toEqual([]);
});

test("while a batch is held up, sessions and jobs are created, listed and claimed", async () => {
  const id = await overFor(31);
  const holder = await database.pool.connect();
  try {
    await holder.query("begin");
    await holder.query("select 1 from event where session_id = $1 for update", [id]);
    const pruning = pruneEvents(database, 30, signal);
    await waitFor(async () => {
      const { rowCount } = await database.pool.query(
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%delete from event%' and datname = current_database()",
      );
      return rowCount === 1;
    }, "the batch waits for the event");
    await addSession(database, organizationId);
    await requireClaim(database);
    await createJobs(database, [await jobOf(await addAutomation())]);
    expect((await seqs(id)).length).toBeGreaterThan(0);
    // Another worker passes it over.
    expect(await pruneEvents(database, 30, signal)).toBe(0);
    await holder.query("rollback");
    expect(await pruning).toBeGreaterThan(0);
  } finally {
    holder.release();
  }
});

async function addAutomation(): Promise<string> {
  const id = crypto.randomUUID();
  await database.pool.query(
    `insert into automation (id, organization_id, name, macro, instructions, repository_ids, priority, paused)
     values ($1, $2, 'a', $3, '', '{}', 5, false)`,
    [id, organizationId, id],
  );
  return id;
}

const jobOf = (automationId: string) =>
  Promise.resolve({ id: crypto.randomUUID(), organizationId, automationId, priority: 5, payload: {} });

test("jobs go that were over for so many days, unless their session is at work; the session stays", async () => {
  const automationId = await addAutomation();
  const add = async (status: string, days: number, withSession: boolean) => {
    const job = await jobOf(automationId);
    await createJobs(database, [job]);
    const session = withSession ? await addSession(database, organizationId, { automationId, jobId: job.id }) : null;
    await database.pool.query("update job set status = $2, updated_at = now() - $3 * interval '1 day' where id = $1", [
      job.id,
      status,
      days,
    ]);
    return { job: job.id, session: session?.id ?? null };
  };
  const failed = await add("failed", 31, false);
  const done = await add("completed", 31, true);
  await cancelSession(database, organizationId, done.session ?? "");
  const atWork = await add("completed", 31, true);
  const young = await add("failed", 29, false);
  const pending = await add("pending", 31, false);
  expect(await pruneJobs(database, 30, signal)).toBe(2);
  const there = async ({ job }: { job: string }) => (await getJob(database, organizationId, job)) !== null;
  expect(await Promise.all([failed, done, atWork, young, pending].map(there))).toEqual([
    false,
    false,
    true,
    true,
    true,
  ]);
  expect(await getSession(database, organizationId, done.session ?? "")).toMatchObject({ jobId: null, automationId });
});

test("thousands of old lines of the audit log go in batches, and the young stay", async () => {
  await database.pool.query(
    `insert into audit_entry (id, organization_id, actor, action, status, created_at)
     select gen_random_uuid(), $1, 'nobody', 'x', 200, now() - interval '10 days' - number * interval '1 second'
     from generate_series(1, 2500) as number`,
    [organizationId],
  );
  await database.pool.query(
    "insert into audit_entry (id, organization_id, actor, action, status) values (gen_random_uuid(), $1, 'nobody', 'x', 200)",
    [organizationId],
  );
  const counts = await atOnce(3, () => pruneAudit(database, 9, signal));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2_500);
  const { rows } = await database.pool.query("select count(*)::integer as count from audit_entry");
  expect(rows).toEqual([{ count: 1 }]);
});

test("sent deliveries of webhooks are deleted some days later, due ones are not", async () => {
  const webhookId = crypto.randomUUID();
  await database.pool.query(
    "insert into webhook (id, organization_id, url, events, sealed, master_key) values ($1, $2, 'https://a.example', '{}', '', '')",
    [webhookId, organizationId],
  );
  await database.pool.query(
    `insert into webhook_delivery (id, organization_id, webhook_id, type, data, status, updated_at)
     select gen_random_uuid(), $1, $2, 'x', '{}', status, now() - days * interval '1 day'
     from unnest(array['delivered', 'dead', 'pending', 'delivered'], array[31, 31, 31, 29]) as row (status, days)`,
    [organizationId, webhookId],
  );
  expect(await pruneDeliveries(database, 30, AbortSignal.abort())).toBe(0);
  expect(await pruneDeliveries(database, 30, signal)).toBe(2);
  const { rows } = await database.pool.query("select status from webhook_delivery order by status");
  expect(rows).toEqual([{ status: "delivered" }, { status: "pending" }]);
});

test("what came in and started no job is forgotten some days later, and with 0 days never", async () => {
  await database.pool.query(
    `insert into arrival (id, organization_id, outcome, reason, created_at)
     select gen_random_uuid(), $1, 'filtered', 'x', now() - days * interval '1 day' from unnest(array[31, 31, 29]) as days`,
    [organizationId],
  );
  expect(await pruneArrivals(database, 0, signal)).toBe(0);
  expect(await pruneArrivals(database, 30, signal)).toBe(2);
  expect((await database.pool.query("select 1 from arrival")).rowCount).toBe(1);
});

test("conversations go in which nothing happened for so many days, with their items, unless something of them is open", async () => {
  const input = {
    url: "https://git.example/a/b",
    key: "git.example/a/b",
    name: "a/b",
    branch: null,
    description: null,
  };
  const { id: repositoryId } = await createRepository(database, organizationId, input);
  const begun = await addSession(database, organizationId);
  const over = await overFor(400, 0);
  /** One that changed so many days ago. */
  async function talk(number: number, days: number, more: { kind?: string; sessionId?: string; isDue?: boolean } = {}) {
    const { kind = "pullRequest", sessionId = null, isDue = false } = more;
    const { rows } = await database.pool.query<{ id: string }>(
      `with talked as (
         insert into conversation (organization_id, repository_id, kind, number, session_id, state, updated_at, due_at)
         values ($1, $2, $3, $4, $5, '{}', now() - $6 * interval '1 day', case when $7 then now() end) returning id),
       item as (insert into conversation_item (organization_id, conversation_id, key) select $1, id, 'k' from talked)
       select id from talked`,
      [organizationId, repositoryId, kind, number, sessionId, days, isDue],
    );
    return rows[0]?.id ?? "";
  }
  const pull = (number: number, state: string) =>
    database.pool.query(
      `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, state)
       values (gen_random_uuid(), $1, $2, $3, $4, 'main', $5, 'https://git.example/a/b/1', $6)`,
      [organizationId, over, repositoryId, `work-${number}`, number, state],
    );
  await pull(1, "merged");
  await pull(2, "open");
  await talk(1, 31);
  await talk(7, 31, { kind: "issue" });
  const kept = [
    await talk(2, 31),
    await talk(3, 29),
    await talk(4, 31, { isDue: true }),
    await talk(5, 31, { kind: "issue", sessionId: begun.id }),
    await talk(6, 31, { kind: "issue", sessionId: over }),
  ];
  const answered = await talk(8, 31);
  await database.pool.query(
    "insert into conversation_run (id, conversation_id, due_at) values (gen_random_uuid(), $1, now())",
    [answered],
  );
  expect(await pruneConversations(database, 0, signal)).toBe(0);
  expect(await pruneConversations(database, 30, signal)).toBe(2);
  const { rows } = await database.pool.query<{ id: string }>("select conversation_id as id from conversation_item");
  expect(rows.map(({ id }) => id).toSorted()).toEqual([...kept, answered].toSorted());
});

/** Bytes of a session's events, as they are counted. */
async function bytesOf(id: string): Promise<number> {
  const { rows } = await database.pool.query<{ bytes: string | null }>(
    `select sum(${eventBytes}) as bytes from event where session_id = $1`,
    [id],
  );
  return Number(rows[0]?.bytes ?? 0);
}

test("beyond the bound of all, the events of sessions that ended first go, and none of a session under way", async () => {
  const ended = [await overFor(3, 1_500), await overFor(2, 1_500), await overFor(1, 1_500)];
  const { id: queued } = await addSession(database, organizationId);
  const { sessionId: running } = await requireClaim(database);
  const [, middle = "", young = ""] = ended;
  const before = await Promise.all([middle, young, queued, running].map(seqs));
  const all = (await bytesOf(middle)) + (await bytesOf(young));
  const count = (await seqs(ended[0] ?? "")).length;
  expect(await boundEvents(database, { all: 0, each: 0 }, signal)).toBe(0);
  expect(await boundEvents(database, { all, each: 0 }, signal)).toBe(count);
  expect(await seqs(ended[0] ?? "")).toEqual([]);
  expect(await removedThrough(ended[0] ?? "")).toBe(count);
  expect(await Promise.all([middle, young, queued, running].map(seqs))).toEqual(before);
  expect(await boundEvents(database, { all, each: 0 }, signal)).toBe(0);

  // What goes on is not touched, and is counted again once it has ended.
  await addMessage(database, organizationId, middle, { id: crypto.randomUUID(), text: "go on", from: null });
  expect(await boundEvents(database, { all: 1, each: 0 }, signal)).toBe(before[1]?.length);
  const more = await seqs(middle);
  expect(more.length).toBeGreaterThan(before[0]?.length ?? 0);
  await cancelSession(database, organizationId, middle);
  expect(await boundEvents(database, { all: 1, each: 0 }, signal)).toBe(more.length + 1);
});

test("what was counted and is gone already, as by nodes of the version before, hides nothing", async () => {
  await database.pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, finished_at, event_bytes, event_bytes_at)
     select gen_random_uuid(), $1, 't', 'd', 'completed', 'b', now() - interval '9 days', 1000, now() from generate_series(1, 250)`,
    [organizationId],
  );
  const ended = await overFor(1, 10);
  const count = (await seqs(ended)).length;
  expect(await boundEvents(database, { all: 1, each: 0 }, signal)).toBe(count);
  expect(await seqs(ended)).toEqual([]);
});

test("beyond the bound of one session, its oldest events go", async () => {
  const large = await overFor(1, 3_000);
  const small = await overFor(2, 3);
  const all = await seqs(large);
  const each = Math.floor((await bytesOf(large)) / 2);
  const removed = await boundEvents(database, { all: 0, each }, signal);
  expect(removed).toBeGreaterThan(1_000);
  expect(removed).toBeLessThan(2_000);
  expect(await seqs(large)).toEqual(all.slice(removed));
  expect(await removedThrough(large)).toBe(removed);
  expect(await bytesOf(large)).toBeLessThanOrEqual(each);
  expect(await removedThrough(small)).toBe(0);
  expect(await boundEvents(database, { all: 0, each }, signal)).toBe(0);
});

test("beyond their bound, the jobs that ended first go", async () => {
  const automation = await addAutomation();
  const made: string[] = [];
  for (let days = 5; days > 0; days -= 1) {
    const { rows } = await database.pool.query<{ id: string }>(
      `insert into job (id, organization_id, automation_id, status, priority, payload, updated_at)
       values (gen_random_uuid(), $1, $2, 'completed', 5, '{"a": 1}', now() - $3 * interval '1 day') returning id`,
      [organizationId, automation, days],
    );
    made.push(rows[0]?.id ?? "");
  }
  const size = await database.pool.query<{ bytes: number }>(`select max(${jobBytes}) as bytes from job`);
  expect(await boundJobs(database, (size.rows[0]?.bytes ?? 0) * 2, signal)).toBe(3);
  const { rows } = await database.pool.query<{ id: string }>("select id from job order by updated_at");
  expect(rows.map(({ id }) => id)).toEqual(made.slice(3));
  expect(await boundJobs(database, 0, signal)).toBe(0);
});

test("ledger entries without a job go, the oldest first, if they take more room than they may, and those that wait stay", async () => {
  const { pool } = database;
  const ids: string[] = [];
  for (const [hours, outcome] of [
    [4, null],
    [3, "filtered"],
    [2, "filtered"],
    [1, "duplicate"],
  ] as const) {
    const id = crypto.randomUUID();
    ids.push(id);
    await pool.query(
      `insert into arrival (id, organization_id, outcome, reason, payload, created_at)
       values ($1, $2, $3, 'x', jsonb_build_object('text', (select string_agg(md5(random()::text), '') from generate_series(1, 500))), now() - $4 * interval '1 hour')`,
      [id, organizationId, outcome, hours],
    );
  }
  expect(await boundArrivals(database, 0, signal)).toBe(0);
  const { rows: sizes } = await pool.query<{ bytes: number }>(
    "select pg_column_size(payload) as bytes from arrival where id = $1",
    [ids[3]],
  );
  expect(await boundArrivals(database, (sizes[0]?.bytes ?? 0) + 1_000, signal)).toBe(2);
  const { rows } = await pool.query<{ id: string }>("select id from arrival where id = any($1)", [ids]);
  expect(new Set(rows.map(({ id }) => id))).toEqual(new Set([ids[0], ids[3]]));
});

test("diffs go of sessions that were over for so many days, once for each time that they ended, and the sessions stay", async () => {
  const [old, young] = [await overFor(31), await overFor(29)];
  const repository = { id: crypto.randomUUID(), patch: "+a line" };
  await database.pool.query(
    "insert into repository (id, organization_id, url, address_key, name) values ($1, $2, 'https://git.example/a/b', 'git.example/a/b', 'a/b')",
    [repository.id, organizationId],
  );
  const save = (id: string, patch: string) =>
    database.pool.query(
      `insert into session_repository (session_id, position, repository_id, directory, patch) values ($1, 1, $2, 'b', $3)
       on conflict (session_id, position) do update set patch = excluded.patch, patch_truncated = false`,
      [id, repository.id, patch],
    );
  for (const id of [old, young]) await save(id, repository.patch);
  const diffOf = async (id: string) => (await getDiff(database, organizationId, id))?.repositories[0];
  expect(await pruneDiffs(database, 0, signal)).toBe(0);
  expect(await pruneDiffs(database, 30, signal)).toBe(1);
  expect(await diffOf(old)).toMatchObject({ patch: "", truncated: true });
  expect(await diffOf(young)).toMatchObject({ patch: repository.patch, truncated: false });
  expect(await pruneDiffs(database, 30, signal)).toBe(0);
  // It goes on, and ends again.
  await save(old, "+another");
  await database.pool.query("update session set diffs_removed_at = now() - interval '40 days' where id = $1", [old]);
  expect(await pruneDiffs(database, 30, signal)).toBe(1);
  expect(await diffOf(old)).toMatchObject({ patch: "" });
});

test("sessions that were over for so many days are deleted, if that is set, and no other", async () => {
  const [old, young] = [await overFor(31), await overFor(29)];
  const { id: queued } = await addSession(database, organizationId);
  await database.pool.query("update session set created_at = now() - interval '90 days' where id = $1", [queued]);
  const left = async () =>
    (await database.pool.query<{ id: string }>("select id from session")).rows.map(({ id }) => id);
  expect(await pruneSessions(database, 0, signal)).toBe(0);
  expect(new Set(await left())).toEqual(new Set([old, young, queued]));
  expect(await pruneSessions(database, 30, signal)).toBe(1);
  expect(new Set(await left())).toEqual(new Set([young, queued]));
  expect((await database.pool.query("select from event where session_id = $1", [old])).rowCount).toBe(0);
});
