import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Scope } from "../../src/domain/people/key.ts";
import { InvalidInputError } from "../../src/domain/errors/errors.ts";
import { finishErasure } from "../../src/store/organization-data/erase.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { createLoginLink } from "../../src/store/people/logins.ts";
import { updateUser } from "../../src/store/people/users.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { rotateMasterKey } from "../../src/store/secrets/rotation.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { addOrganization, addPerson } from "../store/fixtures.ts";
import { createTestApp, type Answer, type TestApp } from "./app.ts";

// Requests under an Idempotency-Key whose answer has a secret that is shown once.

const masterKey = randomBytes(32).toString("base64");
let api: TestApp;
let sessionId: string;
let webhookId: string;
let connectionId: string;
let trigger: { readonly macro: string; readonly id: string };
let invitedId: string;

const hook = { type: "webhook", verify: { type: "hmac", header: "x-signature", prefix: "" } } as const;
const automation = (macro: string) => ({ name: macro, macro, instructions: "x", triggers: [hook] });
const connection = (host: string) => ({
  kind: "gitea",
  webUrl: `https://${host}`,
  credential: { type: "token", token: "a-token" },
});

beforeAll(async () => {
  api = await createTestApp({ vault: createVault(environmentKeyring(masterKey)) });
  sessionId = (await api.post("/session/create", { prompt: "shared" })).body.id;
  webhookId = (await api.post("/webhook/create", { url: "https://h.example/a", events: ["session.completed"] })).body
    .id;
  connectionId = (await api.post("/connection/create", connection("first.example"))).body.id;
  const made = await api.post("/automation/create", automation("rotated"));
  trigger = { macro: "rotated", id: made.body.triggers.find(({ type }: { type: string }) => type === "webhook").id };
  invitedId = (await api.post("/user/invite", { name: "Ada", role: "member" })).body.user.id;
});

afterAll(() => api?.close());

interface Case {
  readonly url: string;
  readonly body: unknown;
  /** Another body for the same operation; undefined: it has none that differs. */
  readonly other?: unknown;
  readonly secretOf: (body: Answer["body"]) => string;
  readonly idOf: (body: Answer["body"]) => string;
  /** What there may be one of, whoever asks how often. */
  readonly count: string;
}

const secret = (body: Answer["body"]): string => body.secret;
const id = (body: Answer["body"]): string => body.id;
const tokenOf = ({ url }: { url: string }): string => url.slice(url.indexOf("#") + 1);
const secretOfTrigger = ({ triggers }: { triggers: readonly { secret?: string }[] }): string =>
  triggers.find((each) => each.secret !== undefined)?.secret ?? "";

