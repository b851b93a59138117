import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createKey } from "../../src/store/people/keys.ts";
import {
  abandonRequest,
  beginRequest,
  finishRequest,
  pruneRequests,
  type HeldRequest,
} from "../../src/store/requests/idempotency.ts";
import { addOrganization, atOnce } from "../store/fixtures.ts";
import { createTestApp, type Answer, type TestApp } from "./app.ts";

let api: TestApp;

beforeAll(async () => {
  api = await createTestApp();
});

afterAll(() => api?.close());

const create = (prompt: string, idempotencyKey: string): Promise<Answer> =>
  api.post("/session/create", { prompt }, { headers: { "idempotency-key": idempotencyKey } });

async function sessionsWith(prompt: string): Promise<number> {
  const { rows } = await api.database.pool.query<{ count: number }>(
    "select count(*)::integer as count from session where prompt = $1",
    [prompt],
  );
  return rows[0]?.count ?? 0;
}

/** As if the first request under the key had been made so long ago. */
async function age(key: string, interval: string): Promise<void> {
  await api.database.pool.query("update idempotency set created_at = now() - $2::interval where key = $1", [
    key,
    interval,
  ]);
}

test("the same key with the same body gives the first answer again, marked as such, and makes nothing", async () => {
  const first = await create("same", "same");
  expect(first).toMatchObject({ status: 200, body: { status: "queued" } });
  expect(first.headers["idempotent-replayed"]).toBeUndefined();
  await api.post(`/session/${first.body.id}/cancel`, {});
  const again = await create("same", "same");
  expect(again).toMatchObject({ status: 200, body: first.body });
  expect(again.headers["idempotent-replayed"]).toBe("true");
  expect(again.headers["content-type"]).toBe(first.headers["content-type"]);
  expect(await sessionsWith("same")).toBe(1);
});

test("the same key with another body is a conflict that says what to do, and makes nothing", async () => {
  await create("one body", "other-body");
  const refused = await create("other body", "other-body");
  expect(refused.status).toBe(409);
  expect(refused.body).toEqual({ error: "Idempotency-Key was used for another request: choose a new one" });
  expect(await sessionsWith("other body")).toBe(0);
  expect((await create("one body", "other-body")).status).toBe(200);
});

test("the same key for another operation is a conflict, the same operation under the published prefix is not", async () => {
  const headers = { "idempotency-key": "operations" };
  const first = await api.post("/session/create", { prompt: "operations" }, { headers });
  expect((await api.post("/task/create", { prompt: "operations" }, { headers })).status).toBe(409);
  const prefixed = await api.post("/api/public-api/session/create", { prompt: "operations" }, { headers });
  expect(prefixed.body).toEqual(first.body);
});

test("concurrent duplicates make one session: each is answered like the first, or asked to retry", async () => {
  const answers = await atOnce(20, () => create("duplicates", "duplicates"));
  const good = answers.filter(({ status }) => status === 200);
  const early = answers.filter(({ status }) => status !== 200);
  expect(new Set(good.map(({ body }) => body.id)).size).toBe(1);
  expect(good.filter(({ headers }) => headers["idempotent-replayed"] === undefined)).toHaveLength(1);
  for (const { status, headers } of early) expect([status, headers["retry-after"]]).toEqual([409, "1"]);
  expect(await sessionsWith("duplicates")).toBe(1);
  expect((await create("duplicates", "duplicates")).body).toEqual(good[0]?.body);
});

test("a rejection that says when to come again is not repeated then", async () => {
  const { body } = await create("to be cancelled", "cancelled-session");
  const change = (cancelRequested: boolean) =>
    api.database.pool.query("update session set cancel_requested = $2 where id = $1", [body.id, cancelRequested]);
  const send = () =>
    api.post(
      `/session/${body.id}/message`,
      { message: "Go on." },
      { headers: { "idempotency-key": "cancelled-message" } },
    );
  await change(true);
  const early = await send();
  expect([early.status, early.headers["retry-after"]]).toEqual([409, "1"]);
  await change(false);
  const later = await send();
  expect([later.status, later.headers["idempotent-replayed"]]).toEqual([200, undefined]);
  expect((await send()).headers["idempotent-replayed"]).toBe("true");
});

test("a request that is still under way is a conflict with Retry-After, for another body too", async () => {
  const headers = { "idempotency-key": "under-way" };
  await create("under way", "under-way");
  await api.database.pool.query("update idempotency set status = null, body = null where key = 'under-way'");
  const early = await api.post("/session/create", { prompt: "under way" }, { headers });
  expect([early.status, early.headers["retry-after"]]).toEqual([409, "1"]);
  const other = await api.post("/session/create", { prompt: "another" }, { headers });
  expect(other.status).toBe(409);
  expect(await sessionsWith("under way")).toBe(1);
});

