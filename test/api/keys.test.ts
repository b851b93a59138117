import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { forgetKeys } from "../../src/store/people/principals.ts";
import { createKey, revokeKey } from "../../src/store/people/keys.ts";
import { addOrganization } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;

beforeAll(async () => {
  api = await createTestApp();
});

afterAll(() => api?.close());

const wrong = "the API key is wrong, revoked or expired";

describe("the life of a key", () => {
  test("a new key is shown once, works, and is listed by its prefix alone", async () => {
    const { status, body } = await api.post("/key/create", { name: "laptop" });
    expect(status).toBe(200);
    expect(body).toMatchObject({ name: "laptop", scopes: ["read", "write"], expiresAt: null, revokedAt: null });
    expect(body.key).toMatch(/^ofs_[\w-]{49}$/u);
    expect(body.prefix).toBe(body.key.slice(0, 12));
    expect((await api.get("/session/list", { key: body.key })).status).toBe(200);

    const { body: page } = await api.get("/key/list");
    expect(page.keys.find(({ id }: { id: string }) => id === body.id)).toMatchObject({
      name: "laptop",
      prefix: body.prefix,
    });
    expect(JSON.stringify(page)).not.toContain(body.key);
  });

  test("nothing that is stored holds the key", async () => {
    const { body } = await api.post("/key/create", { name: "stored" });
    const { rows } = await api.database.pool.query("select api_key::text as row from api_key");
    expect(JSON.stringify(rows)).not.toContain(body.key);
  });

  test("keys are listed newest first, a page at a time, each once", async () => {
    for (let made = 0; made < 5; made += 1) await api.post("/key/create", { name: `page ${made}` });
    const names: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const { body } = await api.get(`/key/list?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
      names.push(...body.keys.map(({ name }: { name: string }) => name));
      cursor = body.nextCursor as string | null;
    }
    expect(names.slice(0, 5)).toEqual(["page 4", "page 3", "page 2", "page 1", "page 0"]);
    expect(names.at(-1)).toBe("first admin key");
    const { rows } = await api.database.pool.query("select 1 from api_key");
    expect(names).toHaveLength(rows.length);
  });

  test("a revoked key is refused from then on, by header and by query, and stays listed as revoked", async () => {
    const { body: key } = await api.post("/key/create", { name: "lost" });
    const revoked = await api.post(`/key/${key.id}/revoke`, {});
    expect(revoked.status).toBe(200);
    expect(revoked.body.revokedAt).not.toBeNull();
    expect(await api.get("/session/list", { key: key.key })).toMatchObject({ status: 401, body: { error: wrong } });
    expect((await api.get(`/session/list?apiKey=${key.key}`, { key: null })).status).toBe(401);
    expect((await api.post("/session/create", { prompt: "x" }, { key: key.key })).status).toBe(401);
    const { body: page } = await api.get("/key/list?limit=100");
    expect(page.keys.find(({ id }: { id: string }) => id === key.id).revokedAt).toBe(revoked.body.revokedAt);
  });

  test("revoking twice keeps the first time", async () => {
    const { body: key } = await api.post("/key/create", { name: "twice" });
    const first = await api.post(`/key/${key.id}/revoke`, {});
    expect((await api.post(`/key/${key.id}/revoke`, {})).body.revokedAt).toBe(first.body.revokedAt);
  });

  test("a key works until it expires, and is refused after", async () => {
    const expiresAt = new Date(Date.now() + 60_000).toISOString();
    const { body: key } = await api.post("/key/create", { name: "short", expiresAt });
    expect(key.expiresAt).toBe(expiresAt);
    expect((await api.get("/session/list", { key: key.key })).status).toBe(200);
    await api.database.pool.query("update api_key set expires_at = now() where id = $1", [key.id]);
    forgetKeys(api.database);
    expect(await api.get("/session/list", { key: key.key })).toMatchObject({ status: 401, body: { error: wrong } });
  });

  test("the time of its last use is noted", async () => {
    const { body: key } = await api.post("/key/create", { name: "used" });
    expect(key.lastUsedAt).toBeNull();
    await api.get("/session/list", { key: key.key });
    const { body: page } = await api.get("/key/list");
    expect(page.keys.find(({ id }: { id: string }) => id === key.id).lastUsedAt).not.toBeNull();
  });

  test.each([
    ["no name", {}, "name is required"],
    ["an empty name", { name: "" }, "name"],
    ["no scopes", { name: "x", scopes: [] }, "scopes"],
    ["a scope that is not there", { name: "x", scopes: ["root"] }, "scopes.0"],
    ["an expiry that is no time", { name: "x", expiresAt: "tomorrow" }, "expiresAt"],
  ])("creation refuses %s", async (_name, body, said) => {
    const answer = await api.post("/key/create", body);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(said);
  });

  test.each(["not-there", "00000000-0000-4000-8000-000000000000", "%00", "%F0%9F%94%91"])(
    "revoking %s is 404",
    async (id) => {
      expect((await api.post(`/key/${id}/revoke`, {})).status).toBe(404);
    },
  );
});

describe("cursors", () => {
  const id = "00000000-0000-4000-8000-000000000000";
  test.each([
    ["no base64", "%00"],
    ["no time", "yesterday"],
    ["no day", `2026-02-30T00:00:00.000000Z ${id}`],
    ["no hour", `2026-02-03T25:00:00.000000Z ${id}`],
    ["a year that PostgreSQL has not", `0000-01-01T00:00:00.000000Z ${id}`],
    ["no id", `2026-02-03T00:00:00.000000Z ${"-".repeat(36)}`],
  ])("one that no list answered is 400: %s", async (_name, text) => {
    const cursor = Buffer.from(text).toString("base64url");
    for (const list of ["/key/list", "/session/list", "/automation/list", "/job/list", "/repository/list"]) {
      const { status, body } = await api.get(`${list}?cursor=${cursor}`);
      const error = "cursor: must be the nextCursor of the previous page";
      expect({ list, status, body }).toEqual({ list, status: 400, body: { error } });
    }
  });
});

describe("scopes", () => {
  test.each([
    ["read", [200, 403, 403]],
    ["write", [200, 200, 403]],
    ["admin", [200, 200, 200]],
  ] as const)("a key with %s alone may do what it says and no more", async (scope, statuses) => {
    const { key } = await createKey(api.database, api.organizationId, { name: scope, scopes: [scope] });
    const read = await api.get("/session/list", { key });
    const write = await api.post("/session/create", { prompt: "x", queueRightAway: false }, { key });
    const administer = await api.get("/key/list", { key });
    expect([read, write, administer].map(({ status }) => status)).toEqual(statuses);
  });

  test("a key that is not an admin's can neither make nor revoke keys", async () => {
    const { record, key } = await createKey(api.database, api.organizationId, { name: "w", scopes: ["write"] });
    expect((await api.post("/key/create", { name: "more", scopes: ["admin"] }, { key })).status).toBe(403);
    expect((await api.post(`/key/${record.id}/revoke`, {}, { key })).status).toBe(403);
  });
});

describe("presenting a key", () => {
  test.each([
    ["Basic", "Basic dXNlcjpwYXNz"],
    ["no key after Bearer", "Bearer "],
    ["two words", "Bearer one two"],
  ])("an Authorization header that is no Bearer is 401: %s", async (_name, authorization) => {
    const answer = await api.get("/session/list", { key: null, headers: { authorization } });
    expect(answer).toMatchObject({ status: 401, body: { error: "the Authorization header must be `Bearer <key>`" } });
  });

  test("a wrong key in the header is not made good by a right one in the query", async () => {
    expect((await api.get(`/session/list?apiKey=${api.adminKey}`, { key: "ofs_wrong" })).status).toBe(401);
  });

  test("the scheme's case does not matter", async () => {
    const headers = { authorization: `bearer ${api.adminKey}` };
    expect((await api.get("/session/list", { key: null, headers })).status).toBe(200);
  });
});

describe("organizations", () => {
  let key: string;
  let mine: { session: string; automation: string; job: string; repository: string; key: string };

  beforeAll(async () => {
    const other = await addOrganization(api.database);
    ({ key } = await createKey(api.database, other, { name: "other's admin", scopes: ["admin"] }));
    const { body: repository } = await api.post("/repository/create", { url: "https://h.test/a/private" });
    const { body: session } = await api.post("/session/create", { prompt: "secret", codeRepoIds: [repository.id] });
    const automation = { name: "Secret", macro: "secret", instructions: "secret" };
    const { body: created } = await api.post("/automation/create", automation);
    const { body: job } = await api.post("/automation/secret/trigger", { n: 1 });
    const { record } = await createKey(api.database, api.organizationId, { name: "mine", scopes: ["read"] });
    mine = { session: session.id, automation: created.id, job: job.id, repository: repository.id, key: record.id };
  });

  test("lists and searches hold nothing of another organization's", async () => {
    const lists = {
      "/session/list": "sessions",
      "/session/search?q=secret": "sessions",
      "/automation/list": "automations",
      "/job/list": "jobs",
      "/repository/list": "codeRepositories",
      "/task/list": "issues",
      "/task/search?q=secret": "issues",
    };
    for (const [url, noun] of Object.entries(lists)) {
      const theirs = (await api.get(url, { key })).body[noun];
      const own = (await api.get(url)).body[noun];
      expect({ url, theirs: theirs.length, own: own.length > 0 }).toEqual({ url, theirs: 0, own: true });
    }
    const { body: keys } = await api.get("/key/list", { key });
    expect(keys.keys.map(({ name }: { name: string }) => name)).toEqual(["other's admin"]);
  });

  test("a search by id finds no session of another organization's", async () => {
    expect((await api.get(`/session/search?q=${mine.session}`, { key })).body.sessions).toEqual([]);
    expect((await api.get(`/session/search?q=${mine.session}`)).body.sessions).toHaveLength(1);
  });

  test("what is another organization's is 404, as if it did not exist", async () => {
    const reads = [
      `/session/${mine.session}`,
      `/session/${mine.session}/events`,
      `/session/${mine.session}/diff`,
      `/automation/${mine.automation}`,
      "/automation/secret",
      "/automation/secret/runs",
      `/job/${mine.job}`,
    ];
    for (const url of reads) {
      const statuses = [(await api.get(url, { key })).status, (await api.get(url)).status];
      expect({ url, statuses }).toEqual({ url, statuses: [404, 200] });
    }
    const sse = { accept: "text/event-stream" };
    expect((await api.get(`/session/${mine.session}/events`, { key, headers: sse })).status).toBe(404);
  });

  test("nothing of another organization's can be changed", async () => {
    const changes: [url: string, body: unknown][] = [
      [`/session/${mine.session}/cancel`, {}],
      [`/session/${mine.session}/queue`, {}],
      [`/session/${mine.session}/message`, { message: "x" }],
      [`/automation/${mine.automation}/update`, { name: "Mine now" }],
      [`/automation/${mine.automation}/delete`, {}],
      ["/automation/secret/preview", { event: {} }],
      ["/automation/secret/trigger", {}],
      ["/agent/secret/trigger", {}],
      [`/repository/${mine.repository}/delete`, {}],
      [`/key/${mine.key}/revoke`, {}],
    ];
    for (const [url, body] of changes) {
      const { status } = await api.post(url, body, { key });
      expect({ url, status }).toEqual({ url, status: 404 });
    }
    expect((await api.get(`/session/${mine.session}`)).body.status).toBe("queued");
    expect((await api.get("/automation/secret")).body.name).toBe("Secret");
    expect((await api.get("/automation/secret/runs")).body.runs).toHaveLength(1);
  });

  test("another organization's repository can't be worked on by its id", async () => {
    const answer = await api.post("/session/create", { prompt: "x", codeRepoIds: [mine.repository] }, { key });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(mine.repository);
  });

  test("two organizations may use one macro and one repository, each its own", async () => {
    const automation = {
      name: "Other",
      macro: "secret",
      instructions: "x",
      repositories: ["https://h.test/a/private"],
    };
    const made = await api.post("/automation/create", automation, { key });
    expect(made.status).toBe(200);
    expect(made.body.repositories[0].id).not.toBe(mine.repository);
    expect((await api.get("/automation/secret", { key })).body.name).toBe("Other");
    expect((await api.get("/automation/secret")).body.name).toBe("Secret");
  });

  test("an id counts in either case", async () => {
    const { record } = await createKey(api.database, api.organizationId, { name: "case", scopes: ["read"] });
    const revoked = await revokeKey(api.database, api.organizationId, record.id.toUpperCase());
    expect(revoked.revokedAt).not.toBeNull();
  });

  test("a key is revoked in its own organization alone", async () => {
    const { record } = await createKey(api.database, api.organizationId, { name: "kept", scopes: ["read"] });
    const other = await addOrganization(api.database);
    await expect(revokeKey(api.database, other, record.id)).rejects.toThrow("was not found");
  });
});

describe("a key for triggering alone", () => {
  const automation = async (macro: string): Promise<string> =>
    (await api.post("/automation/create", { name: macro, macro, instructions: "Do it." })).body.id;

  test("starts automations by either noun, and may do nothing else of all operations", async () => {
    const id = await automation("trigger-all");
    const { status, body: key } = await api.post("/key/create", { name: "hook", scopes: ["trigger"] });
    expect([status, key.scopes, key.automationIds]).toEqual([200, ["trigger"], null]);
    for (const path of ["/automation/trigger-all/trigger", `/agent/${id}/trigger`]) {
      expect((await api.post(path, {}, { key: key.key })).status).toBe(200);
      expect((await api.post(`${path}?apiKey=${key.key}`, {}, { key: null })).status).toBe(200);
    }
    const { body: description } = await api.get("/openapi.json");
    let refused = 0;
    for (const [path, methods] of Object.entries(
      description.paths as Record<string, Record<string, { security?: [] }>>,
    )) {
      for (const [method, { security }] of Object.entries(methods)) {
        if (security?.length === 0 || path.endsWith("/trigger")) continue;
        const url = path.replaceAll(/\{\w+\}/gu, id);
        const answer = await api.request(method === "get" ? "GET" : "POST", url, { key: key.key, body: {} });
        expect([`${method} ${path}`, answer.status]).toEqual([`${method} ${path}`, 403]);
        refused += 1;
      }
    }
    expect(refused).toBeGreaterThan(50);
  });

  test("made for one automation starts no other, and does not tell which others there are", async () => {
    const [own, other] = [await automation("own-hook"), await automation("other-hook")];
    const { body: key } = await api.post("/key/create", { name: "one", scopes: ["trigger"], automationIds: [own] });
    expect(key.automationIds).toEqual([own]);
    const trigger = (name: string) => api.post(`/automation/${name}/trigger`, {}, { key: key.key });
    expect((await trigger("own-hook")).status).toBe(200);
    expect((await trigger(own)).status).toBe(200);
    for (const name of ["other-hook", other, "no-such-hook"]) {
      expect(await trigger(name)).toMatchObject({
        status: 403,
        body: { error: `this key may not trigger ${name}: it is limited to other automations` },
      });
    }
    expect((await api.post("/automation/other-hook/trigger", {})).status).toBe(200);
  });

  test("shares no Idempotency-Key with others: neither sees what the other was answered", async () => {
    const own = await automation("own-keys");
    await automation("other-keys");
    const { body: key } = await api.post("/key/create", { name: "own", scopes: ["trigger"], automationIds: [own] });
    const trigger = (idempotencyKey: string, by: { key?: string }) =>
      api.post("/automation/other-keys/trigger", {}, { ...by, headers: { "idempotency-key": idempotencyKey } });
    const answered = await trigger("asked-before", {});
    expect(answered.status).toBe(200);
    expect((await trigger("asked-before", { key: key.key })).status).toBe(403);
    expect((await trigger("asked-before", {})).body).toEqual(answered.body);
    expect((await trigger("asked-after", { key: key.key })).status).toBe(403);
    expect((await trigger("asked-after", {})).status).toBe(200);
  });

  test("signs no browser in", async () => {
    const { body: key } = await api.post("/key/create", { name: "no browser", scopes: ["trigger"] });
    const answer = await api.post("/login/create", { key: key.key }, { key: null });
    expect([answer.status, answer.headers["set-cookie"]]).toEqual([403, undefined]);
  });

  test("is not what a reader's key can do", async () => {
    await automation("for-readers");
    const { body: key } = await api.post("/key/create", { name: "reader", role: "viewer" });
    expect((await api.post("/automation/for-readers/trigger", {}, { key: key.key })).status).toBe(403);
  });

  test.each([
    [{ scopes: ["trigger", "read"], automationIds: [crypto.randomUUID()] }, "automationIds: can only be given with"],
    [{ role: "member", automationIds: [crypto.randomUUID()] }, "automationIds: can only be given with"],
    [{ scopes: ["trigger"], automationIds: [] }, "automationIds"],
    [{ scopes: ["trigger"], automationIds: ["x"] }, "automationIds.0"],
    [
      { scopes: ["trigger"], automationIds: [crypto.randomUUID()] },
      "automationIds.0: this organization has no automation",
    ],
  ])("can't be made of %j", async (body, error) => {
    const answer = await api.post("/key/create", { name: "wrong", ...body });
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(error)]);
  });
});
