import { afterAll, beforeAll, expect, it } from "vitest";
import { pruneRequests } from "../../src/store/idempotency.ts";
import { createKey } from "../../src/store/keys.ts";
import { createTestApp, type Answer, type TestApp } from "./app.ts";

let testApp: TestApp;

beforeAll(async () => {
  testApp = await createTestApp();
});

afterAll(() => testApp?.close());

function create(idempotencyKey: string, prompt = "x", key?: string): Promise<Answer> {
  return testApp.request("POST", "/session/create", {
    body: { prompt },
    headers: { "idempotency-key": idempotencyKey },
    ...(key !== undefined && { key }),
  });
}

const countSessions = async (prompt: string): Promise<number> => {
  const { rows } = await testApp.testDatabase.database.pool.query<{ count: number }>(
    "select count(*)::integer as count from session where prompt = $1",
    [prompt],
  );
  return rows[0]?.count ?? -1;
};

it("gives the first answer again for the same request, and makes nothing twice", async () => {
  const first = await create("same", "once");
  const again = await create("same", "once");
  expect(again.body).toEqual(first.body);
  expect(again.headers["idempotent-replayed"]).toBe("true");
  expect(first.headers["idempotent-replayed"]).toBeUndefined();
  expect(await countSessions("once")).toBe(1);
});

it("refuses another body under the same key", async () => {
  await create("other-body", "one");
  expect(await create("other-body", "two")).toMatchObject({ status: 409 });
  expect(await countSessions("two")).toBe(0);
});

it("makes one session of twenty requests at once: the others get its answer or are told to come again", async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => create("at-once", "crowd")));
  const ids = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => String(body.id)));
  expect(ids.size).toBe(1);
  const refused = answers.filter(({ status }) => status !== 200);
  expect(refused.every(({ status, headers }) => status === 409 && headers["retry-after"] === "1")).toBe(true);
  expect(await countSessions("crowd")).toBe(1);
});

it("keeps a refusal too, and frees the key of a request that could not be tried", async () => {
  const { request } = testApp;
  const headers = { "idempotency-key": "refused" };
  const first = await request("POST", "/session/create", { body: { prompt: "x", agent: "nobody:m" }, headers });
  const again = await request("POST", "/session/create", { body: { prompt: "x", agent: "nobody:m" }, headers });
  expect([first.status, again.status]).toEqual([400, 400]);
  expect(again.body).toEqual(first.body);
});

it("belongs to one organization and one operation", async () => {
  const { database } = testApp.testDatabase;
  const other = crypto.randomUUID();
  await database.pool.query("insert into organization (id, name) values ($1, 'other')", [other]);
  const { key } = await createKey(database, other, { name: "theirs", scopes: ["write"] });
  const mine = await create("shared", "mine");
  const theirs = await create("shared", "mine", key);
  expect(theirs.body.id).not.toBe(mine.body.id);
  const automation = await testApp.request("POST", "/automation/create", {
    body: { name: "x", macro: "x", instructions: "x" },
    headers: { "idempotency-key": "shared" },
  });
  expect(automation.status).toBe(409);
});

it.each(["", "has space", "x".repeat(256), "ümlaut"])("refuses the key %j", async (key) => {
  const answer = await create(key);
  expect(answer).toMatchObject({ status: 400 });
  expect(answer.body.error).toContain("Idempotency-Key");
});

it("is forgotten after a day, and then free again", async () => {
  const { database } = testApp.testDatabase;
  const first = await create("old", "first day");
  await database.pool.query("update idempotency set created_at = now() - interval '25 hours' where key = 'old'");
  const next = await create("old", "next day");
  expect(next.status).toBe(200);
  expect(next.body.id).not.toBe(first.body.id);
  await database.pool.query("update idempotency set created_at = now() - interval '25 hours' where key = 'old'");
  expect(await pruneRequests(database)).toBe(1);
});

it("of a request whose server died is free again after a minute", async () => {
  const { database } = testApp.testDatabase;
  await create("died", "died");
  await database.pool.query(
    "update idempotency set status = null, body = null, created_at = now() - interval '61 seconds' where key = 'died'",
  );
  expect(await create("died", "died")).toMatchObject({ status: 200 });
});
