import { afterAll, beforeAll, expect, test } from "vitest";
import { appendEvents } from "../../src/store/sessions/events.ts";
import { storeSession, type StoredSession } from "../web/content/sessions.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
let shop: string;
let web: string;

beforeAll(async () => {
  api = await createTestApp();
  shop = (await api.post("/repository/create", { url: "https://git.example/acme/shop" })).body.id;
  web = (await api.post("/repository/create", { url: "https://git.example/acme/web" })).body.id;
  const store = (session: StoredSession) => storeSession(api.database, api.organizationId, session);
  const failure = { code: "push_rejected", reason: "No.", remedy: "Allow it." };
  await store({ title: "failed long ago", status: "failed", failure, minutesAgo: 8 * 24 * 60 });
  await store({ title: "failed", status: "failed", failure, repositories: [web], minutesAgo: 60 });
  await store({ title: "waiting", status: "waiting", waiting: "the budget", minutesAgo: 50 });
  await store({ title: "running", status: "running", minutesAgo: 40, repositories: [shop, web] });
  await store({ title: "queued", status: "queued", minutesAgo: 30 });
  const opened = (number: number, mergeable?: boolean) => ({
    status: "completed" as const,
    repositories: [shop],
    pullRequest: { number, state: "open" as const, ...(mergeable !== undefined && { mergeable }) },
  });
  await store({ title: "in conflict", minutesAgo: 20, ...opened(1, false) });
  await store({ title: "for review", minutesAgo: 15, ...opened(2, true) });
  await store({ title: "for review, not known", minutesAgo: 14, ...opened(3) });
  await store({
    title: "merged",
    minutesAgo: 10,
    status: "completed",
    repositories: [shop],
    pullRequest: { number: 4, state: "merged" },
  });
});

afterAll(() => api?.close());

async function titles(query: string): Promise<string[]> {
  const { body } = await api.get(`/session/list?${query}`);
  return body.sessions.map(({ title }: { title: string }) => title);
}

test("a list of what needs a person has what waits, what failed lately, and what is in conflict", async () => {
  expect(await titles("needs=person")).toEqual(["in conflict", "waiting", "failed"]);
  expect(await titles("needs=review")).toEqual(["for review, not known", "for review"]);
  expect((await api.get("/session/list?needs=nothing")).status).toBe(400);
});

test("a list takes several statuses, those of work and those of ends, and refuses one that there is not", async () => {
  expect(await titles("status=running,queued")).toEqual(["queued", "running"]);
  expect(await titles("status=failed,running")).toEqual(["running", "failed", "failed long ago"]);
  expect(await titles("status=waiting")).toEqual(["waiting"]);
  expect((await api.get("/session/list?status=running,done")).status).toBe(400);
});

test("a list and a search are narrowed to a repository, page by page", async () => {
  expect(await titles(`repositoryId=${web}`)).toEqual(["running", "failed"]);
  const { body: first } = await api.get(`/session/list?repositoryId=${shop}&limit=2`);
  expect(first.sessions.map(({ title }: { title: string }) => title)).toEqual(["merged", "for review, not known"]);
  expect(await titles(`repositoryId=${shop}&limit=2&cursor=${first.nextCursor}`)).toEqual([
    "for review",
    "in conflict",
  ]);
  const { body: found } = await api.get(`/session/search?q=review&repositoryId=${shop}&needs=review`);
  expect(found.sessions).toHaveLength(2);
});

test("what needs somebody is of one's own organization alone", async () => {
  const { body: other } = await api.post("/key/create", { name: "other" });
  await api.database.pool.query("insert into organization (id, name) values (gen_random_uuid(), 'elsewhere')");
  await api.database.pool.query(
    "update api_key set organization_id = (select id from organization where name = 'elsewhere') where id = $1",
    [other.id],
  );
  for (const query of ["needs=person", "needs=review", "status=running,queued"]) {
    expect((await api.get(`/session/list?${query}`, { key: other.key })).body.sessions).toEqual([]);
  }
});

