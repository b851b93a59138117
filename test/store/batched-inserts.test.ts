import { afterEach, beforeEach, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { ReceivedEvent } from "../../src/store/automations/inbound-events.ts";
import { newSession } from "../../src/domain/sessions/new-session.ts";
import { createBatchedInserts, type BatchedInserts } from "../../src/store/sessions/batched-inserts.ts";
import { listEvents } from "../../src/store/sessions/events.ts";
import { listSessions } from "../../src/store/sessions/list.ts";
import { getSession } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, atOnce } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let inserts: BatchedInserts;
let organizationId: string;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  inserts = createBatchedInserts(database);
  organizationId = await addOrganization(database);
});

afterEach(() => testDatabase.close());

const session = (more: Partial<Parameters<typeof newSession>[0]> = {}) =>
  newSession({ prompt: "Work", repositories: [], sandboxed: true, ...more });

async function commits(): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(
    "select count(distinct xmin::text)::integer as count from session",
  );
  return rows[0]?.count ?? 0;
}

test("what is accepted at once is committed together, each with all that belongs to it", async () => {
  const created = await atOnce(40, (index) =>
    inserts.createSession(organizationId, session({ title: `number ${index}`, notices: ["a notice"] })),
  );
  expect(created.map(({ title }) => title)).toEqual(Array.from({ length: 40 }, (_, index) => `number ${index}`));
  for (const { id, title } of created) {
    expect((await getSession(database, organizationId, id))?.title).toBe(title);
    const page = await listEvents(database, organizationId, id, 0, 10);
    expect(page?.events.map(({ seq, type }) => [seq, type])).toEqual([
      [1, "session.created"],
      [2, "notice"],
      [3, "message.user"],
    ]);
  }
  expect(await commits()).toBeLessThan(10);
});

test("one that can't be stored fails alone", async () => {
  const gone = { id: crypto.randomUUID(), name: "gone" };
  const settled = await Promise.allSettled(
    Array.from({ length: 10 }, (_, index) =>
      inserts.createSession(organizationId, session(index === 4 ? { repositories: [gone] } : {})),
    ),
  );
  expect(settled.filter(({ status }) => status === "rejected")).toHaveLength(1);
  expect(settled[4]).toMatchObject({ status: "rejected" });
  expect((await listSessions(database, organizationId, { limit: 100 })).items).toHaveLength(9);
});

test("the same session asked for twice at once, or twice by one job, is made once", async () => {
  const twice = session();
  const [first, second] = await Promise.all([
    inserts.createSession(organizationId, twice),
    inserts.createSession(organizationId, twice),
  ]);
  expect(second.id).toBe(first.id);
  const automationId = await addAutomation(database, organizationId, "triage");
  const jobId = crypto.randomUUID();
  await inserts.createJob({ id: jobId, organizationId, automationId, priority: 5, payload: {} });
  const ofJob = await atOnce(2, () => inserts.createSession(organizationId, session({ automationId, jobId })));
  expect(new Set(ofJob.map(({ id }) => id)).size).toBe(1);
  expect((await listSessions(database, organizationId, { limit: 100 })).items).toHaveLength(2);
});

test("triggers at once each make their job, and the same one only once", async () => {
  const automationId = await addAutomation(database, organizationId, "triage");
  const job = () => ({
    id: crypto.randomUUID(),
    organizationId,
    automationId,
    priority: 5,
    payload: { event: "push" },
  });
  const same = job();
  const jobs = await Promise.all([...Array.from({ length: 20 }, job), same, same].map((one) => inserts.createJob(one)));
  expect(new Set(jobs.map(({ id }) => id)).size).toBe(21);
  const { rows } = await database.pool.query<{ payload: unknown }>("select payload from job");
  expect(rows).toEqual(Array.from({ length: 21 }, () => ({ payload: { event: "push" } })));
});

/** An event of no connection that steers, so that it waits whatever listens. */
function received(more: Partial<ReceivedEvent> = {}): ReceivedEvent {
  const id = crypto.randomUUID();
  return {
    id,
    organizationId,
    connectionId: null,
    scope: organizationId,
    keys: [`content:${id}`],
    name: "issue.opened",
    deliveryId: null,
    subject: null,
    payload: { said: id },
    traceParent: null,
    steering: { isCalled: true, numbers: [], branch: null, sha: null },
    ...more,
  };
}

test("events that come at once are committed together, each with what came of it, and one that came before is a duplicate", async () => {
  const events = Array.from({ length: 40 }, () => received());
  const [first] = events;
  if (first === undefined) throw new Error("there is no event");
  const again = received({ keys: first.keys });
  const ignored = received({ steering: null, name: "release.published" });
  const answers = await Promise.all([...events, again, ignored].map((event) => inserts.receive(event)));
  expect(answers.slice(0, 40)).toEqual(events.map(({ id }) => ({ outcome: "accepted", ledgerId: id })));
  expect(answers.slice(40)).toEqual([
    { outcome: "duplicate", ledgerId: first.id },
    { outcome: "filtered", ledgerId: ignored.id },
  ]);
  const { rows } = await database.pool.query<{ id: string; payload: unknown; commit: string }>(
    "select id, payload, xmin::text as commit from arrival where outcome is null",
  );
  expect(new Map(rows.map(({ id, payload }) => [id, payload]))).toEqual(
    new Map(events.map(({ id, payload }) => [id, payload])),
  );
  expect(new Set(rows.map(({ commit }) => commit)).size).toBeLessThan(10);
});

test("events that are committed together are in the ledger in the order in which they came", async () => {
  const events = Array.from({ length: 40 }, (_, index) =>
    received({ keys: [`content:${99 - index} ${crypto.randomUUID()}`] }),
  );
  await Promise.all(events.map((event) => inserts.receive(event)));
  const ids = events.map(({ id }) => id);
  const { rows } = await database.pool.query<{ id: string }>(
    "select id from arrival where id = any($1) order by created_at",
    [ids],
  );
  expect(rows.map(({ id }) => id)).toEqual(ids);
});

test("an event that can't be stored fails alone", async () => {
  const gone = received({ organizationId: crypto.randomUUID() });
  const settled = await Promise.allSettled([received(), gone, received()].map((event) => inserts.receive(event)));
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("batches at once that have events in common, in other orders, wait for no other in a ring", async () => {
  const other = createBatchedInserts(database);
  const keys = Array.from({ length: 60 }, () => crypto.randomUUID());
  const copies = (order: readonly string[], into: BatchedInserts) =>
    order.map((key) => into.receive(received({ keys: [`delivery:${crypto.randomUUID()} ${key}`, `content:${key}`] })));
  const answers = await Promise.all([...copies(keys, inserts), ...copies(keys.toReversed(), other)]);
  expect(answers.filter(({ outcome }) => outcome === "accepted")).toHaveLength(60);
  expect(answers.filter(({ outcome }) => outcome === "duplicate")).toHaveLength(60);
  const { rows } = await database.pool.query<{ deadlocks: number }>(
    "select deadlocks::integer as deadlocks from pg_stat_database where datname = current_database()",
  );
  expect(rows).toEqual([{ deadlocks: 0 }]);
});