test("a key whose request died without an answer is free after a minute", async () => {
  await create("died", "died");
  await api.database.pool.query("update idempotency set status = null, body = null where key = 'died'");
  await age("died", "59 seconds");
  expect((await create("died", "died")).status).toBe(409);
  await age("died", "61 seconds");
  const fresh = await create("died", "died");
  expect(fresh.status).toBe(200);
  expect(fresh.headers["idempotent-replayed"]).toBeUndefined();
});

test("an answer is given again for 24 hours, and then the key is free", async () => {
  const first = await create("a day", "a-day");
  await age("a-day", "23 hours 59 minutes");
  expect((await create("a day", "a-day")).body.id).toBe(first.body.id);
  await age("a-day", "24 hours 1 second");
  const fresh = await create("a day", "a-day");
  expect(fresh.status).toBe(200);
  expect(fresh.body.id).not.toBe(first.body.id);
});

test("a body that is refused before anything was done leaves the key free for the mended one", async () => {
  const headers = { "idempotency-key": "mended" };
  expect((await api.post("/session/create", {}, { headers })).status).toBe(400);
  expect((await api.post("/session/create", { prompt: "mended" }, { headers })).status).toBe(200);
});

test("a refusal of the operation itself is the first answer too", async () => {
  const headers = { "idempotency-key": "refusal" };
  const first = await api.post("/automation/later/trigger", {}, { headers });
  expect(first.status).toBe(404);
  await api.post("/automation/create", { name: "Later", macro: "later", instructions: "x" });
  const again = await api.post("/automation/later/trigger", {}, { headers });
  expect([again.status, again.body]).toEqual([404, first.body]);
  expect(again.headers["idempotent-replayed"]).toBe("true");
});

test("a fault of the server leaves the key free", async () => {
  const headers = {
    "content-type": "application/json",
    authorization: `Bearer ${api.adminKey}`,
    "idempotency-key": "fault",
  };
  const broken = await api.another({ agents: () => Promise.reject(new Error("the disk is full")) });
  const request = {
    method: "POST",
    url: "/session/create",
    headers,
    payload: { prompt: "fault", agent: "opencode:m" },
  } as const;
  expect((await broken.inject(request)).statusCode).toBe(500);
  expect((await api.app.inject(request)).statusCode).toBe(200);
  expect(await sessionsWith("fault")).toBe(1);
});

test("two organizations' keys are apart even if they are spelt alike", async () => {
  const other = await addOrganization(api.database);
  const { key } = await createKey(api.database, other, { name: "other", scopes: ["write"] });
  const first = await create("alike", "alike");
  const headers = { "idempotency-key": "alike" };
  const second = await api.post("/session/create", { prompt: "alike" }, { headers, key });
  expect(second.status).toBe(200);
  expect(second.body.id).not.toBe(first.body.id);
  expect(second.body.organizationId).toBe(other);
});

test("a follow-up message and a trigger that are sent twice count once", async () => {
  const headers = { "idempotency-key": "message" };
  const { body: session } = await create("messages", "messages");
  for (let sent = 0; sent < 3; sent += 1) {
    await api.post(`/session/${session.id}/message`, { message: "And?" }, { headers });
  }
  const { body: page } = await api.get(`/session/${session.id}/events`);
  expect(page.events.filter((event: { type: string }) => event.type === "message.user")).toHaveLength(2);

  await api.post("/automation/create", { name: "Twice", macro: "twice", instructions: "x" });
  const trigger = { headers: { "idempotency-key": "trigger" } };
  const jobs = await atOnce(3, () => api.post("/automation/twice/trigger", { n: 1 }, trigger));
  const made = jobs.filter(({ status }) => status === 200).map(({ body }) => body.id);
  expect(new Set(made).size).toBe(1);
  expect((await api.get("/automation/twice/runs")).body.runs).toHaveLength(1);
});

test.each([
  ["an empty one", ""],
  ["one with a space", "a b"],
  ["one of 256 characters", "x".repeat(256)],
  ["one that is not ASCII", "caf\u00e9"],
])("a key is 1 to 255 visible ASCII characters: %s is refused", async (_name, key) => {
  const refused = await create("bad key", key);
  expect(refused).toMatchObject({
    status: 400,
    body: { error: "Idempotency-Key must be 1 to 255 visible ASCII characters" },
  });
  expect(await sessionsWith("bad key")).toBe(0);
});

test("a key of 255 characters is taken", async () => {
  expect((await create("long key", "~".repeat(255))).status).toBe(200);
});

async function begin(key: string, content: string): Promise<HeldRequest> {
  const begun = await beginRequest(api.database, api.organizationId, key, Buffer.from(content));
  if (begun.state !== "new") throw new Error(`the request ${key} is not new: ${begun.state}`);
  return begun.held;
}

