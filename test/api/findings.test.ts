import { afterAll, beforeAll, expect, test } from "vitest";
import { createKey } from "../../src/store/people/keys.ts";
import { addOrganization } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

let app: TestApp;
let count = 0;

beforeAll(async () => {
  app = await createTestApp();
});

afterAll(() => app?.close());

const fingerprint = "0123456789abcdef01234567";

async function connect(url = `https://git.example/acme/findings-${(count += 1)}`): Promise<string> {
  return ((await app.post("/repository/create", { url })).body as { id: string }).id;
}

const allowedIn = async (id: string): Promise<unknown> => (await app.get(`/repository/${id}/findings`)).body;

test("findings are allowed one by one, each once, and replaced as a list", async () => {
  const id = await connect();
  expect(await allowedIn(id)).toEqual({ allowedFindings: [] });
  for (let times = 0; times < 2; times += 1) await app.post(`/repository/${id}/allow-finding`, { fingerprint });
  const { body } = await app.post(`/repository/${id}/allow-finding`, { rule: "aws", path: "test/**" });
  expect(body).toEqual({ allowedFindings: [{ fingerprint }, { path: "test/**", rule: "aws" }] });
  expect(await allowedIn(id)).toEqual(body);
  await app.post(`/repository/${id}/findings`, { allowedFindings: [{ rule: "not-read", path: "assets/*" }] });
  expect(await allowedIn(id)).toEqual({ allowedFindings: [{ path: "assets/*", rule: "not-read" }] });
});

test("what is allowed stays when the repository is disconnected and connected again", async () => {
  const url = "https://git.example/acme/again";
  const id = await connect(url);
  await app.post(`/repository/${id}/allow-finding`, { fingerprint });
  await app.post(`/repository/${id}/delete`, {});
  expect(await allowedIn(await connect(url))).toEqual({ allowedFindings: [{ fingerprint }] });
  expect(await allowedIn(await connect())).toEqual({ allowedFindings: [] });
});

test.each([
  [{}, /must have a path, a rule or a fingerprint$/u],
  [{ path: "" }, /^path must not be empty/u],
  [{ path: "/etc" }, /^path is a path within the repository/u],
  [{ path: "a".repeat(301) }, /^path must be at most 300 characters/u],
  [{ path: "\ud800" }, /^path must be valid Unicode/u],
  [{ path: "a\0" }, /^path must not contain NUL/u],
  [{ rule: "GitHub!" }, /^rule must be a rule as a failure names it/u],
  [{ fingerprint: "abc" }, /^fingerprint must be the 24 hexadecimal digits/u],
  [{ value: "x", rule: "aws" }, /value/u],
])("refuses %j with the field's name", async (body, sentence) => {
  const id = await connect();
  const answer = await app.post(`/repository/${id}/allow-finding`, body);
  expect([answer.status, answer.body.error]).toEqual([400, expect.stringMatching(sentence)]);
  const list = await app.post(`/repository/${id}/findings`, { allowedFindings: [body] });
  expect([list.status, list.body.error]).toEqual([400, expect.stringMatching(/^allowedFindings/u)]);
});

test("the list has an end, and says so", async () => {
  const id = await connect();
  const many = Array.from({ length: 501 }, (_, index) => ({ path: `a${index}` }));
  const tooMany = await app.post(`/repository/${id}/findings`, { allowedFindings: many });
  expect([tooMany.status, tooMany.body.error]).toEqual([
    400,
    expect.stringMatching(/^allowedFindings must be at most 500/u),
  ]);
  await app.post(`/repository/${id}/findings`, { allowedFindings: many.slice(1) });
  expect((await app.post(`/repository/${id}/allow-finding`, { path: "a500" })).status).toBe(200);
  const full = await app.post(`/repository/${id}/allow-finding`, { path: "b" });
  expect([full.status, full.body.error]).toEqual([
    409,
    expect.stringMatching(/^the repository allows 500 findings already/u),
  ]);
});

test("only an admin may let a finding pass, and the audit log has it", async () => {
  const id = await connect();
  const { key } = await createKey(app.database, app.organizationId, { name: "member", scopes: ["read", "write"] });
  expect((await app.get(`/repository/${id}/findings`, { key })).status).toBe(200);
  expect((await app.post(`/repository/${id}/findings`, { allowedFindings: [] }, { key })).status).toBe(403);
  expect((await app.post(`/repository/${id}/allow-finding`, { fingerprint }, { key })).status).toBe(403);
  await app.post(`/repository/${id}/allow-finding`, { fingerprint });
  const { body } = await app.get("/audit/list?action=allowFinding&limit=2");
  expect(body.entries).toMatchObject([
    { outcome: "allowed", target: id },
    { outcome: "refused", target: id },
  ]);
});

test("another organization's repository does not exist", async () => {
  const id = await connect();
  const { key } = await createKey(app.database, await addOrganization(app.database), {
    name: "other",
    scopes: ["admin"],
  });
  for (const answer of [
    await app.get(`/repository/${id}/findings`, { key }),
    await app.post(`/repository/${id}/findings`, { allowedFindings: [] }, { key }),
    await app.post(`/repository/${id}/allow-finding`, { fingerprint }, { key }),
  ]) {
    expect(answer.status).toBe(404);
  }
});
