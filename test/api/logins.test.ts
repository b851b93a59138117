import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Scope } from "../../src/domain/people/key.ts";
import { createKey, revokeKey } from "../../src/store/people/keys.ts";
import { createLoginLink, pruneLogins } from "../../src/store/people/logins.ts";
import { atOnce } from "../store/fixtures.ts";
import { createTestApp, type Answer, type TestApp } from "./app.ts";

let api: TestApp;

beforeAll(async () => {
  api = await createTestApp();
});

afterAll(() => api?.close());

const used =
  "this link was already used or has expired: ask an admin for a new one, or create one with `offstage login-link`";
const ended = "the sign-in has expired: sign in again";

const link = (ttlMs = 60_000, scopes: readonly Scope[] = ["admin"]): Promise<string> =>
  createLoginLink(api.database, api.organizationId, { scopes, ttlMs });

const signIn = (body: { token: string } | { key: string }): Promise<Answer> =>
  api.post("/login/create", body, { key: null });

/** `name=value` of the cookie that an answer sets. */
function cookieOf({ headers }: Answer): string {
  return String(headers["set-cookie"]).split(";")[0] ?? "";
}

async function signedIn(): Promise<string> {
  return cookieOf(await signIn({ token: await link() }));
}

const read = (cookie: string): Promise<Answer> => api.get("/session/list", { key: null, headers: { cookie } });

const write = (cookie: string, headers: Record<string, string> = {}): Promise<Answer> =>
  api.post("/session/create", { prompt: "x", queueRightAway: false }, { key: null, headers: { cookie, ...headers } });

describe("a one-time link", () => {
  test("signs a browser in once, and never again", async () => {
    const token = await link();
    const first = await signIn({ token });
    expect(first).toMatchObject({ status: 200, body: { organizationId: api.organizationId } });
    expect((await read(cookieOf(first))).status).toBe(200);
    const second = await signIn({ token });
    expect(second).toMatchObject({ status: 401, body: { error: used } });
    expect(second.headers["set-cookie"]).toBeUndefined();
  });

  test("signs one of many browsers in that try at the same moment", async () => {
    const token = await link();
    const answers = await atOnce(10, () => signIn({ token }));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(9);
  });

  test("is too old when its time has passed", async () => {
    const token = await link(0);
    expect(await signIn({ token })).toMatchObject({ status: 401, body: { error: used } });
  });

  test("gives no more than the scopes it was made with", async () => {
    const cookie = cookieOf(await signIn({ token: await link(60_000, ["read"]) }));
    expect((await read(cookie)).status).toBe(200);
    expect((await write(cookie)).status).toBe(403);
  });

  test.each([
    ["an unknown token", { token: "x".repeat(43) }, 401],
    ["an empty token", { token: "" }, 401],
    ["neither token nor key", {}, 400],
    ["both", { token: "x", key: "y" }, 400],
  ])("%s signs no one in", async (_name, body, status) => {
    const answer = await api.post("/login/create", body, { key: null });
    expect(answer.status).toBe(status);
    expect(answer.headers["set-cookie"]).toBeUndefined();
  });

  test("neither the link's token nor the cookie's value is stored as it is", async () => {
    const token = await link();
    const value = cookieOf(await signIn({ token })).split("=")[1] ?? "";
    expect(value).toHaveLength(43);
    const stored = await api.database.pool.query(
      "select t::text from login_link t union select t::text from browser_session t",
    );
    expect(JSON.stringify(stored.rows)).not.toContain(token);
    expect(JSON.stringify(stored.rows)).not.toContain(value);
  });

  test("its token is no cookie by itself", async () => {
    const token = await link();
    expect(await read(`offstage_session=${token}`)).toMatchObject({ status: 401, body: { error: ended } });
  });
});

describe("the cookie", () => {
  test("can't be read by scripts, is sent to no other site, and lasts 30 days", async () => {
    const answer = await signIn({ token: await link() });
    const [, ...attributes] = String(answer.headers["set-cookie"]).split("; ");
    expect(attributes.toSorted()).toEqual(["HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=Strict"]);
  });

  test("is sent over HTTPS alone if the server has an HTTPS address", async () => {
    const secure = await api.another({ publicUrl: () => "https://offstage.test" });
    const answer = await secure.inject({ method: "POST", url: "/login/create", payload: { token: await link() } });
    expect(String(answer.headers["set-cookie"])).toContain("; Secure");
  });

  test("is invalid after its 30 days", async () => {
    const cookie = await signedIn();
    const { rows } = await api.database.pool.query<{ days: number }>(
      "select extract(day from expires_at - created_at)::integer as days from browser_session order by created_at desc limit 1",
    );
    expect(rows).toEqual([{ days: 30 }]);
    await api.database.pool.query("update browser_session set expires_at = now()");
    expect(await read(cookie)).toMatchObject({ status: 401, body: { error: ended } });
  });

  test("is invalid after signing out, and is removed from the browser", async () => {
    const cookie = await signedIn();
    const other = await signedIn();
    const out = await api.post("/login/delete", {}, { key: null, headers: { cookie } });
    expect(out.status).toBe(200);
    const [value, ...attributes] = String(out.headers["set-cookie"]).split("; ");
    expect(value).toBe("offstage_session=");
    expect(attributes.filter((attribute) => attribute.startsWith("Max-Age"))).toEqual(["Max-Age=0"]);
    expect(await read(cookie)).toMatchObject({ status: 401, body: { error: ended } });
    expect((await read(other)).status).toBe(200);
  });

  test("signing out without having signed in does no harm", async () => {
    expect((await api.post("/login/delete", {}, { key: null })).status).toBe(200);
  });

  test("a key that is sent beside it counts, even if it is wrong", async () => {
    const headers = { cookie: await signedIn() };
    expect((await api.get("/session/list", { key: "ofs_wrong", headers })).status).toBe(401);
  });
});