const cases = (): Readonly<Record<string, Case>> => ({
  "a key": {
    url: "/key/create",
    body: { name: "replayed", scopes: ["read"] },
    other: { name: "replayed", scopes: ["admin"] },
    secretOf: ({ key }) => key,
    idOf: id,
    count: "api_key where name = 'replayed'",
  },
  "an organization": {
    url: "/organization/create",
    body: { name: "replayed" },
    other: { name: "replayed", usesServerForges: true },
    secretOf: ({ adminKey }) => adminKey,
    idOf: ({ organization }) => organization.id,
    count:
      "api_key join organization on organization.id = api_key.organization_id where organization.name = 'replayed'",
  },
  "an organization with an invited admin": {
    url: "/organization/create",
    body: { name: "invited", admin: { name: "Mary" } },
    other: { name: "invited", admin: { name: "Maria" } },
    secretOf: ({ invitation }) => tokenOf(invitation),
    idOf: ({ organization }) => organization.id,
    count: "user_account where name = 'Mary'",
  },
  "a webhook": {
    url: "/webhook/create",
    body: { url: "https://h.example/replayed", events: ["session.completed"] },
    other: { url: "https://h.example/replayed", events: ["session.failed"] },
    secretOf: secret,
    idOf: id,
    count: "webhook where url = 'https://h.example/replayed'",
  },
  "a webhook's new secret": {
    url: `/webhook/${webhookId}/rotate`,
    body: {},
    secretOf: secret,
    idOf: id,
    count: "webhook where url = 'https://h.example/a'",
  },
  "a connection": {
    url: "/connection/create",
    body: connection("replayed.example"),
    other: { ...connection("replayed.example"), name: "other" },
    secretOf: ({ webhookSecret }) => webhookSecret,
    idOf: id,
    count: "forge_connection where web_url = 'https://replayed.example'",
  },
  "a connection's new secret": {
    url: `/connection/${connectionId}/rotate-secret`,
    body: {},
    other: { webhookSecret: "the-forge's-own-secret" },
    secretOf: ({ webhookSecret }) => webhookSecret,
    idOf: id,
    count: "forge_connection where web_url = 'https://first.example'",
  },
  "an automation with a signed webhook": {
    url: "/automation/create",
    body: automation("replayed"),
    other: { ...automation("replayed"), instructions: "y" },
    secretOf: secretOfTrigger,
    idOf: id,
    count:
      "trigger where type = 'webhook' and deleted_at is null and automation_id = (select id from automation where macro = 'replayed')",
  },
  "a trigger's new secret": {
    url: `/automation/${trigger.macro}/trigger/${trigger.id}/rotate`,
    body: {},
    secretOf: secret,
    idOf: id,
    count:
      "trigger where type = 'webhook' and deleted_at is null and automation_id = (select id from automation where macro = 'rotated')",
  },
  "an invitation": {
    url: "/user/invite",
    body: { name: "Grace", role: "member", email: "grace@company.example" },
    other: { name: "Grace", role: "admin", email: "grace@company.example" },
    secretOf: tokenOf,
    idOf: ({ user }) => user.id,
    count: "user_account where name = 'Grace'",
  },
  "another invitation": {
    url: `/user/${invitedId}/invite`,
    body: {},
    other: { language: "de" },
    secretOf: tokenOf,
    idOf: ({ user }) => user.id,
    count: "login_link where user_id = (select id from user_account where name = 'Ada')",
  },
  "a link that shows a session": {
    url: `/session/${sessionId}/share/create`,
    body: {},
    other: { expiresInDays: 2 },
    secretOf: tokenOf,
    idOf: id,
    count: "share_link",
  },
});

const names = [
  "a key",
  "an organization",
  "an organization with an invited admin",
  "a webhook",
  "a webhook's new secret",
  "a connection",
  "a connection's new secret",
  "an automation with a signed webhook",
  "a trigger's new secret",
  "an invitation",
  "another invitation",
  "a link that shows a session",
];

const caseOf = (name: string): Case => {
  const found = cases()[name];
  if (found === undefined) throw new Error(`there is no case ${name}`);
  return found;
};

const under = (idempotencyKey: string) => ({ "idempotency-key": idempotencyKey });

async function countOf(what: string): Promise<number> {
  const { rows } = await api.database.pool.query<{ count: number }>(`select count(*)::integer as count from ${what}`);
  return rows[0]?.count ?? 0;
}

/** All that is kept of a request, with its bytes as text. */
async function kept(key: string): Promise<string> {
  const { rows } = await api.database.pool.query<{ row: string; bytes: string | null }>(
    `select i::text as row, encode(sealed, 'escape') as bytes from idempotency i where key like '%' || $1`,
    [key],
  );
  return rows.map(({ row, bytes }) => `${row} ${bytes}`).join("\n");
}

/** As it was when its server died: begun a minute ago, and never answered. */
const dies = (key: string) =>
  api.database.pool.query(
    `update idempotency set status = null, body = null, sealed = null, master_key = null, created_at = now() - interval '61 seconds'
     where key = $1`,
    [key],
  );

/** As it was if what holds the place of a request began a minute ago. */
const ages = (key: string) =>
  api.database.pool.query("update idempotency set created_at = now() - interval '61 seconds' where key = $1", [key]);

/** What there is of something, with its secret, as one text. */
async function stateOf(what: string): Promise<string> {
  const { rows } = await api.database.pool.query<{ state: string }>(
    `select string_agg(row::text, ' ') as state from (select * from ${what}) row`,
  );
  return rows[0]?.state ?? "";
}

/** A request that a server handles slowly: it stands still before its first transaction, or after that one was committed. */
async function slowly(
  where: "before" | "after",
  url: string,
  body: unknown,
  idempotencyKey: string,
): Promise<{ readonly reached: Promise<void>; goOn(): Promise<Answer> }> {
  const [reached, goes] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const stand = (): Promise<void> => {
    reached.resolve();
    return goes.promise;
  };
  const { database } = api;
  const transaction: typeof database.transaction = async (work) => {
    if (where === "before") await stand();
    const result = await database.transaction(work);
    if (where === "after") await stand();
    return result;
  };
  const app = await api.another({ database: { ...database, transaction } });
  const answer = app.inject({
    method: "POST",
    url,
    headers: { authorization: `Bearer ${api.adminKey}`, "content-type": "application/json", ...under(idempotencyKey) },
    payload: JSON.stringify(body),
  });
  return {
    reached: reached.promise,
    async goOn() {
      goes.resolve();
      const { statusCode: status, headers, ...rest } = await answer;
      return { status, headers, body: rest.json() };
    },
  };
}