test("what took over a minute neither answers nor gives up in the place of the request that came after it", async () => {
  const ask = (content: string) => beginRequest(api.database, api.organizationId, "slow", Buffer.from(content));
  const first = await begin("slow", "one body");
  await age("slow", "61 seconds");
  const second = await begin("slow", "other body");
  await finishRequest(api.database, first, 200, '"first"');
  await abandonRequest(api.database, first);
  expect(await ask("other body")).toEqual({ state: "inProgress" });
  await finishRequest(api.database, second, 200, '"second"');
  await finishRequest(api.database, first, 200, '"first"');
  expect(await ask("other body")).toMatchObject({ state: "replay", body: '"second"' });
  expect(await ask("one body")).toEqual({ state: "mismatch" });
});

test("pruning forgets what is older than a day, and nothing else", async () => {
  const { database } = api;
  await pruneRequests(database, new AbortController().signal);
  for (const key of ["pruned", "kept"]) {
    await finishRequest(database, await begin(key, key), 200, "{}");
  }
  await age("pruned", "24 hours 1 second");
  await age("kept", "23 hours 59 minutes");
  expect(await pruneRequests(database, new AbortController().signal)).toBe(1);
  const { rows } = await database.pool.query<{ key: string }>(
    "select key from idempotency where key in ('pruned', 'kept')",
  );
  expect(rows).toEqual([{ key: "kept" }]);
});

test("a server that dies between making something and keeping its answer makes it once, whatever it is", async () => {
  const automation = { name: "Nightly", macro: "nightly", instructions: "Work" };
  const { body: session } = await api.post("/session/create", { prompt: "followed" });
  const requests: readonly [url: string, body: unknown, count: string][] = [
    ["/session/create", { prompt: "died in between" }, "session where prompt = 'died in between'"],
    ["/task/create", { prompt: "died older" }, "session where prompt = 'died older'"],
    ["/automation/create", automation, "automation where macro = 'nightly'"],
    ["/automation/nightly/trigger", { died: true }, "job where payload = '{\"died\": true}'"],
    [`/session/${session.id}/message`, { message: "died message" }, "message where text = 'died message'"],
    ["/secret/create", { name: "DIED", value: "died" }, "secret where name = 'DIED'"],
  ];
  for (const [url, body, table] of requests) {
    const headers = { "idempotency-key": `died ${url}`.replaceAll(/\s/gu, "-") };
    const first = await api.post(url, body, { headers });
    expect(first.status).toBe(200);
    // As it was when it died: begun, and never answered.
    await api.database.pool.query("update idempotency set status = null, body = null where key = $1", [
      headers["idempotency-key"],
    ]);
    await age(headers["idempotency-key"], "61 seconds");
    const again = await api.post(url, body, { headers });
    expect([again.status, again.body.id, again.headers["idempotent-replayed"]]).toEqual([
      200,
      first.body.id,
      undefined,
    ]);
    const { rows } = await api.database.pool.query<{ count: number }>(
      `select count(*)::integer as count from ${table}`,
    );
    expect([url, rows[0]?.count]).toEqual([url, 1]);
  }
});

test("a secret is created once too, and its value can't be found out from what is kept of the request", async () => {
  const headers = { "idempotency-key": "secret" };
  const [first, again] = [
    await api.post("/secret/create", { name: "PIN", value: "1234" }, { headers }),
    await api.post("/secret/create", { name: "PIN", value: "1234" }, { headers }),
  ];
  expect(again).toMatchObject({ status: 200, body: first.body, headers: { "idempotent-replayed": "true" } });
  expect((await api.post("/secret/create", { name: "PIN", value: "1235" }, { headers })).status).toBe(409);
  const { rows } = await api.database.pool.query<{ request_hash: Buffer; body: string }>(
    "select request_hash, body from idempotency where key = 'secret'",
  );
  const guess = createHash("sha256")
    .update(JSON.stringify(["/secret/create", { name: "PIN", value: "1234" }]))
    .digest();
  expect(rows[0]?.request_hash.equals(guess)).toBe(false);
  expect(rows[0]?.body).not.toContain("1234");
});

test("a last slash makes no other request", async () => {
  const headers = { "idempotency-key": "slash" };
  const first = await api.post("/session/create", { prompt: "slash" }, { headers });
  expect(await api.post("/session/create/", { prompt: "slash" }, { headers })).toMatchObject({
    status: 200,
    body: first.body,
  });
});

test("another body under a key that was given up is another thing", async () => {
  const first = await create("given up", "given-up");
  await api.database.pool.query("update idempotency set status = null, body = null where key = 'given-up'");
  await age("given-up", "61 seconds");
  const other = await create("something else", "given-up");
  expect(other.status).toBe(200);
  expect(other.body.id).not.toBe(first.body.id);
});