describe("signing in with a key", () => {
  test("gives the key's scopes", async () => {
    const { key } = await createKey(api.database, api.organizationId, { name: "reader", scopes: ["read"] });
    const cookie = cookieOf(await signIn({ key: ` ${key}\n` }));
    expect((await read(cookie)).status).toBe(200);
    expect((await write(cookie)).status).toBe(403);
  });

  test("a key that is wrong or revoked signs no one in", async () => {
    const { record, key } = await createKey(api.database, api.organizationId, { name: "gone", scopes: ["read"] });
    await revokeKey(api.database, api.organizationId, record.id);
    for (const bad of [key, "ofs_wrong"]) {
      const answer = await signIn({ key: bad });
      expect(answer).toMatchObject({ status: 401, body: { error: "the API key is wrong, revoked or expired" } });
    }
  });

  test("revoking the key signs its browsers out, and no others", async () => {
    const { record, key } = await createKey(api.database, api.organizationId, { name: "lent", scopes: ["read"] });
    const [cookie, other] = [cookieOf(await signIn({ key })), await signedIn()];
    await api.post(`/key/${record.id}/revoke`, {});
    expect((await read(cookie)).status).toBe(401);
    expect((await read(other)).status).toBe(200);
  });

  test("a key that expires takes its browsers with it", async () => {
    const { record, key } = await createKey(api.database, api.organizationId, { name: "short", scopes: ["read"] });
    const cookie = cookieOf(await signIn({ key }));
    expect((await read(cookie)).status).toBe(200);
    await api.database.pool.query("update api_key set expires_at = now() where id = $1", [record.id]);
    expect((await read(cookie)).status).toBe(401);
  });
});

test("links and sign-ins that have expired are forgotten, and no others", async () => {
  const [old, kept] = [await link(0), await link()];
  const cookie = await signedIn();
  expect(await pruneLogins(api.database)).toBeGreaterThan(0);
  const { rows } = await api.database.pool.query("select 1 from login_link where expires_at < now()");
  expect(rows).toEqual([]);
  expect((await signIn({ token: old })).status).toBe(401);
  expect((await signIn({ token: kept })).status).toBe(200);
  expect((await read(cookie)).status).toBe(200);
});

describe("another site's page", () => {
  test.each([
    ["its own origin", { host: "offstage.test", origin: "http://evil.test" }],
    ["an origin that hides itself", { host: "offstage.test", origin: "null" }],
    ["a name longer than any", { host: "offstage.test", origin: `http://${"A".repeat(100_000)}.test` }],
    ["our name on another port", { host: "offstage.test", origin: "http://offstage.test:8080" }],
    ["the browser's word that it is another site", { host: "offstage.test", "sec-fetch-site": "cross-site" }],
    ["the browser's word that it is a sibling", { host: "offstage.test", "sec-fetch-site": "same-site" }],
  ])("can't change anything with a browser's cookie: %s", async (_name, headers) => {
    const answer = await write(await signedIn(), headers);
    expect(answer).toMatchObject({ status: 403, body: { error: "this request came from another site" } });
  });

  test("can neither sign a browser in as another person nor out", async () => {
    const headers = { host: "offstage.test", origin: "http://evil.test", "content-type": "text/plain" };
    for (const [url, body] of [
      ["/login/create", { token: await link() }],
      ["/login/delete", {}],
    ] as const) {
      const answer = await api.post(url, body, { key: null, headers });
      expect(answer).toMatchObject({ status: 403, body: { error: "this request came from another site" } });
      expect(answer.headers["set-cookie"]).toBeUndefined();
    }
  });

  test("our own pages can", async () => {
    const headers = { host: "offstage.test", origin: "http://offstage.test", "sec-fetch-site": "same-origin" };
    expect((await write(await signedIn(), headers)).status).toBe(200);
  });

  test("a key may come from anywhere: no browser adds one by itself", async () => {
    const headers = { host: "offstage.test", origin: "http://evil.test" };
    expect((await api.post("/session/create", { prompt: "x", queueRightAway: false }, { headers })).status).toBe(200);
  });
});

