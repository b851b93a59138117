import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLoginLink, pruneLogins } from "../../src/store/logins.ts";
import { createKey } from "../../src/store/keys.ts";
import { createTestApp, type TestApp } from "./app.ts";

let testApp: TestApp;

beforeAll(async () => {
  testApp = await createTestApp();
});

afterAll(() => testApp?.close());

const me = (key: string) => testApp.request("GET", "/me", { key });

describe("an API key", () => {
  it("is shown once, listed by its beginning, and stored nowhere", async () => {
    const { body } = await testApp.request("POST", "/key/create", { body: { name: "CI", scopes: ["read", "write"] } });
    const key = String(body.key);
    expect(key).toMatch(/^ofs_[\w-]{40,}$/u);
    const listed = await testApp.request("GET", "/key/list");
    expect(JSON.stringify(listed.body)).not.toContain(key);
    expect(listed.body.keys).toContainEqual(expect.objectContaining({ name: "CI", prefix: key.slice(0, 12) }));
    const { rows } = await testApp.testDatabase.database.pool.query("select row_to_json(api_key)::text from api_key");
    expect(JSON.stringify(rows)).not.toContain(key);
  });

  it("that is revoked or expired opens nothing", async () => {
    const { body: revoked } = await testApp.request("POST", "/key/create", { body: { name: "r", scopes: ["read"] } });
    expect((await me(revoked.key)).status).toBe(200);
    const id = String(revoked.id ?? revoked.record?.id);
    expect((await testApp.request("POST", `/key/${id}/revoke`)).status).toBe(200);
    expect((await me(revoked.key)).status).toBe(401);
    const { key } = await createKey(testApp.testDatabase.database, testApp.organizationId, {
      name: "e",
      scopes: ["read"],
      expiresAt: new Date(Date.now() - 1_000).toISOString(),
    });
    expect((await me(key)).status).toBe(401);
  });

  it("does what its scopes say and no more", async () => {
    const scoped = async (scope: "read" | "write" | "admin") =>
      (await createKey(testApp.testDatabase.database, testApp.organizationId, { name: scope, scopes: [scope] })).key;
    const [reader, writer, admin] = [await scoped("read"), await scoped("write"), await scoped("admin")];
    const create = (key: string) => testApp.request("POST", "/session/create", { key, body: { prompt: "x" } });
    expect([(await create(reader)).status, (await create(writer)).status]).toEqual([403, 200]);
    expect((await testApp.request("GET", "/key/list", { key: writer })).status).toBe(403);
    expect((await testApp.request("GET", "/key/list", { key: admin })).status).toBe(200);
  });

  it("of one organization finds nothing of another's", async () => {
    const { database } = testApp.testDatabase;
    const other = crypto.randomUUID();
    await database.pool.query("insert into organization (id, name) values ($1, 'other')", [other]);
    const { key } = await createKey(database, other, { name: "theirs", scopes: ["read", "write", "admin"] });
    const { request } = testApp;
    const { body: session } = await request("POST", "/session/create", {
      body: { prompt: "secret work", repositories: ["https://git.example.com/acme/secret"] },
    });
    const { body: automation } = await request("POST", "/automation/create", {
      body: { name: "Secret", macro: "secret", instructions: "x" },
    });
    const { body: job } = await request("POST", "/automation/secret/trigger");
    const { body: repositories } = await request("GET", "/repository/list");
    const paths = [
      `/session/${session.id}`,
      `/session/${session.id}/events`,
      `/session/${session.id}/diff`,
      `/automation/${automation.id}`,
      `/automation/${automation.id}/runs`,
      `/job/${job.id}`,
    ];
    for (const path of paths) {
      expect([path, (await request("GET", path)).status]).toEqual([path, 200]);
      expect([path, (await request("GET", path, { key })).status]).toEqual([path, 404]);
    }
    const changes = [
      `/session/${session.id}/cancel`,
      `/session/${session.id}/queue`,
      `/automation/${automation.id}/update`,
      `/automation/${automation.id}/delete`,
      "/automation/secret/trigger",
      `/repository/${repositories.codeRepositories[0].id}/delete`,
    ];
    for (const path of changes) {
      expect([path, (await request("POST", path, { key })).status]).toEqual([path, 404]);
    }
    const message = await request("POST", `/session/${session.id}/message`, { key, body: { message: "x" } });
    expect(message.status).toBe(404);
    for (const path of [
      "/session/list",
      "/session/search?q=secret",
      "/automation/list",
      "/job/list",
      "/repository/list",
    ]) {
      expect(JSON.stringify((await request("GET", path, { key })).body)).not.toMatch(/secret/iu);
    }
  });
});

describe("a sign-in", () => {
  const signIn = (body: unknown) => testApp.request("POST", "/login/create", { key: null, body });
  const cookieOf = (headers: Readonly<Record<string, unknown>>): string =>
    String(headers["set-cookie"]).split(";")[0] ?? "";

  it("by a link works once, and its cookie is out of reach of scripts and of other sites", async () => {
    const link = { scopes: ["admin" as const], ttlMs: 60_000 };
    const token = await createLoginLink(testApp.testDatabase.database, testApp.organizationId, link);
    const first = await signIn({ token });
    expect(first.status).toBe(200);
    expect(String(first.headers["set-cookie"])).toMatch(/HttpOnly.*SameSite=Strict|SameSite=Strict.*HttpOnly/u);
    const again = await signIn({ token });
    expect(again.status).toBe(401);
    expect(again.body.error).toContain("offstage login-link");
    const cookie = cookieOf(first.headers);
    const listed = await testApp.request("GET", "/session/list", { key: null, headers: { cookie } });
    expect(listed.status).toBe(200);
    const foreign = await testApp.request("POST", "/session/create", {
      key: null,
      headers: { cookie, origin: "https://evil.example", "sec-fetch-site": "cross-site" },
      body: { prompt: "x" },
    });
    expect(foreign.status).toBe(403);
  });

  it("by a key ends with the key", async () => {
    const { body } = await testApp.request("POST", "/key/create", { body: { name: "k", scopes: ["read"] } });
    const cookie = cookieOf((await signIn({ key: body.key })).headers);
    const list = () => testApp.request("GET", "/session/list", { key: null, headers: { cookie } });
    expect((await list()).status).toBe(200);
    await testApp.request("POST", `/key/${body.id ?? body.record?.id}/revoke`);
    expect((await list()).status).toBe(401);
  });

  it("that is too old is refused and forgotten", async () => {
    const { database } = testApp.testDatabase;
    const token = await createLoginLink(database, testApp.organizationId, { scopes: ["read"], ttlMs: -1 });
    expect((await signIn({ token })).status).toBe(401);
    expect(await pruneLogins(database)).toBeGreaterThan(0);
  });
});
