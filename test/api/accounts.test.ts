import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { forgeEventSchema } from "../../src/domain/automations/forge-event.ts";
import { accountPlaceOf, type KnownForge } from "../../src/forges/connections/account-place.ts";
import { checkAccount } from "../../src/forges/connections/check-account.ts";
import { createGuardedFetch } from "../../src/gateway/egress/guarded-fetch.ts";
import { readerOf } from "../../src/inbound/forges/readers.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { eraseUser, updateUser } from "../../src/store/people/users.ts";
import { noteAccountRefusal, openAccount, openAccountsOfRequester } from "../../src/store/secrets/opened-accounts.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { rotateMasterKey } from "../../src/store/secrets/rotation.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { deliveryOf, type Hook } from "../forge/deliveries/deliveries.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import type { Person } from "../forge/state.ts";
import { addPerson, addSession } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

let forge: TestForge;
let app: TestApp;
let ada: Person;
let known: KnownForge[] = [];
const masterKey = randomBytes(32).toString("base64");
const vault = createVault(environmentKeyring(masterKey));

beforeAll(async () => {
  forge = await startForge();
  ada = forge.addPerson("ada");
  const reach = createGuardedFetch({ privateHosts: ["127.0.0.1"], setting: "OFFSTAGE_FORGE_HOSTS" });
  app = await createTestApp({
    vault,
    accounts: {
      placeOf: (_, webUrl) => Promise.resolve(accountPlaceOf(webUrl, known)),
      check: (place, credential) => checkAccount(place, credential, { reach, signal: new AbortController().signal }),
    },
  });
});
beforeEach(async () => {
  known = [{ settings: { kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl }, isOwn: true }];
  forge.setScopes("repo");
  forge.setGiteaScopes(null);
  await app.database.pool.query("delete from forge_account");
});
afterAll(async () => {
  await app?.close();
  await forge?.close();
});

let count = 0;
/** A signed-in person, with their own key. */
async function addSomeone(scopes: ("read" | "write" | "admin")[] = ["read", "write"]) {
  const { database, organizationId } = app;
  const name = `Person ${(count += 1)}`;
  const { key, userId } = await addPerson(database, organizationId, { name, scopes });
  return { key, userId, name, owner: { organizationId, userId } };
}
type SignedIn = Awaited<ReturnType<typeof addSomeone>>;

const body = (over: object = {}) => ({ webUrl: forge.url, token: ada.token, ...over });
async function connect({ key }: SignedIn, over: object = {}) {
  const { status, body: made } = await app.post("/account/create", body(over), { key });
  expect([status, made.error]).toEqual([200, undefined]);
  return made;
}

it("connects a person's account, says whose it is, and never answers its token", async () => {
  const person = await addSomeone();
  const made = await connect(person);
  expect(made).toMatchObject({ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, name: "ada" });
  expect(made.health).toMatchObject({ state: "ok", problems: [] });
  const got = await app.get(`/account/${made.id}`, person);
  const listed = await app.get("/account/list", person);
  expect(got.body).toEqual(made);
  expect(listed.body).toEqual({ accounts: [made], nextCursor: null });
  expect(JSON.stringify([made, got.body, listed.body])).not.toContain(ada.token);
  const { rows } = await app.database.pool.query<{ text: string }>(
    `select string_agg(forge_account::text, '') || coalesce((select string_agg(audit_entry::text, '') from audit_entry), '') as text
     from forge_account`,
  );
  expect(rows[0]?.text).not.toContain(ada.token);
  expect(rows[0]?.text).not.toContain(Buffer.from(ada.token).toString("hex"));
});

describe.each<[Hook["kind"], string, string?]>([
  ["github", "/api/v3"],
  ["gitlab", "/api/v4"],
  ["gitea", "/api/v1"],
  ["bitbucket", "/2.0", "ada@acme.example"],
  ["bitbucketDataCenter", "/rest/api/latest"],
  ["azure", ""],
])("on %s", (kind, api, username) => {
  it("knows the account by the id that deliveries name", async () => {
    const webUrl = kind === "azure" ? `${forge.url}/acme` : forge.url;
    known = [{ settings: { kind, webUrl: forge.url, apiUrl: `${forge.url}${api}` }, isOwn: true }];
    const name = `told-by-${kind.toLowerCase()}`;
    await forge.createRepository("acme", name, { "a.txt": "a" });
    await forge.commit("acme", name, "work", { "a.txt": "b" });
    forge.propose("acme", name, { number: 1, head: "work" });
    await connect(await addSomeone(), { webUrl, ...(username !== undefined && { username }) });
    const { told } = forge.happenings(kind).say(forge.place("acme", name), 1, { by: "ada", body: "Words" });
    const { headers = {}, body: payload = "" } = deliveryOf({ kind, secret: "s" }, told) ?? {};
    const lowered = Object.fromEntries(Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value]));
    const { events } = readerOf(kind).read({ headers: lowered, body: Buffer.from(payload) });
    const { comment } = forgeEventSchema.parse(events[0]?.event);
    const { rows } = await app.database.pool.query<{ id: string }>("select forge_user_id as id from forge_account");
    expect(rows).toEqual([{ id: comment?.author?.id }]);
    expect(rows[0]?.id).toMatch(/./u);
  });
});