describe("sign-ins of browsers", () => {
  const list = async (cookie: string): Promise<Answer> =>
    api.get("/login/list?limit=100", { key: null, headers: { cookie } });
  const revoke = (cookie: string, id: string): Promise<Answer> =>
    api.post(`/login/${id}/revoke`, {}, { key: null, headers: { cookie } });
  const currentOf = async (cookie: string): Promise<string> =>
    (await list(cookie)).body.logins.find(({ current }: { current: boolean }) => current).id;

  async function byKey(role: string): Promise<{ key: string; cookie: string }> {
    const { body } = await api.post("/key/create", { name: `of a ${role}`, role });
    return { key: body.key, cookie: cookieOf(await signIn({ key: body.key })) };
  }

  test("are listed with what is known of them, and nothing by which to sign in", async () => {
    const token = await link();
    const headers = { "user-agent": "Browser/1.0\u0001".repeat(100) };
    const cookie = cookieOf(await api.post("/login/create", { token }, { key: null, headers }));
    const { status, body } = await list(cookie);
    expect(status).toBe(200);
    expect(body.logins[0]).toMatchObject({
      by: "link",
      current: true,
      userId: null,
      keyId: null,
      address: "127.0.0.1",
    });
    expect(body.logins[0].userAgent.length).toBeLessThanOrEqual(300);
    const days = (Date.parse(body.logins[0].expiresAt) - Date.parse(body.logins[0].createdAt)) / 86_400_000;
    expect(days).toBeCloseTo(30, 3);
    const text = JSON.stringify(body);
    expect(text).not.toContain(cookie.split("=")[1]);
    expect(text).not.toContain(token);
  });

  test("that are revoked are signed out at once, the one that asks included", async () => {
    const [mine, other] = [await signedIn(), await signedIn()];
    expect((await revoke(mine, await currentOf(other))).status).toBe(200);
    expect((await read(other)).status).toBe(401);
    expect((await read(mine)).status).toBe(200);
    expect(await revoke(mine, await currentOf(mine))).toMatchObject({ status: 200, body: { current: true } });
    expect(await read(mine)).toMatchObject({ status: 401, body: { error: ended } });
  });

  test("can be revoked once, and only from our own pages", async () => {
    const [mine, other] = [await signedIn(), await signedIn()];
    const id = await currentOf(other);
    const foreign = { cookie: mine, origin: "https://evil.example" };
    expect((await api.post(`/login/${id}/revoke`, {}, { key: null, headers: foreign })).status).toBe(403);
    expect((await revoke(mine, id)).status).toBe(200);
    expect((await revoke(mine, id)).status).toBe(404);
    expect((await revoke(mine, "x")).status).toBe(404);
  });

  test("of others are no business of a member's, by browser or by key", async () => {
    const admin = await signedIn();
    const [one, two] = [await byKey("member"), await byKey("viewer")];
    for (const seen of [await list(one.cookie), await api.get("/login/list", { key: one.key })]) {
      expect(seen.body.logins).toHaveLength(1);
      expect(seen.body.logins[0]).toMatchObject({ by: "key", name: "of a member" });
    }
    for (const foreign of [await currentOf(admin), await currentOf(two.cookie)]) {
      expect((await revoke(one.cookie, foreign)).status).toBe(404);
      expect((await api.post(`/login/${foreign}/revoke`, {}, { key: one.key })).status).toBe(404);
    }
    expect([(await read(admin)).status, (await read(two.cookie)).status]).toEqual([200, 200]);
    expect((await list(admin)).body.logins.length).toBeGreaterThanOrEqual(3);
    expect((await revoke(two.cookie, await currentOf(two.cookie))).status).toBe(200);
  });

  test("of a link that may only read sees itself alone", async () => {
    const [first, second] = await Promise.all(
      [1, 2].map(async () => cookieOf(await signIn({ token: await link(60_000, ["read"]) }))),
    );
    expect((await list(first ?? "")).body.logins).toMatchObject([{ current: true }]);
    expect((await revoke(first ?? "", await currentOf(second ?? ""))).status).toBe(404);
  });

  test("end after the configured time, also those that were made when it was longer", async () => {
    const cookie = await signedIn();
    const app = await api.another({ signInDays: 1 });
    const ask = async (): Promise<number> =>
      (await app.inject({ method: "GET", url: "/session/list", headers: { cookie } })).statusCode;
    expect(await ask()).toBe(200);
    await api.database.pool.query("update browser_session set created_at = created_at - interval '25 hours'");
    expect(await ask()).toBe(401);
    // With the longer time it is still good.
    expect((await read(cookie)).status).toBe(200);
    const token = await link();
    const answer = await app.inject({ method: "POST", url: "/login/create", payload: { token } });
    expect(answer.headers["set-cookie"]).toContain("Max-Age=86400");
  });
});