test("a running session tells what its agent does, and one that is over does not", async () => {
  const [running] = (await api.get("/session/list?status=running")).body.sessions;
  expect(running.activity).toBeNull();
  const tool = (toolCallId: string, title: string) => ({
    type: "agent.tool" as const,
    data: { toolCallId, title, kind: "execute", status: "in_progress" as const, locations: [], content: [] },
  });
  await appendEvents(api.database.pool, running.id, [
    tool("1", "npm ci"),
    tool("2", "npm test"),
    { type: "agent.message", data: { part: "0", text: "Testing." } },
  ]);
  expect((await api.get(`/session/${running.id}`)).body.activity).toBe("npm test");
  await api.database.pool.query("update session set status = 'completed' where id = $1", [running.id]);
  expect((await api.get(`/session/${running.id}`)).body.activity).toBeNull();
});

test("a session is created with a budget, of which only an admin may set more than the organization's", async () => {
  const { key } = (await api.post("/key/create", { name: "member", role: "member" })).body;
  const create = (budgetUsd: number, as?: string) =>
    api.post("/session/create", { prompt: "x", budgetUsd }, as === undefined ? {} : { key: as });
  const budgetOf = async ({ body }: { body: { id: string } }) => (await api.get(`/session/${body.id}`)).body.budgetUsd;
  expect(await budgetOf(await create(2.5, key))).toBe(2.5);
  await api.post("/organization/update", { sessionBudgetUsd: 2 });
  expect(await create(2.5, key)).toMatchObject({ status: 403, body: { error: /^budgetUsd: only an admin/u } });
  expect(await budgetOf(await create(1, key))).toBe(1);
  expect(await budgetOf(await create(9))).toBe(9);
  expect((await create(-1)).status).toBe(400);
});

test("a message that waits is taken back, and none that the agent has or that is all there is to do", async () => {
  const { body: session } = await api.post("/session/create", { prompt: "first" });
  const path = `/session/${session.id}`;
  const withdraw = (messageId: string) => api.post(`${path}/message/${messageId}/withdraw`, {});
  await api.post(`${path}/message`, { message: "second" });
  const { queuedMessages } = (await api.post(`${path}/message`, { message: "third" })).body;
  expect(queuedMessages).toHaveLength(2);
  expect((await withdraw(queuedMessages[0])).body.queuedMessages).toEqual([queuedMessages[1]]);
  const { events } = (await api.get(`${path}/events`)).body;
  expect(events.at(-1)).toMatchObject({ type: "message.withdrawn", data: { messageId: queuedMessages[0] } });
  expect((await withdraw(queuedMessages[0])).status).toBe(404);
  expect((await withdraw(session.id)).status).toBe(409);
  await api.database.pool.query("update message set status = 'running' where id = $1", [queuedMessages[1]]);
  expect((await withdraw(queuedMessages[1])).status).toBe(409);
  await api.database.pool.query("update message set status = 'done' where id <> $1 and session_id = $2", [
    queuedMessages[1],
    session.id,
  ]);
  await api.database.pool.query("update message set status = 'pending' where id = $1", [queuedMessages[1]]);
  expect(await withdraw(queuedMessages[1])).toMatchObject({ status: 409, body: { error: /cancel the session/u } });
});

test("branches and files of a repository are listed, the likeliest first, and only of one that may be used", async () => {
  const branches = await api.get(`/repository/${shop}/branch/list`);
  expect(branches.body).toEqual({
    branches: [
      { name: "main", isDefault: true },
      { name: "dev", isDefault: false },
    ],
    nextCursor: null,
  });
  expect((await api.get(`/repository/${shop}/branch/list?q=DE`)).body.branches).toHaveLength(1);
  expect((await api.get(`/repository/${shop}/file/list?q=read&branch=dev`)).body).toEqual({
    branch: "dev",
    files: [{ path: "README.md" }],
    nextCursor: null,
  });
  expect((await api.get(`/repository/${shop}/file/list?branch=a..b`)).status).toBe(400);
  await api.post("/organization/update", { repositories: ["git.example/other/*"] });
  expect((await api.get(`/repository/${shop}/file/list`)).status).toBe(400);
  expect((await api.get(`/repository/${shop}/branch/list`)).status).toBe(400);
});
