import type { AddressInfo } from "node:net";
import { createParser } from "eventsource-parser";
import type { FastifyInstance } from "fastify";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createKey, revokeKey } from "../../src/store/people/keys.ts";
import { finishSession } from "../../src/store/queue/claims.ts";
import { appendClaimEvents, completeMessage, nextMessage } from "../../src/store/queue/progress.ts";
import { addOrganization, addSession, requireClaim } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

interface Change {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: { readonly id?: string; readonly status?: string; readonly archivedAt?: string | null };
}

let api: TestApp;
const cuts: AbortController[] = [];

beforeAll(async () => {
  api = await createTestApp();
  await api.app.listen({ host: "127.0.0.1", port: 0 });
});

afterEach(() => {
  for (const cut of cuts.splice(0)) cut.abort();
});

afterAll(() => api?.close());

/** A stream of changes, with what was read so far in `changes`. */
async function watch({
  key = api.adminKey,
  lastEventId,
  app = api.app,
}: { readonly key?: string; readonly lastEventId?: string | undefined; readonly app?: FastifyInstance } = {}) {
  const { port } = app.server.address() as AddressInfo;
  const cut = new AbortController();
  cuts.push(cut);
  const response = await fetch(`http://127.0.0.1:${port}/session/changes`, {
    headers: {
      accept: "text/event-stream",
      authorization: `Bearer ${key}`,
      ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
    },
    signal: cut.signal,
  });
  const changes: Change[] = [];
  const state = { ended: false };
  const parser = createParser({
    onEvent: ({ id, event = "", data }) => changes.push({ id, event, data: JSON.parse(data) as Change["data"] }),
  });
  const reading = (async () => {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) parser.feed(chunk);
  })();
  void reading.then(
    () => (state.ended = true),
    () => (state.ended = true),
  );
  return { response, changes, state, cut: () => cut.abort() };
}

type Watched = Awaited<ReturnType<typeof watch>>;

/** The stream's changes of a session, in order. */
const statusesOf = ({ changes }: Watched, id: string): (string | undefined)[] =>
  changes.flatMap(({ event, data }) => (data.id === id ? [event === "session" ? data.status : event] : []));

async function until(stream: Watched, id: string, status: string): Promise<void> {
  await expect.poll(() => statusesOf(stream, id).at(-1)).toBe(status);
}

const create = async (): Promise<string> => {
  const { status, body } = await api.post("/session/create", { prompt: "Work" });
  expect(status).toBe(200);
  return body.id;
};

