import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addMessage } from "../../src/store/sessions/sessions.ts";
import { atOnce, requireClaim } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;

beforeAll(async () => {
  api = await createTestApp();
});
afterAll(() => api?.close());

const create = async (more: object = {}): Promise<string> => {
  const { status, body } = await api.post("/session/create", { prompt: "Work", ...more });
  expect([status, body.error]).toEqual([200, undefined]);
  return body.id;
};
const labelsOf = async (id: string): Promise<string[]> => (await api.get(`/session/${id}`)).body.labels;
const listed = async (query: string): Promise<string[]> =>
  (await api.get(`/session/list?${query}`)).body.sessions.map(({ id }: { id: string }) => id);

describe("labels", () => {
  test("are given at the creation, each once, set as a whole, added and removed", async () => {
    const id = await create({ labels: ["bug", "Bug", "bug", "größer als 1"] });
    expect(await labelsOf(id)).toEqual(["Bug", "bug", "größer als 1"]);
    const set = await api.post(`/session/${id}/labels`, { labels: ["release", "bug"] });
    expect([set.status, set.body.labels]).toEqual([200, ["bug", "release"]]);
    const changed = await api.post(`/session/${id}/labels`, { add: ["chore", "bug"], remove: ["release", "none"] });
    expect(changed.body.labels).toEqual(["bug", "chore"]);
    expect((await api.post(`/session/${id}/labels`, { labels: [] })).body.labels).toEqual([]);
    expect(await labelsOf(id)).toEqual([]);
  });

  test.each([
    [{ labels: ["a,b"] }, "labels.0 must be a label without commas, line breaks, and spaces around it"],
    [{ labels: [" a"] }, "labels.0 must be a label without commas, line breaks, and spaces around it"],
    [{ labels: ["a\nb"] }, "labels.0 must be a label without commas, line breaks, and spaces around it"],
    [{ labels: [""] }, "labels.0 must not be empty"],
    [{ labels: ["x".repeat(51)] }, "labels.0 must be at most 50 characters"],
    [{ labels: Array.from({ length: 21 }, (_, index) => `l${index}`) }, "labels must have at most 20 labels"],
    [{ labels: ["a"], add: ["b"] }, "labels must be given alone, or add and remove instead of it"],
    [{}, "labels must be given alone, or add and remove instead of it"],
  ])("are refused as %j", async (body, error) => {
    const id = await create();
    const answer = await api.post(`/session/${id}/labels`, body);
    expect([answer.status, answer.body.error]).toEqual([400, error]);
  });

  test("are twenty at most, however many add some at once", async () => {
    const id = await create({ labels: Array.from({ length: 15 }, (_, index) => `own ${index}`) });
    const answers = await atOnce(6, (index) =>
      api.post(`/session/${id}/labels`, { add: [`a ${index}`, `b ${index}`] }),
    );
    const refused = answers.filter(({ status }) => status === 409);
    expect(refused).toHaveLength(4);
    expect(refused[0]?.body.error).toBe(`session ${id} would have more than 20 labels: remove some`);
    expect(await labelsOf(id)).toHaveLength(19);
  });

  test("narrow the list and the search, all of them, and are listed", async () => {
    const one = await create({ labels: ["narrow", "x"] });
    const two = await create({ labels: ["narrow"] });
    expect(await listed("label=narrow")).toEqual([two, one]);
    expect(await listed("label=narrow&label=x")).toEqual([one]);
    expect(await listed("label=Narrow")).toEqual([]);
    const found = await api.get("/session/search?q=work&label=narrow&label=x");
    expect(found.body.sessions.map(({ id }: { id: string }) => id)).toEqual([one]);
    expect((await api.get("/label/list?prefix=narrow")).body).toEqual({ labels: ["narrow"], nextCursor: null });
    await api.post(`/session/${one}/cancel`, {});
    await api.post(`/session/${one}/delete`, {});
    expect((await api.get("/label/list?prefix=x")).body.labels).toEqual([]);
  });
});

describe("an archived session", () => {
  test("is out of the list, found by a search, and comes back when it is asked for more", async () => {
    const id = await create({ labels: ["archive"] });
    const queued = await api.post(`/session/${id}/archive`, {});
    expect([queued.status, queued.body.error]).toEqual([
      409,
      `session ${id} is queued: it can be archived once it has ended`,
    ]);
    await api.post(`/session/${id}/cancel`, {});
    const { body } = await api.post(`/session/${id}/archive`, {});
    expect(body.archivedAt).toMatch(/^\d{4}-/u);
    expect((await api.post(`/session/${id}/archive`, {})).body.archivedAt).toBe(body.archivedAt);
    expect(await listed("label=archive")).toEqual([]);
    expect(await listed("label=archive&archived=true")).toEqual([id]);
    expect(await listed("label=archive&archived=all")).toEqual([id]);
    const ids = async (query: string): Promise<string[]> =>
      (await api.get(`/session/search?q=work&label=archive${query}`)).body.sessions.map(
        (each: { id: string }) => each.id,
      );
    expect([await ids(""), await ids("&archived=false")]).toEqual([[id], []]);
    await addMessage(api.database, api.organizationId, id, { id: crypto.randomUUID(), text: "More", from: null });
    expect(await listed("label=archive")).toEqual([id]);
    await api.post(`/session/${id}/cancel`, {});
    await api.post(`/session/${id}/archive`, {});
    const back = await api.post(`/session/${id}/unarchive`, {});
    expect([back.status, back.body.archivedAt]).toEqual([200, null]);
    expect(await listed("label=archive")).toEqual([id]);
  });

  test("needs no attention", async () => {
    const id = await create({ labels: ["needs"] });
    await api.database.pool.query("update session set priority = 1 where id = $1", [id]);
    await requireClaim(api.database);
    await api.database.pool.query(
      "update session set status = 'failed', finished_at = now(), worker = null, lease_until = null where id = $1",
      [id],
    );
    expect((await api.get(`/session/${id}`)).body.attention).toEqual(["failure"]);
    expect(await listed("attention=any&label=needs")).toEqual([id]);
    expect(await listed("attention=budget&attention=conflict&label=needs")).toEqual([]);
    await api.post(`/session/${id}/archive`, {});
    expect((await api.get(`/session/${id}`)).body.attention).toEqual([]);
    expect(await listed("attention=any&label=needs&archived=all")).toEqual([]);
  });
});

test.each([
  ["status=nonsense", "status"],
  ["archived=yes", "archived"],
  ["attention=none", "attention"],
  ["repositoryId=x", "repositoryId"],
  ["label=a&".repeat(21), "label"],
])("a list with %s is refused", async (query, field) => {
  const { status, body } = await api.get(`/session/list?${query}`);
  expect([status, body.error.startsWith(field)]).toEqual([400, true]);
});