const keyWith = async (...scopes: Scope[]): Promise<string> =>
  (await createKey(api.database, api.organizationId, { name: "another", scopes })).key;

describe.each(names)("%s", (name) => {
  const key = `once-${name.replaceAll(/\W/gu, "-")}`;

  test("is made once, and answered again with its secret, which is kept sealed", async () => {
    const { url, body, other, secretOf, count } = caseOf(name);
    const first = await api.post(url, body, { headers: under(key) });
    expect([first.status, first.headers["idempotent-replayed"]]).toEqual([200, undefined]);
    expect(secretOf(first.body).length).toBeGreaterThan(20);
    const again = await api.post(url, body, { headers: under(key) });
    expect([again.status, again.headers["idempotent-replayed"], again.body]).toEqual([200, "true", first.body]);
    expect(await countOf(count)).toBe(1);
    const stored = await kept(key);
    expect(stored).toContain(key);
    expect(stored).not.toContain(secretOf(first.body));
    if (other === undefined) return;
    const mismatch = await api.post(url, other, { headers: under(key) });
    expect([mismatch.status, mismatch.headers["retry-after"]]).toEqual([409, undefined]);
    expect(JSON.stringify(mismatch.body)).not.toContain(secretOf(first.body));
  });

  test("is shown to no other key of the organization, and made by none", async () => {
    const { url, body, count } = caseOf(name);
    const refused = await api.post(url, body, { headers: under(key), key: await keyWith("admin") });
    expect(refused).toMatchObject({ status: 409, body: { error: expect.stringContaining("somebody else") as string } });
    expect(await countOf(count)).toBe(1);
  });

  test("is made once if its server dies before the answer is kept, and then has another secret", async () => {
    const { url, body, secretOf, idOf, count } = caseOf(name);
    const first = await api.post(url, body, { headers: under(key) });
    await dies(key);
    const again = await api.post(url, body, { headers: under(key) });
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, undefined]);
    expect(idOf(again.body)).toBe(idOf(first.body));
    expect(secretOf(again.body)).not.toBe(secretOf(first.body));
    expect(await countOf(count)).toBe(1);
  });

  test("has the secret of the repetition, which alone is shown, if the first request takes over a minute", async () => {
    const { url, body, secretOf, count } = caseOf(name);
    await dies(key);
    const slow = await slowly("before", url, body, key);
    await slow.reached;
    await ages(key);
    const repetition = await api.post(url, body, { headers: under(key) });
    expect([repetition.status, repetition.headers["idempotent-replayed"]]).toEqual([200, undefined]);
    const made = await stateOf(count);
    const late = await slow.goOn();
    expect([late.status, late.headers["retry-after"]]).toEqual([409, "1"]);
    expect([await stateOf(count), await countOf(count)]).toEqual([made, 1]);
    const again = await api.post(url, body, { headers: under(key) });
    expect([again.headers["idempotent-replayed"], secretOf(again.body)]).toEqual(["true", secretOf(repetition.body)]);
  });
});

test("a secret that was replaced before it was answered is not shown, but the one that replaced it", async () => {
  const body = { name: "replaced", scopes: ["read"] };
  const slow = await slowly("after", "/key/create", body, "replaced");
  await slow.reached;
  await ages("replaced");
  const other = await api.post("/key/create", body, { headers: under("replaced") });
  const late = await slow.goOn();
  expect([late.status, late.body.key]).toEqual([409, undefined]);
  expect((await api.get("/me", { key: other.body.key })).status).toBe(200);
  expect((await api.post("/key/create", body, { headers: under("replaced") })).body).toEqual(other.body);
  expect(await countOf("api_key where name = 'replaced'")).toBe(1);
});

test("a key that was made again works, and the one that nobody saw does not", async () => {
  const make = () => api.post("/key/create", { name: "unseen", scopes: ["read"] }, { headers: under("unseen") });
  const first = await make();
  await dies("unseen");
  const { body } = await make();
  expect((await api.get("/me", { key: first.body.key })).status).toBe(401);
  expect((await api.get("/me", { key: body.key })).status).toBe(200);
  expect(body.key.startsWith(body.prefix)).toBe(true);
});

