import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AuditEntry } from "../../src/domain/people/audit.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { pruneAudit } from "../../src/store/requests/audit.ts";
import { addOrganization } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { createTestApp, type TestApp } from "./app.ts";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});

beforeEach(async () => {
  await app.database.pool.query("delete from audit_entry");
});

afterAll(() => app?.close());

const entries = async (query = "", key?: string): Promise<AuditEntry[]> =>
  (await app.get(`/audit/list${query}`, key === undefined ? {} : { key })).body.entries;
const untilEntries = async (count: number): Promise<AuditEntry[]> => {
  let found: AuditEntry[] = [];
  await waitFor(async () => (found = await entries()).length >= count, `${count} entries are written`);
  return found;
};

it("tells who changed what, from where, and under which request", async () => {
  const { body, headers } = await app.post("/key/create", { name: "audited" });
  const [entry] = await entries();
  expect(entry).toMatchObject({
    actor: "key",
    keyName: expect.stringMatching(/^first admin key \(ofs_/u) as string,
    action: "createKey",
    target: (body as { id: string }).id,
    outcome: "allowed",
    status: 200,
    address: "127.0.0.1",
    requestId: headers["x-request-id"],
  });
});

it("names what was made or ended below something else, and not only that", async () => {
  const { body: session } = await app.post("/session/create", { prompt: "Work", queueRightAway: false });
  const { body: link } = await app.post(`/session/${(session as { id: string }).id}/share/create`, {});
  const [sessionId, linkId] = [session, link].map((made) => (made as { id: string }).id);
  await app.post(`/session/${sessionId}/share/${linkId}/revoke`, {});
  const found = await untilEntries(3);
  expect(found.map(({ action, target }) => [action, target])).toEqual([
    ["revokeShare", `${sessionId}/${linkId}`],
    ["createShare", `${sessionId}/${linkId}`],
    ["postPublic-apiSessionCreate", sessionId],
  ]);
});

it("has what takes an admin written before it is answered, and the rest a moment later", async () => {
  await app.post("/key/create", { name: "at once" });
  expect((await entries()).map(({ action }) => action)).toEqual(["createKey"]);
  await app.post("/session/create", { prompt: "Work", queueRightAway: false });
  const [latest] = await untilEntries(2);
  expect(latest?.action).toBe("postPublic-apiSessionCreate");
});

it("has a delivery a moment after it was answered, as the ledger has what came of it", async () => {
  const { body } = await app.post("/automation/create", {
    name: "Audited",
    macro: "audited",
    instructions: "Work",
    triggers: [{ type: "webhook" }],
  });
  const { id } = (body as { triggers: { id: string }[] }).triggers[1] ?? { id: "" };
  // Nothing is written while another transaction locks the table: a request that waits for its entry would not be
  // answered.
  const holder = await app.database.pool.connect();
  try {
    await holder.query("begin");
    await holder.query("lock table audit_entry in share mode");
    const answers = await Promise.all(
      [1, 2, 3].map(() => app.request("POST", `/hook/${id}`, { key: null, raw: "{}" })),
    );
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
  } finally {
    await holder.query("rollback");
    holder.release();
  }
  const found = await untilEntries(4);
  expect(found.filter(({ action, target }) => action === "deliverToTrigger" && target === id)).toHaveLength(3);
});

it("notes what was refused, reading included, and by whom", async () => {
  const { key } = await createKey(app.database, app.organizationId, { name: "reader", scopes: ["read"] });
  await app.get("/key/list", { key });
  await app.get("/session/list", { key: "ofs_wrong" });
  await app.post("/session/create", { prompt: "Work" }, { key });
  await app.post("/login/create", { key: "ofs_guess" }, { key: null });
  const found = await untilEntries(4);
  expect(
    found.map(({ action, actor, outcome }) => `${action} ${actor} ${outcome}`).toSorted((a, b) => a.localeCompare(b)),
  ).toEqual([
    "createLogin nobody refused",
    "listKeys nobody refused",
    "listSessions nobody refused",
    "postPublic-apiSessionCreate nobody refused",
  ]);
  expect((await entries("?outcome=allowed")).length).toBe(0);
  expect((await entries("?outcome=refused&action=createLogin")).length).toBe(1);
});

it("never holds a key, a token or a secret's value", async () => {
  await app.post("/login/create", { token: "token-to-look-for" }, { key: null });
  await app.post("/secret/create", { name: "AUDITED", value: "value-to-look-for" });
  await app.get("/key/list?apiKey=ofs_key-to-look-for", { key: null });
  await untilEntries(3);
  const { rows } = await app.database.pool.query<{ text: string }>("select audit_entry::text as text from audit_entry");
  expect(JSON.stringify(rows)).not.toContain("to-look-for");
});

it("is read by admins alone, page by page, and shows no other organization's", async () => {
  const other = await addOrganization(app.database);
  const theirs = await createKey(app.database, other, { name: "other", scopes: ["admin"] });
  for (let count = 0; count < 3; count += 1) await app.post("/key/create", { name: `key ${count}` });
  expect(await entries("", theirs.key)).toEqual([]);
  const { key } = await createKey(app.database, app.organizationId, { name: "member", scopes: ["write"] });
  expect((await app.get("/audit/list", { key })).status).toBe(403);
  const first = await app.get("/audit/list?limit=2&outcome=allowed");
  const second = await app.get(`/audit/list?limit=2&outcome=allowed&cursor=${first.body.nextCursor}`);
  expect([first.body.entries.length, second.body.entries.length, second.body.nextCursor]).toEqual([2, 1, null]);
});

it("forgets entries that are old", async () => {
  await app.post("/key/create", { name: "old" });
  await app.database.pool.query("update audit_entry set created_at = now() - interval '10 days'");
  await app.post("/key/create", { name: "new" });
  expect(await pruneAudit(app.database, 9, new AbortController().signal)).toBeGreaterThan(0);
  const ages = (await entries()).map(({ createdAt }) => Date.now() - Date.parse(createdAt));
  expect(ages.length).toBeGreaterThan(0);
  expect(Math.max(...ages)).toBeLessThan(9 * 24 * 60 * 60 * 1_000);
});

describe("the address", () => {
  it("is that of the connection, whatever a client says it is", async () => {
    await app.post("/key/create", { name: "k" }, { headers: { "x-forwarded-for": "203.0.113.9" } });
    expect((await entries())[0]?.address).toBe("127.0.0.1");
  });

  it("is what a trusted proxy says", async () => {
    const behind = await app.another({ trustedProxies: ["127.0.0.1"] });
    await behind.inject({
      method: "POST",
      url: "/key/create",
      headers: { authorization: `Bearer ${app.adminKey}`, "x-forwarded-for": "203.0.113.9" },
      payload: { name: "k" },
    });
    expect((await entries())[0]?.address).toBe("203.0.113.9");
  });
});

describe("the Host header", () => {
  const answer = async (host: string, url = "/session/list"): Promise<number> =>
    (await app.get(url, { headers: { host } })).status;

  it.each(["offstage.test", "offstage.test:8443", "localhost:4747", "127.0.0.1", "[::1]:4747", "192.168.1.20:80"])(
    "%s is this server's",
    async (host) => {
      expect(await answer(host)).toBe(200);
    },
  );

  it.each(["evil.example", "evil.example:4747", "offstage.test.evil.example", "localhost.evil.example"])(
    "%j is not, so that a page whose name was made to lead here reads nothing",
    async (host) => {
      expect(await answer(host)).toBe(421);
    },
  );

  it("can be a further name that the operator gave, and health is shown under any", async () => {
    const named = await app.another({ hosts: ["offstage.internal"] });
    const headers = { authorization: `Bearer ${app.adminKey}`, host: "offstage.internal" };
    expect((await named.inject({ method: "GET", url: "/session/list", headers })).statusCode).toBe(200);
    expect((await named.inject({ method: "GET", url: "/healthz", headers: { host: "10-0-0-1.pod" } })).statusCode).toBe(
      200,
    );
  });
});

it("lets no page of another origin read an answer", async () => {
  const headers = { origin: "https://evil.example", "access-control-request-method": "POST" };
  const preflight = await app.app.inject({ method: "OPTIONS", url: "/session/create", headers });
  const answer = await app.get("/session/list", { headers });
  for (const given of [preflight.headers, answer.headers]) {
    expect(Object.keys(given).filter((name) => name.startsWith("access-control-"))).toEqual([]);
  }
  expect(answer.headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" });
});
