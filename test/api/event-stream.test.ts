import { once } from "node:events";
import { request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NewEvent } from "../../src/domain/sessions/event.ts";
import { createKey, revokeKey } from "../../src/store/people/keys.ts";
import { createBrowserSession } from "../../src/store/people/logins.ts";
import { updateUser } from "../../src/store/people/users.ts";
import { pruneEvents } from "../../src/store/prune.ts";
import { finishSession } from "../../src/store/queue/claims.ts";
import type { Claim } from "../../src/store/queue/lease.ts";
import { appendClaimEvents, completeMessage, nextMessage } from "../../src/store/queue/progress.ts";
import { appendEvents, listEvents } from "../../src/store/sessions/events.ts";
import { addMessage, cancelSession } from "../../src/store/sessions/sessions.ts";
import { addSession, atOnce, requireClaim, signInUser } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
let server: FastifyInstance;

beforeAll(async () => {
  api = await createTestApp();
  server = api.app;
  await server.listen({ host: "127.0.0.1", port: 0 });
});

afterAll(() => api?.close());

interface Message {
  readonly id: string | null;
  readonly event: string;
  readonly data: unknown;
}

/** An open event stream, read as far as `messages` says. */
interface Stream {
  readonly response: IncomingMessage;
  readonly messages: Message[];
  readonly comments: string[];
  /** The numbers of the events that came. */
  seen(): number[];
  /** True once the server has ended it in order. */
  ended(): boolean;
  /** Breaks the connection as a lost network does. */
  cut(): void;
}

interface StreamCall {
  /** The admin's if none is given. */
  readonly headers?: Record<string, string>;
  readonly after?: number;
  readonly lastEventId?: string;
  readonly app?: FastifyInstance;
}

async function open(
  sessionId: string,
  { after, lastEventId, app = server, headers }: StreamCall = {},
): Promise<Stream> {
  const { port } = app.server.address() as AddressInfo;
  const outgoing = request({
    port,
    // A connection of its own, which ends with the stream.
    agent: false,
    path: `/session/${sessionId}/events${after === undefined ? "" : `?after=${after}`}`,
    headers: {
      accept: "text/event-stream",
      ...(headers ?? { authorization: `Bearer ${api.adminKey}` }),
      ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
    },
  });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const messages: Message[] = [];
  const comments: string[] = [];
  let rest = "";
  response.setEncoding("utf8");
  response.on("data", (text: string) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      if (block.startsWith(":")) comments.push(block);
      else messages.push(readMessage(block));
    }
  });
  // A connection that the test cuts itself ends with an error.
  response.on("error", () => undefined);
  return {
    response,
    messages,
    comments,
    seen: () => messages.filter(({ id }) => id !== null).map(({ id }) => Number(id)),
    ended: () => response.complete,
    cut: () => outgoing.destroy(),
  };
}

function readMessage(block: string): Message {
  const fields = new Map(
    block.split("\n").map((line): [string, string] => [line.split(": ")[0] ?? "", line.replace(/^\w+: /u, "")]),
  );
  return {
    id: fields.get("id") ?? null,
    event: fields.get("event") ?? "",
    data: JSON.parse(fields.get("data") ?? "null"),
  };
}

/** The server's side of every request from now on. */
function answersOf(app: FastifyInstance): ServerResponse[] {
  const answers: ServerResponse[] = [];
  app.server.on("request", (_request, answer) => answers.push(answer));
  return answers;
}

const notice = (text: string): NewEvent => ({ type: "notice", data: { level: "info", text } });
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

async function running(): Promise<Claim> {
  await addSession(api.database, api.organizationId, { priority: 1 });
  return requireClaim(api.database);
}

async function end(held: Claim): Promise<void> {
  const message = await nextMessage(api.database, held);
  if (message !== null) await completeMessage(api.database, held, message.id, { answer: "Yes.", isKept: true });
  await finishSession(api.database, held, { status: "completed", summary: "Done.", failure: null });
}