test("while the first request is under way, another one is told to come again", async () => {
  const make = () => api.post("/key/create", { name: "under way" }, { headers: under("key-under-way") });
  await make();
  await api.database.pool.query(
    "update idempotency set status = null, sealed = null, master_key = null where key = 'key-under-way'",
  );
  const early = await make();
  expect([early.status, early.headers["retry-after"]]).toEqual([409, "1"]);
  expect(await countOf("api_key where name = 'under way'")).toBe(1);
});

test("an organization's keys are apart from another's", async () => {
  const make = (key?: string) =>
    api.post("/key/create", { name: "apart" }, { headers: under("apart"), ...(key !== undefined && { key }) });
  const first = await make();
  const elsewhere = await createKey(api.database, await addOrganization(api.database), {
    name: "x",
    scopes: ["admin"],
  });
  const theirs = await make(elsewhere.key);
  expect([theirs.status, theirs.headers["idempotent-replayed"]]).toEqual([200, undefined]);
  expect(theirs.body.key).not.toBe(first.body.key);
});

test("a browser that a link of no person signed in is answered again, and no other that such a link signed in", async () => {
  const browser = async () => {
    const token = await createLoginLink(api.database, api.organizationId, { scopes: ["admin"], ttlMs: 60_000 });
    const { headers } = await api.post("/login/create", { token }, { key: null });
    return /offstage_session=[^;]+/u.exec(String(headers["set-cookie"]))?.[0] ?? "";
  };
  const make = (cookie: string) =>
    api.post("/key/create", { name: "linked" }, { key: null, headers: { cookie, ...under("linked") } });
  const [one, other] = [await browser(), await browser()];
  const first = await make(one);
  expect((await make(one)).body).toEqual(first.body);
  const refused = await make(other);
  expect(refused.status).toBe(409);
  expect(JSON.stringify(refused.body)).not.toContain(first.body.key);
});

test.each([{ name: "gone with a key" }, { name: "gone with an admin", admin: { name: "Mary" } }])(
  "an organization that was erased before its answer was kept is not made again: %j",
  async (body) => {
    const key = body.name.replaceAll(" ", "-");
    const make = () => api.post("/organization/create", body, { headers: under(key) });
    const organization = (await make()).body.organization as { readonly id: string };
    await api.post(`/organization/${organization.id}/erase`, { name: body.name });
    await dies(key);
    expect((await make()).status).toBe(409);
    await dies(key);
    expect(await finishErasure(api.database, organization.id, new AbortController().signal)).toBe(true);
    const refused = await make();
    expect([refused.status, refused.body.error]).toEqual([409, expect.stringContaining("is erased")]);
    expect(await countOf(`organization where id = '${organization.id}'`)).toBe(0);
    expect((await api.post("/organization/create", body, { headers: under(`${key}-anew`) })).status).toBe(200);
  },
);

test("who is no admin any more, or whose key was revoked, is answered nothing again", async () => {
  // Another admin, without whom nobody could be demoted.
  await addPerson(api.database, api.organizationId, { name: "Other", role: "admin" });
  const { userId } = await addPerson(api.database, api.organizationId, { name: "Demoted", role: "admin" });
  const owned = { name: "of an admin", scopes: ["admin"] as const, userId };
  const { key, record } = await createKey(api.database, api.organizationId, owned);
  const make = () => api.post("/key/create", { name: "demoted" }, { headers: under("demoted"), key });
  const first = await make();
  expect((await make()).body).toEqual(first.body);
  await updateUser(api.database, api.organizationId, userId, { role: "member" });
  const demoted = await make();
  expect(demoted.status).toBe(403);
  expect(JSON.stringify(demoted.body)).not.toContain(first.body.key);
  await updateUser(api.database, api.organizationId, userId, { role: "admin" });
  expect((await make()).headers["idempotent-replayed"]).toBe("true");
  await api.post(`/key/${record.id}/revoke`, {});
  expect((await make()).status).toBe(401);
});

test("after a day it is forgotten with the answer", async () => {
  const make = () => api.post("/key/create", { name: "a day" }, { headers: under("a-day") });
  const first = await make();
  await api.database.pool.query("update idempotency set created_at = now() - interval '25 hours' where key = 'a-day'");
  const later = await make();
  expect([later.status, later.headers["idempotent-replayed"]]).toEqual([200, undefined]);
  expect(later.body.id).not.toBe(first.body.id);
});

