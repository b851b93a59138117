import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pruneShares } from "../../src/store/people/share-links.ts";
import { eraseUser } from "../../src/store/people/users.ts";
import { accessPrefix } from "../../src/store/oauth/grants.ts";
import { hashOf, randomToken } from "../../src/store/people/tokens.ts";
import { addGrant, addPerson } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { createTestApp, type TestApp } from "./app.ts";

/** Links that show one session to anyone who has them. */
let api: TestApp;
let id: string;
let other: string;

beforeAll(async () => {
  api = await createTestApp();
  [id, other] = (await Promise.all(
    ["Look", "Look elsewhere"].map(async (prompt) => (await api.post("/session/create", { prompt })).body.id as string),
  )) as [string, string];
});
afterAll(() => api?.close());

async function share(body: object = {}, key?: string) {
  const answer = await api.post(`/session/${id}/share/create`, body, key === undefined ? {} : { key });
  expect(answer.status).toBe(200);
  const [, token = ""] = (answer.body.url as string).split("#");
  return { ...answer.body, token } as { id: string; url: string; expiresAt: string; token: string };
}

const shown = ["", "/events", "/diff", "/message/list", "/patch", "/transcript"];
const statuses = (token: string, of: string) =>
  Promise.all(shown.map(async (path) => (await api.get(`/session/${of}${path}`, { key: token })).status));

/** Gives a program a grant for the API. @returns the grant's id, and a token of the program's */
async function program() {
  const grantId = await addGrant(api.database, api.organizationId);
  const token = `${accessPrefix}${randomToken()}`;
  const { pool } = api.database;
  await pool.query("update oauth_grant set resource = 'api', scopes = '{write}' where id = $1", [grantId]);
  await pool.query(
    "insert into oauth_token (hash, grant_id, kind, expires_at) values ($1, $2, 'access', now() + interval '1 hour')",
    [hashOf(token), grantId],
  );
  return { grantId, token };
}

test("an admin sees the links of all sessions, newest first, and a member those of one", async () => {
  const first = await share();
  const { body: second } = await api.post(`/session/${other}/share/create`, {});
  const { shares } = (await api.get("/share/list?limit=2")).body as { shares: Record<string, string>[] };
  expect(shares.map((each) => [each["id"], each["sessionId"], each["sessionTitle"]])).toEqual([
    [(second as { id: string }).id, other, "Look elsewhere"],
    [first.id, id, "Look"],
  ]);
  const ofOne = (await api.get(`/session/${other}/share/list`)).body.shares as { sessionId: string }[];
  expect(new Set(ofOne.map(({ sessionId }) => sessionId))).toEqual(new Set([other]));
});

