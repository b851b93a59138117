import { afterAll, beforeAll, expect, test } from "vitest";
import { appendEvents } from "../../src/store/sessions/events.ts";
import { storeSession } from "../web/content/sessions.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
let shop: string;

beforeAll(async () => {
  api = await createTestApp();
  shop = (await api.post("/repository/create", { url: "https://git.example/acme/shop" })).body.id;
  await storeSession(api.database, api.organizationId, { title: "running", status: "running", repositories: [shop] });
});

afterAll(() => api?.close());

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
