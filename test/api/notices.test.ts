import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { unsubscribeToken } from "../../src/store/notices/unsubscribe.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { addPerson, addSession } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

const vault = createVault(environmentKeyring(Buffer.alloc(32, 7).toString("base64")));
let api: TestApp;
let ada: { readonly userId: string; readonly key: string };
let grace: { readonly userId: string; readonly key: string };

beforeAll(async () => {
  api = await createTestApp({ vault });
  ada = await addPerson(api.database, api.organizationId, { name: "Ada" });
  grace = await addPerson(api.database, api.organizationId, { name: "Grace", role: "viewer", scopes: ["read"] });
  await api.database.pool.query("update user_account set email = 'ada@x.example' where id = $1", [ada.userId]);
});
afterAll(() => api?.close());

const settingOf = async (key: string, kind: string): Promise<unknown> => {
  const { body } = await api.get("/notice/settings", { key });
  return body.settings.find((setting: { kind: string }) => setting.kind === kind);
};
const keys = { p256dh: "BAAA", auth: "AAAA" };

describe("a person's notices", () => {
  test("is theirs to choose, a viewer's too, and begins with what a browser is for", async () => {
    const { body } = await api.get("/notice/settings", { key: ada.key });
    expect(body).toMatchObject({
      email: { address: "ada@x.example", available: true },
      push: { publicKey: "a-public-key" },
    });
    expect(await settingOf(ada.key, "session.failed")).toEqual({ kind: "session.failed", email: "off", push: "mine" });
    const change = { settings: [{ kind: "session.failed", email: "all" }] };
    expect((await api.post("/notice/settings/update", change, { key: grace.key })).status).toBe(200);
    const more = {
      settings: [
        { kind: "session.failed", push: "off" },
        { kind: "automation.paused", push: "all" },
      ],
    };
    await api.post("/notice/settings/update", more, { key: grace.key });
    expect(await settingOf(grace.key, "session.failed")).toEqual({ kind: "session.failed", email: "all", push: "off" });
    expect(await settingOf(ada.key, "session.failed")).toEqual({ kind: "session.failed", email: "off", push: "mine" });
    const wrong = await api.post(
      "/notice/settings/update",
      { settings: [{ kind: "nothing", push: "all" }] },
      { key: ada.key },
    );
    expect(wrong.status).toBe(400);
  });

  test("by mail ends with the mail's own link, that kind alone, without signing in", async () => {
    const all = ["session.failed", "session.completed"].map((kind) => ({ kind, email: "mine" }));
    await api.post("/notice/settings/update", { settings: all }, { key: ada.key });
    const token = await unsubscribeToken(vault, ada.userId, "session.failed");
    const asMailPrograms = {
      key: null,
      raw: "List-Unsubscribe=One-Click",
      headers: { "content-type": "application/x-www-form-urlencoded" },
    };
    const answer = await api.request("POST", `/notice/unsubscribe?token=${token}`, asMailPrograms);
    expect([answer.status, answer.body]).toEqual([200, { kind: "session.failed" }]);
    expect(await settingOf(ada.key, "session.failed")).toMatchObject({ email: "off" });
    expect(await settingOf(ada.key, "session.completed")).toMatchObject({ email: "mine" });
    // The last character stands for four bits, and is followed by three that stand for the same.
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const sameBits = `${token.slice(0, -1)}${alphabet[alphabet.indexOf(token.slice(-1)) + 1]}`;
    for (const wrong of [sameBits, token.replace(ada.userId, grace.userId), "x", ""]) {
      expect((await api.request("POST", `/notice/unsubscribe?token=${wrong}`, asMailPrograms)).status).toBe(404);
    }
    expect((await api.get(`/notice/unsubscribe?token=${token}`, { key: null })).status).toBe(405);
  });

  test("can be tried", async () => {
    const { body } = await api.post("/notice/test", {}, { key: ada.key });
    expect(body).toEqual({ deliveries: 1 });
    const nowhere = await api.post("/notice/test", {}, { key: grace.key });
    expect(nowhere.status).toBe(400);
  });
});

