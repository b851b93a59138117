import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { NewEvent, SessionEvent } from "../../src/domain/sessions/event.ts";
import { finishSession } from "../../src/store/queue/claims.ts";
import type { Claim } from "../../src/store/queue/lease.ts";
import { appendClaimEvents } from "../../src/store/queue/progress.ts";
import { appendEvents, listEvents } from "../../src/store/sessions/events.ts";
import { addMessage } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { waitFor } from "../wait-for.ts";
import { addOrganization, addSession, atOnce, requireClaim } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  organizationId = await addOrganization(database);
});

afterAll(() => testDatabase?.close());

const notice = (text: string): NewEvent => ({ type: "notice", data: { level: "info", text } });

async function running(): Promise<Claim> {
  await addSession(database, organizationId, { priority: 1 });
  return requireClaim(database);
}

async function allOf(id: string): Promise<SessionEvent[]> {
  return (await listEvents(database, organizationId, id, 0, 10_000))?.events ?? [];
}

/** 1, 2, 3, … `count` */
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

const textOf = (event: SessionEvent): string => (event.type === "notice" ? event.data.text : "");

test("a session's first events are numbered from 1", async () => {
  const { id } = await addSession(database, organizationId, { notices: ["Mind the gap."] });
  const events = await allOf(id);
  expect(events.map(({ seq, type }) => [seq, type])).toEqual([
    [1, "session.created"],
    [2, "notice"],
    [3, "message.user"],
  ]);
});

test("appends, 20 at a time, leave no gap and keep each writer's order", async () => {
  const held = await running();
  const before = (await allOf(held.sessionId)).length;
  await atOnce(20, async (writer) => {
    for (let part = 0; part < 10; part += 1) {
      await appendClaimEvents(database, held, [notice(`${writer} ${part} a`), notice(`${writer} ${part} b`)]);
    }
  });
  const events = await allOf(held.sessionId);
  expect(events.map(({ seq }) => seq)).toEqual(upTo(before + 400));
  for (let writer = 0; writer < 20; writer += 1) {
    const own = events.map(textOf).filter((text) => text.startsWith(`${writer} `));
    expect(own).toEqual(upTo(10).flatMap((part) => [`${writer} ${part - 1} a`, `${writer} ${part - 1} b`]));
  }
  const together = events.map(textOf).filter((text) => text !== "");
  for (let index = 0; index < together.length; index += 2) {
    expect(together[index + 1]).toBe(together[index]?.replace(/a$/u, "b"));
  }
});

test("events of different kinds of writers, worker and people, share one sequence", async () => {
  const held = await running();
  const before = (await allOf(held.sessionId)).length;
  await atOnce<unknown>(20, (index) =>
    index % 2 === 0
      ? appendClaimEvents(database, held, [notice(`${index}`)])
      : addMessage(database, organizationId, held.sessionId, { id: crypto.randomUUID(), text: `${index}`, from: null }),
  );
  const events = await allOf(held.sessionId);
  expect(events.map(({ seq }) => seq)).toEqual(upTo(before + 20));
});

test("who reads while others append never sees a number before the ones below it", async () => {
  const held = await running();
  const seen: number[] = [];
  let writing = true;
  const reader = (async () => {
    for (let last = false; !last;) {
      // The last look comes after the last append.
      last = !writing;
      const page = await listEvents(database, organizationId, held.sessionId, seen.at(-1) ?? 0, 7);
      seen.push(...(page?.events ?? []).map(({ seq }) => seq));
      if (page?.nextCursor != null) last = false;
    }
  })();
  await atOnce(20, async (writer) => {
    for (let part = 0; part < 5; part += 1) await appendClaimEvents(database, held, [notice(`${writer} ${part}`)]);
  });
  writing = false;
  await reader;
  expect(seen).toEqual((await allOf(held.sessionId)).map(({ seq }) => seq));
  expect(seen).toEqual(upTo(seen.length));
});

test("the order is that of the commits: an append waits for the one that came first", async () => {
  const held = await running();
  const before = (await allOf(held.sessionId)).length;
  const first = await database.pool.connect();
  try {
    await first.query("begin");
    await appendEvents(first, held.sessionId, [notice("first")]);
    const second = appendClaimEvents(database, held, [notice("second")]);
    await waitFor(async () => {
      const { rowCount } = await database.pool.query(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rowCount === 1;
    }, "the second append waits for the first");
    expect(await allOf(held.sessionId)).toHaveLength(before);
    await first.query("commit");
    await second;
  } finally {
    first.release();
  }
  expect((await allOf(held.sessionId)).slice(before).map(textOf)).toEqual(["first", "second"]);
});

test("an append that is rolled back leaves no gap", async () => {
  const held = await running();
  const before = (await allOf(held.sessionId)).length;
  const broken = database.transaction(async (transaction) => {
    await appendEvents(transaction, held.sessionId, [notice("never")]);
    throw new Error("broke off");
  });
  await expect(broken).rejects.toThrow("broke off");
  await appendClaimEvents(database, held, [notice("after")]);
  const events = await allOf(held.sessionId);
  expect(events.map(({ seq }) => seq)).toEqual(upTo(before + 1));
  expect(events.map(textOf)).not.toContain("never");
});

test("pages by `after` give every event once, and say where the last page ends", async () => {
  const held = await running();
  await appendClaimEvents(
    database,
    held,
    upTo(20).map((index) => notice(`${index}`)),
  );
  const total = (await allOf(held.sessionId)).length;
  const sizes: number[] = [];
  const seen: number[] = [];
  for (let after: string | null = "0"; after !== null;) {
    const page = await listEvents(database, organizationId, held.sessionId, Number(after), 10);
    sizes.push(page?.events.length ?? 0);
    seen.push(...(page?.events ?? []).map(({ seq }) => seq));
    after = page?.nextCursor ?? null;
  }
  expect(seen).toEqual(upTo(total));
  expect(sizes).toEqual([10, 10, total - 20]);
});

test("a page that ends exactly at the newest event has no next", async () => {
  const held = await running();
  const total = (await allOf(held.sessionId)).length;
  expect((await listEvents(database, organizationId, held.sessionId, 0, total))?.nextCursor).toBeNull();
  expect(await listEvents(database, organizationId, held.sessionId, total, 10)).toEqual({
    events: [],
    nextCursor: null,
  });
});

test("another organization's session has no events, as one that does not exist", async () => {
  const held = await running();
  const other = await addOrganization(database);
  expect(await listEvents(database, other, held.sessionId, 0, 10)).toBeNull();
  expect(await listEvents(database, other, held.sessionId, 1_000, 10)).toBeNull();
  expect(await listEvents(database, organizationId, crypto.randomUUID(), 0, 10)).toBeNull();
});

test("a program's output is stored whatever is in it: NUL, and half of a character if a text was cut", async () => {
  const held = await running();
  const odd = `a\0b${"💥".slice(0, 1)}`;
  await appendClaimEvents(database, held, [notice(odd)]);
  expect(textOf((await allOf(held.sessionId)).at(-1) as SessionEvent)).toBe("a\u2400b\ufffd");
  const failure = { code: "agent_crashed", reason: odd, retryable: true, remedy: "Retry." } as const;
  await finishSession(database, held, { status: "failed", summary: null, failure });
  const [last] = (await allOf(held.sessionId)).slice(-1);
  expect(last).toMatchObject({ type: "session.status", data: { to: "failed", failure: { reason: "a\u2400b\ufffd" } } });
});