it("answers a repeated creation with the same account", async () => {
  const { key } = await addSomeone();
  const headers = { "Idempotency-Key": "once" };
  const [first, second] = [
    await app.post("/account/create", body(), { key, headers }),
    await app.post("/account/create", body(), { key, headers }),
  ];
  expect(second.body).toEqual(first.body);
  expect(second.headers["idempotent-replayed"]).toBe("true");
});

describe("refuses", () => {
  it.each<[string, () => object, RegExp]>([
    [
      "an address of no known forge",
      () => ({ webUrl: "https://elsewhere.example" }),
      /^webUrl: no forge .* send one of http/u,
    ],
    ["no address", () => ({ webUrl: "github" }), /^webUrl:? must be an https/u],
    ["an address with a credential", () => ({ webUrl: "https://a:b@github.com" }), /^webUrl:? must not contain/u],
    ["a token with a space", () => ({ token: "a b" }), /^token:? must be printable/u],
    [
      "a token that the forge does not know",
      () => ({ token: "wrong" }),
      /^token: missing a valid token: .* Make a new/u,
    ],
    ["a name beside a token of GitHub", () => ({ username: "ada" }), /^username: is for Bitbucket only/u],
  ])("%s, naming the field", async (_, over, problem) => {
    const { status, body: answer } = await app.post("/account/create", body(over()), await addSomeone());
    expect([status, answer.error]).toEqual([400, expect.stringMatching(problem)]);
  });

  it("a token without the scope to open pull requests, naming it with its reason, and saves nothing", async () => {
    const person = await addSomeone();
    forge.setScopes("read:org");
    const { status, body: answer } = await app.post("/account/create", body(), person);
    expect([status, answer.error]).toEqual([
      400,
      expect.stringMatching(/^token: missing repo: Pull requests can't be opened without it\. Add the scope/u),
    ]);
    expect((await app.get("/account/list", person)).body.accounts).toEqual([]);
  });

  it("a token of which the forge does not say whose it is", async () => {
    known = [{ settings: { kind: "gitea", webUrl: forge.url, apiUrl: `${forge.url}/api/v1` }, isOwn: true }];
    forge.setGiteaScopes(["write:repository"]);
    const { body: answer } = await app.post("/account/create", body(), await addSomeone());
    expect(answer.error).toMatch(/^token: missing read:user: The forge does not say whose/u);
  });

  it("to send a token to the other host that an organization's connection names", async () => {
    const settings = { kind: "github", webUrl: forge.url, apiUrl: "https://collects.example/api/v3" } as const;
    known = [{ settings, isOwn: true }];
    const { status, body: answer } = await app.post("/account/create", body(), await addSomeone());
    expect([status, answer.error]).toEqual([
      400,
      expect.stringMatching(/^webUrl: .*collects\.example.*ask the operator/u),
    ]);
  });

  it("a second one for the same address", async () => {
    const person = await addSomeone();
    await connect(person);
    const { status, body: answer } = await app.post("/account/create", body(), person);
    expect([status, answer.error]).toEqual([409, expect.stringMatching(/^webUrl: you have an account/u)]);
  });

  it("a caller that is no user, as a key without an owner", async () => {
    const { status, body: answer } = await app.post("/account/create", body());
    expect([status, answer.error]).toEqual([403, expect.stringMatching(/sign in/u)]);
  });
});

it("takes a token that can only open pull requests, with what the service's own account does alone left out", async () => {
  forge.setScopes(null);
  forge.setGranted(["pull_requests"]);
  await forge.createRepository("acme", "fine", { "a.txt": "a" });
  try {
    expect((await connect(await addSomeone())).health).toMatchObject({ state: "ok", problems: [] });
  } finally {
    forge.setGranted(null);
  }
});

it("shows an account only to its person, and only they can change or delete it", async () => {
  const owner = await addSomeone();
  const { id } = await connect(owner);
  for (const other of [await addSomeone(), await addSomeone(["admin"])]) {
    expect((await app.get("/account/list", other)).body.accounts).toEqual([]);
    const answers = [
      await app.get(`/account/${id}`, other),
      await app.post(`/account/${id}/update`, { token: ada.token }, other),
      await app.post(`/account/${id}/check`, {}, other),
      await app.post(`/account/${id}/delete`, {}, other),
    ];
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
  }
  expect((await app.get(`/account/${id}`, owner)).status).toBe(200);
});

it("deletes an account with its token, also for a person who may only read by now", async () => {
  const person = await addSomeone();
  const { id } = await connect(person);
  const reader = await createKey(app.database, app.organizationId, {
    name: "reader",
    scopes: ["read"],
    userId: person.userId,
  });
  expect((await app.post(`/account/${id}/delete`, {}, { key: reader.key })).status).toBe(403);
  expect((await app.post(`/account/${id}/delete`, {}, person)).status).toBe(200);
  expect((await app.database.pool.query("select from forge_account")).rowCount).toBe(0);
});

it("is erased with the person, and in no hand of a person who is disabled", async () => {
  const person = await addSomeone();
  const { id } = await connect(person);
  const { database, organizationId } = app;
  const session = await addSession(database, organizationId, { requestedBy: person.userId });
  const request = { organizationId, sessionId: session.id };
  const used = () => openAccountsOfRequester(database, vault, request, session.id);
  expect(await used()).toMatchObject([{ id, token: ada.token, refused: null, user: { name: person.name } }]);
  await updateUser(database, organizationId, person.userId, { disabled: true });
  expect(await used()).toEqual([]);
  await eraseUser(database, organizationId, person.userId);
  expect((await database.pool.query("select from forge_account")).rowCount).toBe(0);
});

it("is sealed anew with the other secrets when the master key is rotated", async () => {
  const person = await addSomeone();
  const { id } = await connect(person);
  const newKey = randomBytes(32).toString("base64");
  await rotateMasterKey(app.database, createVault(environmentKeyring(`${newKey},${masterKey}`)));
  const rotated = createVault(environmentKeyring(newKey));
  expect(await openAccount(app.database, rotated, person.owner, id)).toMatchObject({ token: ada.token });
  expect((await openAccount(app.database, vault, person.owner, id)).token).toBeInstanceOf(Error);
});

describe("an account that the forge refused", () => {
  async function refused(repository: boolean) {
    const person = await addSomeone();
    const { database, organizationId } = app;
    const { id } = await connect(person);
    const { body: made } = await app.post("/repository/create", {
      url: `https://git.example.com/acme/r${(count += 1)}`,
    });
    const session = await addSession(database, organizationId, { requestedBy: person.userId });
    const used = async (repositoryId = made.id) =>
      (await openAccountsOfRequester(database, vault, { organizationId, sessionId: session.id }, repositoryId))[0];
    const first = await used();
    if (first === undefined) throw new Error("there is no account");
    await noteAccountRefusal(database, first, { words: "no, never", repositoryId: repository ? made.id : null });
    const shown = async () => (await app.get(`/account/${id}`, person)).body.health;
    return { person, id, used, shown, first };
  }

  it("altogether is broken and not used, until its token is replaced", async () => {
    const { person, id, used, shown } = await refused(false);
    expect(await shown()).toMatchObject({ state: "broken", problems: [{ missing: "a valid token", essential: true }] });
    expect((await used())?.refused).toContain("no, never");
    await app.post(`/account/${id}/update`, { token: ada.token }, person);
    expect(await shown()).toMatchObject({ state: "ok", problems: [] });
    expect((await used())?.refused).toBeNull();
  });

  it("on one repository is used on others, and there again once it was checked", async () => {
    const { person, id, used, shown } = await refused(true);
    expect(await shown()).toMatchObject({
      state: "degraded",
      problems: [{ missing: expect.stringMatching(/^pull requests on /u) as string, essential: false }],
    });
    expect((await used())?.refused).toBe("no, never");
    expect((await used(crypto.randomUUID()))?.refused).toBeNull();
    await app.post(`/account/${id}/check`, {}, person);
    expect((await used())?.refused).toBeNull();
  });

  it("with a token that was replaced meanwhile is none of the new one's business", async () => {
    const { person, id, used, first } = await refused(true);
    await app.post(`/account/${id}/update`, { token: ada.token }, person);
    await noteAccountRefusal(app.database, first, { words: "late", repositoryId: null });
    expect((await used())?.refused).toBeNull();
  });
});