describe("a browser", () => {
  test("is its person's to subscribe, list and end; what lets others write to it is never shown", async () => {
    const made = await api.post(
      "/subscription/create",
      { endpoint: "https://push.example/secret-path", keys },
      { key: ada.key, headers: { "user-agent": "A browser" } },
    );
    expect(made.body).toEqual({
      id: expect.any(String),
      host: "push.example",
      userAgent: "A browser",
      createdAt: expect.any(String),
      sentAt: null,
    });
    const { body } = await api.get("/subscription/list", { key: ada.key });
    expect(body.subscriptions).toEqual([made.body]);
    expect(JSON.stringify(body)).not.toContain("secret-path");
    const { rows } = await api.database.pool.query("select * from push_subscription");
    expect(JSON.stringify(rows.map((row) => ({ ...row, sealed: String(row.sealed) })))).not.toContain("secret-path");
    expect((await api.get("/subscription/list", { key: grace.key })).body.subscriptions).toEqual([]);
    expect((await api.post(`/subscription/${made.body.id}/delete`, {}, { key: grace.key })).status).toBe(404);
    expect((await api.post(`/subscription/${made.body.id}/delete`, {}, { key: ada.key })).status).toBe(200);
  });

  test.each([
    ["http://push.example/x", "endpoint must be an https:// address"],
    ["file:///etc/passwd", "endpoint must be an https:// address"],
    ["nonsense", "endpoint must be an https:// address"],
  ])("has an address that can be pushed to: not %s", async (endpoint, error) => {
    const answer = await api.post("/subscription/create", { endpoint, keys }, { key: ada.key });
    expect([answer.status, answer.body.error]).toEqual([400, error]);
  });

  test("that has another address sends it with its own secret, without a sign-in, and no other can", async () => {
    const [secret, stranger] = ["a".repeat(43), "b".repeat(43)];
    const body = { endpoint: "https://push.example/before", keys, renewalSecret: secret };
    const made = await api.post("/subscription/create", body, { key: ada.key });
    const { rows } = await api.database.pool.query("select row_to_json(one)::text as row from push_subscription one");
    expect(JSON.stringify(rows)).not.toContain(secret);
    const renew = (renewalSecret: string, endpoint: string) =>
      api.post("/subscription/renew", { endpoint, keys, renewalSecret }, { key: null });
    expect(await renew(stranger, "https://push.example/stolen")).toMatchObject({ status: 404 });
    expect(await renew("short", "https://push.example/stolen")).toMatchObject({ status: 400 });
    const renewed = await renew(secret, "https://elsewhere.example/after");
    expect([renewed.status, renewed.body]).toEqual([200, { ...made.body, host: "elsewhere.example" }]);
    const listed = async (key: string) => (await api.get("/subscription/list", { key })).body.subscriptions;
    expect(await listed(ada.key)).toEqual([renewed.body]);
    // The address before has no subscription, and an address that another subscription had is this one's.
    expect(
      (await api.post("/subscription/create", { ...body, renewalSecret: stranger }, { key: grace.key })).status,
    ).toBe(200);
    expect((await renew(secret, "https://push.example/before")).status).toBe(200);
    expect(await listed(grace.key)).toEqual([]);
    // A person who is disabled, and a browser that was removed.
    const disable = (disabled: boolean) => api.post(`/user/${ada.userId}/update`, { disabled });
    await disable(true);
    expect((await renew(secret, "https://push.example/later")).status).toBe(404);
    await disable(false);
    expect((await api.post(`/subscription/${made.body.id}/delete`, {}, { key: ada.key })).status).toBe(200);
    expect((await renew(secret, "https://push.example/later")).status).toBe(404);
  });

  test("is one of twenty at most", async () => {
    for (let count = 0; count < 20; count += 1) {
      const made = await api.post(
        "/subscription/create",
        { endpoint: `https://push.example/${count}`, keys },
        { key: grace.key },
      );
      expect(made.status).toBe(200);
    }
    const one = { endpoint: "https://push.example/0", keys };
    expect((await api.post("/subscription/create", one, { key: grace.key })).status).toBe(200);
    const more = await api.post(
      "/subscription/create",
      { endpoint: "https://push.example/20", keys },
      { key: grace.key },
    );
    expect([more.status, more.body.error]).toEqual([409, "you have subscribed 20 browsers: delete one first"]);
  });
});