test("an answer is sealed anew with a new master key, and given again", async () => {
  const make = (app = api.app) =>
    app.inject({
      method: "POST",
      url: "/key/create",
      headers: { authorization: `Bearer ${api.adminKey}`, ...under("rotation") },
      payload: { name: "rotated" },
    });
  const first = await make();
  const fresh = randomBytes(32).toString("base64");
  await rotateMasterKey(api.database, createVault(environmentKeyring(`${fresh},${masterKey}`)));
  const vault = createVault(environmentKeyring(fresh));
  const again = await make(await api.another({ vault }));
  expect([again.statusCode, again.json()]).toEqual([200, first.json()]);
  // The others of this file are sealed with the new one now.
  await rotateMasterKey(api.database, createVault(environmentKeyring(`${masterKey},${fresh}`)));
});

test("an answer can't be opened in the place of another", async () => {
  const make = (name: string) => api.post("/key/create", { name }, { headers: under(name) });
  await make("moved-from");
  await make("moved-to");
  await api.database.pool.query(
    `update idempotency set sealed = other.sealed from idempotency other
     where idempotency.key = 'moved-to' and other.key = 'moved-from'`,
  );
  const refused = await make("moved-to");
  expect(refused.status).toBe(409);
  expect(refused.body.key).toBeUndefined();
});

test("a server that can't read its master key makes nothing under an Idempotency-Key, and keys without one as ever", async () => {
  const unreadable = () => Promise.reject(new InvalidInputError("others than its owner can read master.key"));
  const vault = createVault({ source: "master.key", keys: unreadable, add: null, retire: null });
  const app = await api.another({ vault });
  const make = (headers: Record<string, string>) =>
    app.inject({
      method: "POST",
      url: "/key/create",
      headers: { authorization: `Bearer ${api.adminKey}`, ...headers },
      payload: { name: "no master key" },
    });
  expect((await make(under("no-master-key"))).statusCode).toBe(400);
  expect(await countOf("api_key where name = 'no master key'")).toBe(0);
  expect((await make({})).statusCode).toBe(200);
});

test("an answer that can't be sealed any more is not given; the same request makes another secret, and both are in the audit log", async () => {
  const keyring = environmentKeyring(masterKey);
  let reads = 0;
  const keys = () => {
    reads += 1;
    return reads === 1 ? keyring.keys() : Promise.reject(new InvalidInputError("others than its owner can read it"));
  };
  const [failing, working] = [{ ...keyring, keys }, keyring].map((each) => api.another({ vault: createVault(each) }));
  const make = async (app: typeof failing) =>
    (await app)?.inject({
      method: "POST",
      url: "/key/create",
      headers: { authorization: `Bearer ${api.adminKey}`, ...under("unsealed") },
      payload: { name: "unsealed" },
    });
  const first = await make(failing);
  expect([first?.statusCode, first?.headers["retry-after"]]).toEqual([503, "1"]);
  const again = await make(working);
  expect([again?.statusCode, again?.json().key]).toEqual([200, expect.stringMatching(/^ofs_/u)]);
  expect(await countOf("api_key where name = 'unsealed'")).toBe(1);
  const { entries } = (await api.get("/audit/list?action=createKey&limit=2")).body;
  expect(entries.map(({ status }: { status: number }) => status)).toEqual([200, 503]);
});

test("a test delivery is queued once", async () => {
  const send = () => api.post(`/webhook/${webhookId}/test`, {}, { headers: under("test-delivery") });
  const [first, again] = [await send(), await send()];
  expect([again.status, again.headers["idempotent-replayed"], again.body]).toEqual([200, "true", first.body]);
  await dies("test-delivery");
  expect((await send()).body.id).toBe(first.body.id);
  expect(await countOf("webhook_delivery where type = 'webhook.test'")).toBe(1);
});

test("an automation without a secret is answered again to whoever of the organization may read", async () => {
  const body = { name: "Open", macro: "open", instructions: "x" };
  const first = await api.post("/automation/create", body, { headers: under("open") });
  const again = await api.post("/automation/create", body, { headers: under("open"), key: await keyWith("write") });
  expect([again.status, again.headers["idempotent-replayed"], again.body]).toEqual([200, "true", first.body]);
});