async function stored(id: string): Promise<unknown[]> {
  const events: unknown[] = [];
  for (let after: string | null = "0"; after !== null;) {
    const page = await listEvents(api.database, api.organizationId, id, Number(after), 10_000);
    events.push(...(page?.events ?? []));
    after = page?.nextCursor ?? null;
  }
  return events;
}

const isOver = (stream: Stream) => waitFor(() => stream.ended(), "the stream ends");

test("a stream says what it is, that it must not be kept, and that proxies must not gather it", async () => {
  const held = await running();
  const stream = await open(held.sessionId);
  expect(stream.response.statusCode).toBe(200);
  expect(stream.response.headers).toMatchObject({
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  expect(stream.response.headers["x-request-id"]).toBeDefined();
  stream.cut();
});

test("a stream is not given to a stranger", async () => {
  const held = await running();
  const headers = { accept: "text/event-stream" };
  expect((await api.get(`/session/${held.sessionId}/events`, { key: null, headers })).status).toBe(401);
});

test("what happened before comes first, then what happens, each with its number and as the pages show it", async () => {
  const held = await running();
  const stream = await open(held.sessionId);
  const before = (await stored(held.sessionId)).length;
  await waitFor(() => stream.seen().length === before, "the past is sent");
  await appendClaimEvents(api.database, held, [notice("now")]);
  await waitFor(() => stream.seen().length === before + 1, "the event is sent");
  await end(held);
  await isOver(stream);
  const all = await stored(held.sessionId);
  expect(stream.messages.slice(0, -1).map(({ data }) => data)).toEqual(all);
  expect(stream.seen()).toEqual(upTo(all.length));
  expect(stream.messages[before]).toMatchObject({ event: "notice", id: String(before + 1) });
});

test.each(["completed", "cancelled"])("when the session is %s the stream says so and ends in order", async (how) => {
  const held = await running();
  const stream = await open(held.sessionId);
  if (how === "completed") await end(held);
  else {
    await cancelSession(api.database, api.organizationId, held.sessionId);
    await finishSession(api.database, held, { status: "cancelled", summary: null, failure: null });
  }
  await isOver(stream);
  expect(stream.messages.at(-1)).toEqual({ id: null, event: "end", data: {} });
  expect(stream.messages.at(-2)).toMatchObject({ event: "session.status", data: { data: { to: how } } });
});

test("a stream of a session that is over already gives everything and ends", async () => {
  const held = await running();
  await appendClaimEvents(
    api.database,
    held,
    upTo(450).map((index) => notice(`${index}`)),
  );
  await end(held);
  const stream = await open(held.sessionId);
  await isOver(stream);
  expect(stream.seen()).toEqual(upTo((await stored(held.sessionId)).length));
  const late = await open(held.sessionId, { lastEventId: "10000" });
  await isOver(late);
  expect(late.messages).toEqual([{ id: null, event: "end", data: {} }]);
});

test("Last-Event-ID goes on after that event, and counts before `after`", async () => {
  const held = await running();
  await end(held);
  const total = (await stored(held.sessionId)).length;
  const ways: [StreamCall, number][] = [
    [{ lastEventId: "2" }, 2],
    [{ after: 3 }, 3],
    [{ after: 1, lastEventId: "3" }, 3],
    [{ lastEventId: "0" }, 0],
    [{ lastEventId: "no number" }, 0],
    [{ lastEventId: "-1", after: 1 }, 1],
  ];
  for (const [call, from] of ways) {
    const stream = await open(held.sessionId, call);
    await isOver(stream);
    expect({ call, seen: stream.seen() }).toEqual({ call, seen: upTo(total).slice(from) });
  }
});

test("a reader whose connection is cut again and again has every event once", async () => {
  const held = await running();
  const seen: number[] = [];
  const reading = (async () => {
    for (let cuts = 0; ; cuts += 1) {
      const last = seen.at(-1);
      const stream = await open(held.sessionId, last === undefined ? {} : { lastEventId: String(last) });
      // Cut after a few events, in the midst of what is sent.
      await waitFor(() => stream.ended() || stream.seen().length > cuts % 5, "something comes");
      const done = stream.ended() && stream.messages.at(-1)?.event === "end";
      if (!done) stream.cut();
      seen.push(...stream.seen());
      if (done) return cuts;
    }
  })();
  await atOnce(20, async (writer) => {
    for (let part = 0; part < 10; part += 1) await appendClaimEvents(api.database, held, [notice(`${writer} ${part}`)]);
  });
  await waitFor(() => seen.length > 50, "the reader has come a way");
  await end(held);
  expect(await reading).toBeGreaterThan(3);
  expect(seen).toEqual(upTo((await stored(held.sessionId)).length));
});

test("20 readers of one session and readers of another each have their own events, whole and in order", async () => {
  const [one, other] = [await running(), await running()];
  const streams = await atOnce(20, (index) => open(index % 2 === 0 ? one.sessionId : other.sessionId));
  await atOnce(20, (index) =>
    appendClaimEvents(api.database, index % 3 === 0 ? one : other, [notice(`${index}`), notice(`${index} too`)]),
  );
  await Promise.all([end(one), end(other)]);
  await Promise.all(streams.map(isOver));
  const expected = await Promise.all([one, other].map(({ sessionId }) => stored(sessionId)));
  for (const [index, stream] of streams.entries()) {
    expect(stream.messages.slice(0, -1).map(({ data }) => data)).toEqual(expected[index % 2]);
  }
});

test("a follow-up at the end of an attempt goes on in the same stream or after its end, but is never left out", async () => {
  const { database, organizationId } = api;
  for (let round = 0; round < 20; round += 1) {
    const held = await running();
    const stream = await open(held.sessionId);
    await Promise.all([
      end(held),
      addMessage(database, organizationId, held.sessionId, { id: crypto.randomUUID(), text: "And?", from: null }),
    ]);
    const again = await requireClaim(database);
    await end(again);
    await isOver(stream);
    const rest = await open(held.sessionId, { lastEventId: String(stream.seen().at(-1)) });
    await isOver(rest);
    expect([...stream.seen(), ...rest.seen()]).toEqual(upTo((await stored(held.sessionId)).length));
  }
});

test("a server that closes ends its streams, and the next one goes on where they were", async () => {
  const [first, second] = [await api.another(), await api.another()];
  for (const app of [first, second]) await app.listen({ host: "127.0.0.1", port: 0 });
  const held = await running();
  const stream = await open(held.sessionId, { app: first });
  const before = (await stored(held.sessionId)).length;
  await waitFor(() => stream.seen().length === before, "the past is sent");
  await first.close();
  await isOver(stream);
  // No word of an end: the session goes on, so the reader must come back.
  expect(stream.messages.at(-1)?.event).not.toBe("end");
  await appendClaimEvents(api.database, held, [notice("between")]);
  const next = await open(held.sessionId, { app: second, lastEventId: String(before) });
  await end(held);
  await isOver(next);
  expect([...stream.seen(), ...next.seen()]).toEqual(upTo((await stored(held.sessionId)).length));
});

test("if nothing happens the stream gives signs of life", async () => {
  const app = await api.another({ heartbeatMs: 10 });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const held = await running();
  const stream = await open(held.sessionId, { app });
  await waitFor(() => stream.comments.filter((comment) => comment === ": heartbeat").length >= 3, "three heartbeats");
  expect(stream.comments[0]).toBe(": connected");
  await end(held);
  await isOver(stream);
});

test("whose key is revoked, or who is disabled, reads on until the next sign of life and no longer", async () => {
  const app = await api.another({ heartbeatMs: 20 });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const held = await running();
  const { record, key } = await createKey(api.database, api.organizationId, {
    name: "lent",
    scopes: ["read"],
    automationIds: null,
  });
  const identity = { issuer: "https://issuer.test", subject: "reader", name: "Reader", email: null, login: null };
  const user = await signInUser(api.database, api.organizationId, { ...identity, organizations: [] }, "viewer");
  const userId = user?.id ?? "";
  const principal = {
    organizationId: api.organizationId,
    keyId: null,
    userId,
    scopes: ["read" as const],
    automationIds: null,
  };
  const cookie = `offstage_session=${await createBrowserSession(api.database, principal, { days: 30, address: null, userAgent: null })}`;
  const byKey = await open(held.sessionId, { app, headers: { authorization: `Bearer ${key}` } });
  const byUser = await open(held.sessionId, { app, headers: { cookie } });
  const kept = await open(held.sessionId, { app });
  await waitFor(() => byUser.comments.length > 2 && byKey.comments.length > 2, "both read for a while");
  await revokeKey(api.database, api.organizationId, record.id);
  await updateUser(api.database, api.organizationId, userId, { disabled: true });
  await Promise.all([isOver(byKey), isOver(byUser)]);
  expect([...byKey.messages, ...byUser.messages].filter(({ event }) => event === "end")).toEqual([]);
  expect(kept.ended()).toBe(false);
  kept.cut();
  await end(held);
});

test("an event of which no word came is sent with the next sign of life", async () => {
  const app = await api.another({ heartbeatMs: 50 });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const held = await running();
  const stream = await open(held.sessionId, { app });
  const before = (await stored(held.sessionId)).length;
  await waitFor(() => stream.seen().length === before, "the past is sent");
  // As where the process that wrote it died before it could notify.
  await api.database.transaction((transaction) => appendEvents(transaction, held.sessionId, [notice("unheard")]));
  await waitFor(() => stream.seen().length === before + 1, "the event is sent");
  stream.cut();
});

test("a stream that lost the database's word for a while finds out what happened", async () => {
  const held = await running();
  const stream = await open(held.sessionId);
  const before = (await stored(held.sessionId)).length;
  await waitFor(() => stream.seen().length === before, "the past is sent");
  await api.database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and query ilike 'listen%'`,
  );
  await appendClaimEvents(api.database, held, [notice("meanwhile")]);
  await waitFor(() => stream.seen().length === before + 1, "the event is sent");
  stream.cut();
});

test("a reader that left is let go", async () => {
  const held = await running();
  const answers = answersOf(server);
  const streams = await atOnce(5, () => open(held.sessionId));
  const connections = () =>
    new Promise<number>((resolve) => server.server.getConnections((_error, count) => resolve(count)));
  await waitFor(async () => (await connections()) >= 5, "all are connected");
  for (const stream of streams) stream.cut();
  await waitFor(async () => (await connections()) === 0, "all connections are gone");
  await waitFor(
    () => answers.length === 5 && answers.every((answer) => answer.writableEnded),
    "all streams end",
    10_000,
  );
  // Nothing of them is in the way of what comes.
  await end(held);
  const stream = await open(held.sessionId);
  await isOver(stream);
  expect(stream.seen()).toEqual(upTo((await stored(held.sessionId)).length));
});

test("a reader that left before its stream began is let go too", async () => {
  const { database } = api;
  const { sessionId } = await running();
  const { record, key } = await createKey(database, api.organizationId, { name: "slow", scopes: ["read"] });
  const answers = answersOf(server);
  const holder = await database.pool.connect();
  try {
    // The use of a new key is noted, which this holds up.
    await holder.query("begin");
    await holder.query("select 1 from api_key where id = $1 for update", [record.id]);
    const { port } = server.server.address() as AddressInfo;
    const headers = { accept: "text/event-stream", authorization: `Bearer ${key}` };
    const outgoing = request({ port, agent: false, path: `/session/${sessionId}/events`, headers });
    outgoing.on("error", () => undefined);
    outgoing.end();
    await waitFor(() => answers.length === 1, "the request arrives");
    outgoing.destroy();
    await waitFor(() => answers[0]?.closed, "the server knows that the reader left");
    await holder.query("commit");
    await waitFor(() => answers[0]?.writableEnded, "the stream ends");
  } finally {
    holder.release(true);
  }
});

test("what a slow reader does not take is not heaped up in memory", async () => {
  const held = await running();
  const events = upTo(100).map(() => notice("x".repeat(20_000)));
  for (let part = 0; part < 10; part += 1) await appendClaimEvents(api.database, held, events);
  await end(held);
  const answers = answersOf(server);
  const slow = await open(held.sessionId);
  slow.response.pause();
  // A reader as fast as it can be gives the slow one's stream all the time to be written.
  const fast = await open(held.sessionId);
  await isOver(fast);
  expect(answers[0]?.writableLength).toBeLessThan(6 * 1024 * 1024);
  slow.response.resume();
  await isOver(slow);
  expect(slow.seen()).toEqual(fast.seen());
  expect(slow.seen()).toEqual(upTo((await stored(held.sessionId)).length));
});

test("a server can close although a reader takes nothing", async () => {
  const app = await api.another();
  await app.listen({ host: "127.0.0.1", port: 0 });
  const held = await running();
  const answers = answersOf(app);
  const stream = await open(held.sessionId, { app });
  stream.response.pause();
  const events = upTo(100).map(() => notice("x".repeat(20_000)));
  for (let part = 0; part < 5; part += 1) await appendClaimEvents(api.database, held, events);
  await waitFor(() => answers[0]?.writableNeedDrain, "the stream waits for its reader");
  await app.close();
  expect(app.server.listening).toBe(false);
});

test("without the Accept header the same address gives a page", async () => {
  const held = await running();
  const { status, body } = await api.get(`/session/${held.sessionId}/events?after=1&limit=1`);
  expect(status).toBe(200);
  expect(body.events.map(({ seq }: { seq: number }) => seq)).toEqual([2]);
  expect(body.nextCursor).toBe("2");
});

test("if older events were removed, the page and the stream begin at the first that is there", async () => {
  const { id } = await addSession(api.database, api.organizationId);
  const events: NewEvent[] = Array.from({ length: 1_500 }, (_, index) => ({
    type: "notice",
    data: { level: "info", text: String(index) },
  }));
  await api.database.transaction((transaction) => appendEvents(transaction, id, events));
  await cancelSession(api.database, api.organizationId, id);
  await api.database.pool.query("update session set finished_at = now() - interval '9 days' where id = $1", [id]);
  const newest = (await listEvents(api.database, api.organizationId, id, 1_000, 1_000))?.events.map(({ seq }) => seq);
  const stopped = new AbortController();
  const transaction: typeof api.database.transaction = async (work) => {
    const result = await api.database.transaction(work);
    stopped.abort();
    return result;
  };
  await pruneEvents({ ...api.database, transaction }, 7, stopped.signal);
  const page = await api.get(`/session/${id}/events?limit=1000`);
  expect((page.body as { events: { seq: number }[] }).events.map(({ seq }) => seq)).toEqual(newest);
  expect((await api.get(`/session/${id}`)).body).toMatchObject({ eventsRemovedThrough: 1_000 });
  for (const lastEventId of ["0", "500"]) {
    const stream = await open(id, { lastEventId });
    await waitFor(() => stream.ended(), "the stream ends");
    expect(stream.seen()).toEqual(newest);
  }
  await pruneEvents(api.database, 7, new AbortController().signal);
  const emptied = await open(id);
  // Kept open for a next request, it would hold up a server that stops.
  expect(emptied.response.headers.connection).toBe("close");
  await waitFor(() => emptied.ended(), "the stream ends");
  expect(emptied.seen()).toEqual([]);
  expect((await api.get(`/session/${id}/events`)).body).toEqual({ events: [], nextCursor: null });
});