describe("a link to a session", () => {
  test("shows that session, and nothing else, read-only", async () => {
    const { token, url, ...made } = await share();
    expect(url).toMatch(new RegExp(`/shared/${id}#ofsh_[\\w-]{43}$`, "u"));
    expect(made).toMatchObject({ sessionId: id, revokedAt: null, lastUsedAt: null, createdBy: null });
    expect(await statuses(token, id)).toEqual(shown.map(() => 200));
    expect(new Set(await statuses(token, other))).toEqual(new Set([401]));
    const { body: description } = await api.get("/openapi.json");
    const refused: string[] = [];
    const allowed: string[] = [];
    for (const [path, methods] of Object.entries(description.paths as Record<string, object>)) {
      for (const method of Object.keys(methods) as ("get" | "post")[]) {
        const at = path.replace("{id}", id).replaceAll(/\{\w+\}/gu, other);
        const { status } = await api.request(method === "get" ? "GET" : "POST", at, {
          key: token,
          ...(method === "post" && { body: {} }),
        });
        (status === 200 ? allowed : refused).push(`${method} ${path}`);
      }
    }
    // Those that need no key at all are for everybody.
    const open = (path: string): boolean => !path.includes("/session/");
    expect(allowed.filter((each) => !open(each.split(" ")[1] ?? ""))).toEqual(
      shown
        .map((path) => `get /session/{id}${path}`)
        .toSorted((one, two) => allowed.indexOf(one) - allowed.indexOf(two)),
    );
    expect(allowed).not.toContain("get /session/list");
    expect(allowed).not.toContain("get /me");
    expect(refused).toContain("post /session/{id}/message");
    expect((await api.post(`/session/${id}/message`, { message: "Go on" }, { key: token })).body).toEqual({
      error: "this link shows one session, and lets nobody do anything",
    });
    // The positive control: it is well-formed, and with a key it is done.
    expect((await api.post(`/session/${id}/message`, { message: "Go on" })).status).toBe(200);
  });

  test("is good in the query too, and never as a cookie's or a key's stand-in elsewhere", async () => {
    const { token } = await share();
    expect((await api.get(`/session/${id}?apiKey=${token}`, { key: null })).status).toBe(200);
    expect((await api.get(`/session/${other}?apiKey=${token}`, { key: null })).status).toBe(401);
    expect((await api.post("/login/create", { key: token }, { key: null })).status).toBe(401);
    expect((await api.post("/mcp", { jsonrpc: "2.0", id: 1, method: "ping" }, { key: token })).status).not.toBe(200);
  });

  test("ends when it is revoked, when it expires, and when its maker may sign in no more", async () => {
    const { database, organizationId } = api;
    const revoked = await share();
    expect((await api.post(`/session/${id}/share/${revoked.id}/revoke`, {})).body).toMatchObject({ id: revoked.id });
    const expired = await share({ expiresInDays: 1 });
    const { pool } = database;
    await pool.query("update share_link set expires_at = now() where id = $1", [expired.id]);
    const { userId, key } = await addPerson(database, organizationId, { name: "Ada" });
    const [byKey, signedIn] = [await share({}, key), await share()];
    await pool.query("update share_link set user_id = $2 where id = $1", [signedIn.id, userId]);
    for (const { token } of [byKey, signedIn]) expect(await statuses(token, id)).toEqual(shown.map(() => 200));
    const { body: list } = await api.get(`/session/${id}/share/list?limit=2`);
    expect(list.shares).toMatchObject([1, 2].map(() => ({ createdBy: { id: userId, name: "Ada" } })));
    await eraseUser(database, organizationId, userId);
    for (const { token } of [revoked, expired, byKey, signedIn])
      expect(new Set(await statuses(token, id))).toEqual(new Set([401]));
    const { body } = await api.get(`/session/${id}`, { key: expired.token });
    expect(body.error).toContain("revoked or expired");
  });

  test("ends with the grant of the program that made it", async () => {
    const [revoked, expired, going] = [await program(), await program(), await program()];
    const made = async (by: { token: string }) => (await share({}, by.token)).token;
    const links = [await made(revoked), await made(expired), await made(going)];
    for (const token of links) expect(await statuses(token, id)).toEqual(shown.map(() => 200));
    expect((await api.post(`/grant/${revoked.grantId}/revoke`, {})).status).toBe(200);
    await api.database.pool.query("update oauth_grant set expires_at = now() where id = $1", [expired.grantId]);
    expect(await Promise.all(links.map(async (token) => (await statuses(token, id))[0]))).toEqual([401, 401, 200]);
  });

  test("ends with the key that made it, for good with its maker's sign-in, and while its organization is erased", async () => {
    const { pool } = api.database;
    const { body: key } = await api.post("/key/create", { name: "leaked", scopes: ["write"] });
    const [ofRevoked, ofExpired] = [await share({}, key.key), await share({}, key.key)];
    await pool.query("update share_link set key_id = null where id = $1", [ofExpired.id]);
    expect(await statuses(ofExpired.token, id)).toEqual(shown.map(() => 200));
    const { body: short } = await api.post("/key/create", { name: "short", scopes: ["write"] });
    await pool.query("update share_link set key_id = $2 where id = $1", [ofExpired.id, short.id]);
    await pool.query("update api_key set expires_at = now() where id = $1", [short.id]);
    await api.post(`/key/${key.id}/revoke`, {});
    await pool.query("update api_key set revoked_at = null where id = $1", [key.id]);
    const { userId } = await addPerson(api.database, api.organizationId, { name: "Eve" });
    const theirs = await share();
    await pool.query("update share_link set user_id = $2 where id = $1", [theirs.id, userId]);
    for (const disabled of [true, false]) await api.post(`/user/${userId}/update`, { disabled });
    for (const { token } of [ofRevoked, ofExpired, theirs])
      expect(new Set(await statuses(token, id))).toEqual(new Set([401]));
    const { token } = await share();
    await pool.query("insert into erasure (organization_id) values ($1)", [api.organizationId]);
    expect(new Set(await statuses(token, id))).toEqual(new Set([401]));
    await pool.query("delete from erasure");
    expect(await statuses(token, id)).toEqual(shown.map(() => 200));
  });

  test("tells nothing of what is around the session, and breaks by no address", async () => {
    const { token } = await share();
    const [queued, asAdmin] = await Promise.all([api.get(`/session/${id}`, { key: token }), api.get(`/session/${id}`)]);
    expect(queued.body).toMatchObject({ queuePosition: null, estimatedWaitSeconds: null, jobId: null, attention: [] });
    // The positive control.
    expect(typeof asAdmin.body.queuePosition).toBe("number");
    const transcript = await api.get(`/session/${id}/transcript?format=json`, { key: token });
    expect(transcript.body.session).toMatchObject({ queuePosition: null });
    for (const odd of ["%00", "x", "%F0%9F%92%A9", "..%2f..", `${id}%00`])
      expect([odd, (await api.get(`/session/${odd}`, { key: token })).status]).toEqual([odd, 401]);
  });

  test("that is revoked ends the stream that is under way", async () => {
    const { token, id: shareId } = await share();
    const stream = api.app.inject({
      url: `/session/${id}/events`,
      headers: { accept: "text/event-stream", authorization: `Bearer ${token}` },
    });
    await waitFor(async () => {
      const { body } = await api.get(`/session/${id}/share/list?limit=1`);
      return body.shares[0].lastUsedAt !== null;
    }, "the stream has begun");
    await api.post(`/session/${id}/share/${shareId}/revoke`, {});
    expect((await stream).statusCode).toBe(200);
  });

  test("is forgotten a month after it ended", async () => {
    const { pool } = api.database;
    const { id: shareId } = await share();
    const isThere = async () => (await pool.query("select from share_link where id = $1", [shareId])).rowCount === 1;
    await pool.query("update share_link set revoked_at = now() - interval '29 days' where id = $1", [shareId]);
    await pruneShares(api.database);
    expect(await isThere()).toBe(true);
    await pool.query("update share_link set revoked_at = now() - interval '31 days' where id = $1", [shareId]);
    expect(await pruneShares(api.database)).toBeGreaterThan(0);
    expect(await isThere()).toBe(false);
  });

  test("is listed without its secret, with when it was used, and kept nowhere whole", async () => {
    const { token, id: shareId } = await share();
    await api.get(`/session/${id}`, { key: token });
    const { body } = await api.get(`/session/${id}/share/list?limit=1`);
    expect(body.shares).toMatchObject([{ id: shareId, lastUsedAt: expect.any(String) as string }]);
    expect(JSON.stringify(body)).not.toContain(token);
    const { rows } = await api.database.pool.query("select to_jsonb(share_link)::text as row from share_link");
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(token.slice("ofsh_".length));
  });

  test("is refused for what is no session, a time that is none, and more links than a session may have", async () => {
    const refusal = async (of: string, body: object) =>
      (await api.post(`/session/${of}/share/create`, body)).body.error;
    expect(await refusal(crypto.randomUUID(), {})).toMatch(/session .* was not found/u);
    expect(await refusal(id, { expiresInDays: 0 })).toContain("expiresInDays");
    expect(await refusal(id, { expiresInDays: 366 })).toContain("expiresInDays");
    await api.database.pool.query(
      `insert into share_link (id, organization_id, session_id, hash, expires_at)
       select gen_random_uuid(), $1, $2, sha256(n::text::bytea), now() + interval '1 day' from generate_series(1, 100) n`,
      [api.organizationId, other],
    );
    expect(await refusal(other, {})).toContain("100 links");
    await api.database.pool.query(
      "update share_link set revoked_at = now() - interval '31 days' where session_id = $1",
      [other],
    );
    expect((await api.post(`/session/${other}/share/create`, {})).status).toBe(200);
  });

  test("is made and revoked by those who may write, and goes with its session", async () => {
    const { body: viewer } = await api.post("/key/create", { name: "viewer", scopes: ["read"] });
    const { id: shareId, token } = await share();
    const asViewer = { key: viewer.key as string };
    expect((await api.post(`/session/${id}/share/create`, {}, asViewer)).status).toBe(403);
    expect((await api.post(`/session/${id}/share/${shareId}/revoke`, {}, asViewer)).status).toBe(403);
    expect((await api.get(`/session/${id}/share/list`, asViewer)).status).toBe(200);
    await api.database.pool.query("update session set status = 'cancelled', finished_at = now() where id = $1", [id]);
    expect((await api.post(`/session/${id}/delete`, {})).status).toBe(200);
    expect((await api.get(`/session/${id}`, { key: token })).status).toBe(401);
  });
});