describe("what a person has not looked at", () => {
  const finish = async (askedBy: string | null, more = ""): Promise<string> => {
    const { id } = await addSession(api.database, api.organizationId, { requestedBy: askedBy });
    await api.database.pool.query(
      `update session set status = 'completed', finished_at = clock_timestamp()${more} where id = $1`,
      [id],
    );
    return id;
  };
  const unread = async (key: string): Promise<unknown> => (await api.get("/session/unread", { key })).body;
  const isUnread = async (id: string, key: string): Promise<[boolean, boolean]> => [
    (await api.get(`/session/${id}`, { key })).body.unread,
    (await api.get("/session/list?limit=100", { key })).body.sessions.find((each: { id: string }) => each.id === id)
      ?.unread,
  ];

  test("is the end of what they asked for, until they look at it, and again after a follow-up", async () => {
    const [one, two] = [await finish(ada.userId), await finish(ada.userId)];
    await finish(null);
    expect(await unread(ada.key)).toEqual({ count: 2, more: false });
    expect(await unread(grace.key)).toEqual({ count: 0, more: false });
    expect(await unread(api.adminKey)).toEqual({ count: 0, more: false });
    expect([await isUnread(one, ada.key), await isUnread(one, grace.key), await isUnread(one, api.adminKey)]).toEqual([
      [true, true],
      [false, false],
      [false, false],
    ]);
    expect((await api.post(`/session/${one}/read`, {}, { key: ada.key })).status).toBe(200);
    expect([await isUnread(one, ada.key), await isUnread(two, ada.key), await unread(ada.key)]).toEqual([
      [false, false],
      [true, true],
      { count: 1, more: false },
    ]);
    await api.database.pool.query("update session set finished_at = clock_timestamp() where id = $1", [one]);
    expect(await unread(ada.key)).toEqual({ count: 2, more: false });
    await api.post(`/session/${two}/archive`, {});
    expect(await unread(ada.key)).toEqual({ count: 1, more: false });
    await api.post("/session/read-all", {}, { key: ada.key });
    expect(await unread(ada.key)).toEqual({ count: 0, more: false });
    await finish(ada.userId);
    expect(await unread(ada.key)).toEqual({ count: 1, more: false });
  });

  test("is listed and found by itself, of each their own", async () => {
    await api.post("/session/read-all", {}, { key: ada.key });
    const [one, two] = [await finish(ada.userId), await finish(ada.userId)];
    const listed = async (key: string, url = "/session/list?unread=true"): Promise<string[]> =>
      (await api.get(url, { key })).body.sessions.map(({ id }: { readonly id: string }) => id);
    expect(await listed(ada.key)).toEqual([two, one]);
    expect(await listed(ada.key, `/session/search?q=${one}&unread=true`)).toEqual([one]);
    expect([await listed(grace.key), await listed(api.adminKey)]).toEqual([[], []]);
    await api.post(`/session/${two}/read`, {}, { key: ada.key });
    expect(await listed(ada.key)).toEqual([one]);
    expect(await listed(ada.key, `/session/search?q=${two}&unread=true`)).toEqual([]);
    expect(await listed(ada.key, "/session/list?unread=true&archived=true")).toEqual([]);
    expect((await api.get("/session/list?unread=maybe", { key: ada.key })).status).toBe(400);
  });

  test("is counted up to a hundred", async () => {
    for (let count = 0; count < 101; count += 1) await finish(grace.userId);
    expect(await unread(grace.key)).toEqual({ count: 100, more: true });
  });
});