describe("the stream of changes in a list", () => {
  test("begins with reset, and has each session that is created, changed, archived or deleted", async () => {
    const stream = await watch();
    expect(stream.response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    await expect.poll(() => stream.changes.map(({ event }) => event)).toEqual(["reset"]);
    const id = await create();
    await until(stream, id, "queued");
    const shown = (await api.get(`/session/${id}`)).body;
    const created = stream.changes.find(({ data }) => data.id === id)?.data;
    expect(created).toEqual({ ...shown, estimatedWaitSeconds: null });
    await api.post(`/session/${id}/cancel`, {});
    await until(stream, id, "cancelled");
    await api.post(`/session/${id}/labels`, { labels: ["seen"] });
    await expect.poll(() => stream.changes.at(-1)?.data).toMatchObject({ id, labels: ["seen"] });
    await api.post(`/session/${id}/archive`, {});
    await expect.poll(() => stream.changes.at(-1)?.data.archivedAt ?? null).not.toBeNull();
    await api.post(`/session/${id}/delete`, {});
    await until(stream, id, "deleted");
    expect(statusesOf(stream, id)).toEqual(["queued", "cancelled", "cancelled", "cancelled", "deleted"]);
  });

  test("goes on where it was cut off, with nothing twice and nothing left out", async () => {
    const first = await watch();
    const one = await create();
    await until(first, one, "queued");
    const position = first.changes.at(-1)?.id;
    first.cut();
    const two = await create();
    await api.post(`/session/${one}/cancel`, {});
    // Only what a further watcher sees is sure to be in the feed.
    const beside = await watch({ lastEventId: position });
    await until(beside, one, "cancelled");
    await until(beside, two, "queued");
    const again = await watch({ lastEventId: position });
    await until(again, two, "queued");
    await until(again, one, "cancelled");
    expect(again.changes).toEqual(beside.changes);
    expect(again.changes.map(({ event }) => event)).not.toContain("reset");
    expect(statusesOf(again, one)).toEqual(["cancelled"]);
  });

  test.each(["", "nonsense", "0123456789ab-7", "0123456789ab-99999999999999999999"])(
    "asks a client with the position %j, which is of no feed here, to read the list again",
    async (lastEventId) => {
      const stream = await watch({ lastEventId });
      await expect.poll(() => stream.changes.map(({ event }) => event)).toEqual(["reset"]);
    },
  );

  test("tells it too to those who watch while the database's notifications were lost", async () => {
    const stream = await watch();
    const id = await create();
    await until(stream, id, "queued");
    await api.database.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await expect.poll(() => stream.changes.filter(({ event }) => event === "reset").length).toBeGreaterThan(1);
    await api.post(`/session/${id}/cancel`, {});
    await until(stream, id, "cancelled");
  });

  test("finds what was never notified when it looks again at what is under way", async () => {
    const other = await api.another({ lookAgainMs: 50 });
    await other.listen({ host: "127.0.0.1", port: 0 });
    const stream = await watch({ app: other });
    const id = await create();
    await until(stream, id, "queued");
    await api.database.pool.query("update session set status = 'completed', finished_at = now() where id = $1", [id]);
    await until(stream, id, "completed");
  });

  test("says nothing again if only what the list does not show has changed", async () => {
    const stream = await watch();
    await addSession(api.database, api.organizationId, { priority: 1 });
    const held = await requireClaim(api.database);
    await until(stream, held.sessionId, "running");
    const before = statusesOf(stream, held.sessionId);
    for (let count = 0; count < 3; count += 1)
      await appendClaimEvents(api.database, held, [{ type: "notice", data: { level: "info", text: `${count}` } }]);
    // Another session's change comes after them.
    const other = await create();
    await until(stream, other, "queued");
    expect(statusesOf(stream, held.sessionId)).toEqual(before);
    const message = await nextMessage(api.database, held);
    await completeMessage(api.database, held, message?.id ?? "", { answer: "Yes.", isKept: true });
    await finishSession(api.database, held, { status: "completed", summary: "Done.", failure: null });
    await until(stream, held.sessionId, "completed");
  });

  test("tells nothing of another organization, and ends when the key is revoked", async () => {
    const app = await api.another({ heartbeatMs: 20 });
    await app.listen({ host: "127.0.0.1", port: 0 });
    const elsewhere = await addOrganization(api.database);
    const { key, record } = await createKey(api.database, elsewhere, { name: "theirs", scopes: ["read"] });
    const theirs = await watch({ app, key });
    const ours = await watch({ app });
    const own = await create();
    await until(ours, own, "queued");
    const foreign = await addSession(api.database, elsewhere);
    await until(theirs, foreign.id, "queued");
    await api.post(`/session/${own}/cancel`, {});
    await api.post(`/session/${own}/delete`, {});
    await until(ours, own, "deleted");
    expect(theirs.changes.map(({ data }) => data.id).filter((id) => id !== undefined)).toEqual([foreign.id]);
    await revokeKey(api.database, elsewhere, record.id);
    await expect.poll(() => theirs.state.ended).toBe(true);
    expect(ours.state.ended).toBe(false);
  });

  test("is refused to a request for no stream", async () => {
    const answer = await api.get("/session/changes");
    expect([answer.status, answer.body.error]).toEqual([400, "Accept: must be text/event-stream, as this is a stream"]);
  });
});
