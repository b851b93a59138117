import { afterAll, beforeAll, expect, it } from "vitest";
import { createKey } from "../../src/store/people/keys.ts";
import { addOrganization } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});

afterAll(() => app?.close());

const value = "the-value-that-is-never-shown";

it("sets a secret, lists it, changes it and deletes it, and never answers its value", async () => {
  const created = await app.post("/secret/create", { name: "NPM_TOKEN", value });
  expect(created.body).toMatchObject({ name: "NPM_TOKEN", phases: ["setup"], repositoryId: null });
  const { id } = created.body as { id: string };
  const updated = await app.post(`/secret/${id}/update`, { value: `${value}-2`, phases: ["agent", "setup"] });
  expect(updated.body).toMatchObject({ id, phases: ["setup", "agent"] });
  const listed = await app.get("/secret/list");
  expect(listed.body).toMatchObject({ secrets: [{ id, name: "NPM_TOKEN" }], nextCursor: null });
  const deleted = await app.post(`/secret/${id}/delete`, {});
  expect(deleted.status).toBe(200);
  for (const { body } of [created, updated, listed, deleted]) expect(JSON.stringify(body)).not.toContain(value);
  expect((await app.get("/secret/list")).body).toEqual({ secrets: [], nextCursor: null });
});

it("has one secret of a name for the organization and one for each repository", async () => {
  const { body: repository } = await app.post("/repository/create", { url: "https://git.example/a/b" });
  const { id: repositoryId } = repository as { id: string };
  const input = { name: "TOKEN", value };
  expect((await app.post("/secret/create", input)).status).toBe(200);
  expect((await app.post("/secret/create", { ...input, repositoryId })).status).toBe(200);
  const again = await app.post("/secret/create", { ...input, repositoryId });
  expect([again.status, again.body]).toEqual([409, { error: "name: a secret TOKEN already exists: update it" }]);
  const { body } = await app.get(`/secret/list?repositoryId=${repositoryId}`);
  expect(body.secrets).toHaveLength(1);
  await app.post(`/repository/${repositoryId}/delete`, {});
  expect((await app.get(`/secret/list?repositoryId=${repositoryId}`)).body.secrets).toEqual([]);
});

it.each([
  [{ name: "1X", value }, /^name /u],
  [{ name: "A-B", value }, /^name /u],
  [{ name: "PATH", value }, /^name is set by Offstage itself/u],
  [{ name: "OFFSTAGE_X", value }, /^name is set by Offstage itself/u],
  [{ name: "X", value: "" }, /^value must not be empty/u],
  [{ name: "X", value: "a\0b" }, /^value must not contain NUL/u],
  [{ name: "X", value, phases: [] }, /^phases/u],
  [{ name: "X", value, phases: ["build"] }, /^phases\.0/u],
  [{ name: "X" }, /^value is required/u],
])("refuses %j with the field's name", async (body, sentence) => {
  const answer = await app.post("/secret/create", body);
  expect(answer.status).toBe(400);
  expect(answer.body.error).toMatch(sentence);
  expect(answer.body.error).not.toContain(value);
});

it("is for admins alone", async () => {
  const { key } = await createKey(app.database, app.organizationId, { name: "member", scopes: ["read", "write"] });
  expect((await app.get("/secret/list", { key })).status).toBe(403);
  expect((await app.post("/secret/create", { name: "X", value }, { key })).status).toBe(403);
});

it("knows nothing of another organization's secrets and repositories", async () => {
  const other = await addOrganization(app.database);
  const { key } = await createKey(app.database, other, { name: "other", scopes: ["admin"] });
  const { body: mine } = await app.post("/secret/create", { name: "MINE", value });
  const { body: repository } = await app.post("/repository/create", { url: "https://git.example/c/d" });
  const { id } = mine as { id: string };
  expect((await app.post(`/secret/${id}/update`, { value: "theirs" }, { key })).status).toBe(404);
  expect((await app.post(`/secret/${id}/delete`, {}, { key })).status).toBe(404);
  const there = await app.post("/secret/create", { name: "X", value, repositoryId: repository.id }, { key });
  expect(there.status).toBe(404);
  expect((await app.get("/secret/list", { key })).body.secrets).toEqual([]);
});
