import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SignInIdentity } from "../../src/domain/people/user.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { exchangeCode } from "../../src/store/oauth/grants.ts";
import { inviteUser } from "../../src/store/people/invitations.ts";
import { createBrowserSession, createLoginLink } from "../../src/store/people/logins.ts";
import { findOrganization } from "../../src/store/people/organizations.ts";
import { hashOf } from "../../src/store/people/tokens.ts";
import { updateUser } from "../../src/store/people/users.ts";
import { addPerson, addSession, identityOf, signInBrowser, signInUser } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { createTestApp, type Call, type TestApp } from "./app.ts";

let api: TestApp;
let count = 0;
/** The name of an organization that there is not. */
const fresh = (): string => `team ${(count += 1)}`;

beforeAll(async () => {
  api = await createTestApp();
});
afterAll(() => api?.close());

/** A new organization with its admin key. */
async function made(name = fresh()): Promise<{ readonly id: string; readonly name: string; readonly key: string }> {
  const { status, body } = await api.post("/organization/create", { name });
  expect([status, body.invitation]).toEqual([200, null]);
  return { id: body.organization.id, name, key: body.adminKey };
}

const personOf = (subject: string): SignInIdentity => identityOf(subject, `${subject}@example.com`);

/** Whose browser the provider signed in to an organization. */
async function browserOf(organizationId: string, userId: string, issuer?: string): Promise<Call> {
  const cookie = await signInBrowser(api.database, organizationId, userId, issuer);
  return { key: null, headers: { cookie: `offstage_session=${cookie}` } };
}

describe("an organization that an admin of the server creates", () => {
  test("has an admin key, settings that its admin can change, and nothing of the others", async () => {
    await addSession(api.database, api.organizationId);
    const { id, name, key } = await made();
    const settings = await api.get("/organization", { key });
    expect(settings.body).toEqual({
      ...(await api.get("/organization")).body,
      id,
      name,
      usesServerForges: false,
    });
    expect((await api.post("/organization/update", { monthlyBudgetUsd: 7 }, { key })).body).toMatchObject({
      id,
      monthlyBudgetUsd: 7,
    });
    expect((await api.get("/organization")).body.monthlyBudgetUsd).toBeNull();
    expect((await api.get("/session/list", { key })).body.sessions).toEqual([]);
    expect((await api.get("/key/list", { key })).body.keys).toMatchObject([{ name: "first admin key" }]);
    const session = await api.post("/session/create", { prompt: "theirs" }, { key });
    expect(session.status).toBe(200);
    expect((await api.get(`/session/${session.body.id}`)).status).toBe(404);
  });

  test("uses the server's ssh keys and disk, and its credentials of forges, only if an admin of the server says so", async () => {
    const { id, key } = await made();
    const create = (url: string) =>
      api.post("/session/create", { prompt: "x", repositories: [url], queueRightAway: false }, { key });
    for (const url of ["git@github.com:acme/shop", "ssh://git@git.example/acme/shop"]) {
      const answer = await create(url);
      expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining("the server's own ssh keys")]);
      expect((await api.post("/repository/create", { url }, { key })).status).toBe(400);
    }
    expect((await create("https://github.com/acme/shop")).status).toBe(200);
    const configured = { kind: "github", credential: { type: "configured" } };
    expect(await api.post("/connection/create", configured, { key })).toMatchObject({
      status: 400,
      body: {
        error: expect.stringMatching(/^credential: this organization does not use the server's access/u) as string,
      },
    });
    // Nobody of the organization itself can.
    await api.post("/organization/update", { usesServerForges: true }, { key });
    expect((await api.get("/organization", { key })).body.usesServerForges).toBe(false);
    expect((await api.post(`/organization/${id}/update`, { usesServerForges: true }, { key })).status).toBe(403);
    const changed = await api.post(`/organization/${id}/update`, { usesServerForges: true });
    expect(changed).toMatchObject({ status: 200, body: { id, usesServerForges: true } });
    expect((await create("git@github.com:acme/shop")).status).toBe(200);
    await api.post(`/organization/${id}/update`, { usesServerForges: false });
    const again = await create("git@github.com:acme/shop");
    expect(again.status).toBe(400);
    const lent = await api.post("/organization/create", { name: fresh(), usesServerForges: true });
    expect(lent.body.organization.usesServerForges).toBe(true);
    expect((await api.post(`/organization/${crypto.randomUUID()}/update`, { usesServerForges: true })).status).toBe(
      404,
    );
  });

  test("has a first admin who was invited, whom the link signs in, and no key", async () => {
    const admin = { name: "Ada", email: "ada@example.com" };
    const { body } = await api.post("/organization/create", { name: fresh(), admin });
    expect(body).toMatchObject({
      adminKey: null,
      organization: { members: 1, sessions: 0, lastSessionAt: null },
      invitation: { user: { ...admin, role: "admin", lastSignInAt: null }, mailedTo: admin.email },
    });
    const token = new URL(body.invitation.url).hash.slice(1);
    const login = await api.post("/login/create", { token }, { key: null });
    expect([login.status, login.body.organizationId]).toEqual([200, body.organization.id]);
  });

  test("is listed with how much it is used, the newest first, until it is erased", async () => {
    const [first, second] = [await made(), await made()];
    await addSession(api.database, first.id);
    const { body } = await api.get("/organization/list?limit=2");
    expect(body.organizations).toMatchObject([
      { id: second.id, name: second.name, members: 0, sessions: 0, lastSessionAt: null },
      { id: first.id, name: first.name, sessions: 1, lastSessionAt: expect.any(String) as string },
    ]);
    const next = await api.get(`/organization/list?limit=100&cursor=${body.nextCursor}`);
    expect(next.body.organizations.at(-1)).toMatchObject({ id: api.organizationId, name: "default" });

    const wrong = await api.post(`/organization/${first.id}/erase`, { name: second.name });
    expect([wrong.status, wrong.body.error]).toEqual([
      400,
      expect.stringMatching(/^name: must be the organization's/u),
    ]);
    expect((await api.post(`/organization/${first.id}/erase`, { name: first.name })).status).toBe(200);
    expect((await api.get("/me", { key: first.key })).status).toBe(401);
    const left = (await api.get("/organization/list")).body.organizations;
    const ids = new Set(left.map(({ id }: { id: string }) => id));
    expect([ids.has(first.id), ids.has(second.id)]).toEqual([false, true]);
    expect((await api.post(`/organization/${crypto.randomUUID()}/erase`, { name: "x" })).status).toBe(404);
    expect((await api.post(`/organization/${api.organizationId}/erase`, { name: "default" })).status).toBe(409);
  });

  test("is being erased once, however often that is asked for", async () => {
    const { id, name } = await made();
    const first = await api.post(`/organization/${id}/erase`, { name });
    const again = await api.post(`/organization/${id}/erase`, { name: `erased ${id}` });
    expect([again.status, again.body]).toEqual([200, first.body]);
  });

  test("is not there any more for whoever names it while it is erased: neither for the server's admins nor for a command or a program", async () => {
    const { id, name, key } = await made();
    const change = () => api.post(`/organization/${id}/update`, { usesServerForges: true });
    const challenge = "c".repeat(43);
    await api.database.pool.query(
      `insert into oauth_request (hash, code_hash, client_id, client_name, redirect_uri, scopes, granted, resource, challenge, issuer,
         expires_at, organization_id)
       values ($1, $1, 'editor', 'An editor', 'http://127.0.0.1/', '{read}', '{read}', 'api', $2, 'x', now() + interval '1 hour', $3)`,
      [hashOf(`code of ${id}`), challenge, id],
    );
    expect((await change()).status).toBe(200);
    await api.post(`/organization/${id}/erase`, { name });
    expect((await change()).status).toBe(404);
    const unknown = await api.post(`/organization/${crypto.randomUUID()}/update`, { usesServerForges: true });
    expect((await change()).body.error.replace(id, "")).toBe(unknown.body.error.replace(/[\da-f-]{36}/u, ""));
    // Commands on the server's machine find it by its name, which is another by now.
    expect([await findOrganization(api.database, name), await findOrganization(api.database, `erased ${id}`)]).toEqual([
      null,
      null,
    ]);
    const exchange = { code: `code of ${id}`, clientId: "editor", redirectUri: "http://127.0.0.1/" };
    expect(await exchangeCode(api.database, { ...exchange, challenge, resource: "api" }, 30)).toBeNull();
    const asked = await Promise.all([
      api.get("/organization", { key }),
      api.get("/user/list", { key }),
      api.post("/key/create", { name: "late", scopes: ["admin"] }, { key }),
      api.post("/user/invite", { name: "Late", role: "admin" }, { key }),
      api.post("/secret/create", { name: "LATE", value: "late" }, { key }),
      api.post("/connection/create", { kind: "gitea", webUrl: "https://late.example" }, { key }),
      api.post("/automation/create", { name: "Late", macro: "late", instructions: "x" }, { key }),
      api.post("/session/create", { prompt: "late" }, { key }),
    ]);
    expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([401]));
  });

  test("lets nobody in from the begin of its erasure on, also by what a request made that was under way", async () => {
    const { id, name, key } = await made();
    const statusOf = async (token: string) => (await api.post("/login/create", { token }, { key: null })).status;
    await api.post(`/organization/${id}/erase`, { name });
    const late = await createKey(api.database, id, { name: "late", scopes: ["admin"] });
    for (const each of [key, late.key]) expect((await api.get("/me", { key: each })).status).toBe(401);
    const { token } = await inviteUser(api.database, id, { name: "Late", role: "admin" }, null);
    const link = await createLoginLink(api.database, id, { scopes: ["admin"], ttlMs: 60_000 });
    expect([await statusOf(token), await statusOf(link)]).toEqual([401, 401]);
    const person = await addPerson(api.database, id, { name: "Late", role: "admin" });
    expect((await api.get("/me", await browserOf(id, person.userId))).status).toBe(401);
  });

  test.each([
    ["default", 400],
    ["Default", 400],
    [`erased ${crypto.randomUUID()}`, 400],
    [" team", 400],
    ["te\u0000am", 400],
    ["te\u001Bam", 400],
    ["", 400],
    ["x".repeat(101), 400],
    ["TEAM ONE", 409],
  ])("has no name such as %j", async (name, status) => {
    await api.post("/organization/create", { name: "Team One" });
    const answer = await api.post("/organization/create", { name });
    expect([answer.status, answer.body.error]).toEqual([status, expect.stringMatching(/^name[: ]/u)]);
  });

  test("is one, if it is asked for twice at once", async () => {
    const name = fresh();
    const both = await Promise.all([1, 2].map(() => api.post("/organization/create", { name })));
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  });

  test("is in the audit log of the server", async () => {
    const { id } = await made();
    const { body } = await api.get("/audit/list?action=createOrganization&limit=1");
    expect(body.entries).toMatchObject([{ target: id, status: 200 }]);
  });
});

describe("what concerns the whole server", () => {
  /** Each of these as somebody asks for it, who may not. */
  const refusals = async (call: Call): Promise<number[]> => {
    const other = await made();
    const answers = [
      await api.get("/system/health", call),
      await api.get("/organization/list", call),
      await api.post("/organization/create", { name: fresh() }, call),
      await api.post(`/organization/${other.id}/update`, { usesServerForges: true }, call),
      await api.post(`/organization/${other.id}/erase`, { name: other.name }, call),
    ];
    expect((await api.get("/me", { key: other.key })).status).toBe(200);
    return answers.map(({ status }) => status);
  };
  const isServerAdmin = async (call: Call): Promise<unknown> => (await api.get("/me", call)).body.isServerAdmin;

  test("is for admins of the organization default, by whatever they are known", async () => {
    expect(await isServerAdmin({})).toBe(true);
    const ada = await signInUser(api.database, api.organizationId, personOf("server-admin"), "admin");
    const browser = await browserOf(api.organizationId, ada?.id ?? "");
    expect(await isServerAdmin(browser)).toBe(true);
    expect((await api.get("/organization/list", browser)).status).toBe(200);
  });

  test("is not for an admin of another organization, by key, by browser, or as the first who was invited", async () => {
    const { id, key } = await made();
    expect([await refusals({ key }), await isServerAdmin({ key })]).toEqual([[403, 403, 403, 403, 403], false]);
    const admin = await signInUser(api.database, id, personOf("other-admin"), "admin");
    const browser = await browserOf(id, admin?.id ?? "", "https://id.example");
    expect([await refusals(browser), await isServerAdmin(browser)]).toEqual([[403, 403, 403, 403, 403], false]);
    const { body } = await api.post("/organization/create", { name: fresh(), admin: { name: "Invited" } });
    const token = new URL(body.invitation.url).hash.slice(1);
    const { headers } = await api.post("/login/create", { token }, { key: null });
    const cookie = /offstage_session=[^;]+/u.exec(String(headers["set-cookie"]))?.[0] ?? "";
    const invited = { key: null, headers: { cookie } };
    expect([await refusals(invited), await isServerAdmin(invited)]).toEqual([[403, 403, 403, 403, 403], false]);
  });

  test("is not for a member of the organization default, nor for an admin of it who is a member, disabled or gone by now", async () => {
    const member = await signInUser(api.database, api.organizationId, personOf("member"), "member");
    expect(await refusals(await browserOf(api.organizationId, member?.id ?? ""))).toEqual([403, 403, 403, 403, 403]);
    await signInUser(api.database, api.organizationId, personOf("the-other-admin"), "admin");
    const admin = await signInUser(api.database, api.organizationId, personOf("demoted"), "admin");
    const userId = admin?.id ?? "";
    const browser = await browserOf(api.organizationId, userId);
    const { key } = await createKey(api.database, api.organizationId, { name: "theirs", scopes: ["admin"], userId });
    for (const call of [browser, { key }]) expect(await isServerAdmin(call)).toBe(true);
    await updateUser(api.database, api.organizationId, userId, { role: "member" });
    for (const call of [browser, { key }]) {
      expect([await refusals(call), await isServerAdmin(call)]).toEqual([[403, 403, 403, 403, 403], false]);
    }
    await updateUser(api.database, api.organizationId, userId, { role: "admin" });
    for (const call of [browser, { key }]) expect(await isServerAdmin(call)).toBe(true);
    expect((await api.post(`/user/${userId}/erase`, {})).status).toBe(200);
    for (const call of [browser, { key }]) expect(await refusals(call)).toEqual([401, 401, 401, 401, 401]);
  });
});

describe("a browser that switches between organizations", () => {
  let here: string;
  let there: Awaited<ReturnType<typeof made>>;
  let subject: string;
  /** Signed in by the provider, in the organization default. */
  let browser: Call;

  beforeEach(async () => {
    here = api.organizationId;
    there = await made();
    subject = `person-${there.id}`;
    const user = await signInUser(api.database, here, personOf(subject), "member");
    browser = await browserOf(here, user?.id ?? "", "https://id.example");
  });

  const account = async (organizationId: string, more: Partial<SignInIdentity> = {}): Promise<string> =>
    (await signInUser(api.database, organizationId, { ...personOf(subject), ...more }, "admin"))?.id ?? "";
  const switchTo = (organizationId: string, call = browser) => api.post("/login/switch", { organizationId }, call);
  const cookieOf = ({ headers }: Awaited<ReturnType<typeof switchTo>>): Call => ({
    key: null,
    headers: { cookie: /offstage_session=[^;]+/u.exec(String(headers["set-cookie"]))?.[0] ?? "" },
  });
  const offered = async (call = browser): Promise<string[]> =>
    (await api.get("/me", call)).body.organizations.map(({ id }: { id: string }) => id).toSorted();

  test("is signed in as its person there, until the end of the same sign-in, and not here any more", async () => {
    const userId = await account(there.id);
    await api.database.pool.query(
      "update browser_session set created_at = now() - interval '20 days', expires_at = now() + interval '10 days'",
    );
    const me = await api.get("/me", browser);
    expect(me.body.organizations.toSorted()).toEqual([
      { id: here, name: "default", role: "member" },
      { id: there.id, name: there.name, role: "admin" },
    ]);
    const before = (await api.get("/login/list", browser)).body.logins.find(
      ({ current }: { current: boolean }) => current,
    );
    const switched = await switchTo(there.id);
    expect([switched.status, switched.body]).toEqual([200, { organizationId: there.id }]);
    expect(String(switched.headers["set-cookie"])).toMatch(/HttpOnly; SameSite=Strict/u);
    const now = cookieOf(switched);
    expect((await api.get("/me", now)).body).toMatchObject({ orgId: there.id, userId, isServerAdmin: false });
    const after = (await api.get("/login/list", now)).body.logins;
    expect(after).toEqual([
      expect.objectContaining({
        current: true,
        userId,
        address: "192.0.2.1",
        userAgent: "A browser",
        createdAt: before.createdAt,
        expiresAt: before.expiresAt,
      }),
    ]);
    expect((await api.get("/me", browser)).status).toBe(401);
    const back = await switchTo(here, now);
    expect((await api.get("/me", cookieOf(back))).body).toMatchObject({
      orgId: here,
      scopes: ["trigger", "read", "write"],
    });
  });

  test("is in the audit logs of both", async () => {
    const userId = await account(there.id);
    expect((await switchTo(there.id)).status).toBe(200);
    // It is written shortly after the answer.
    const came = await waitFor(async () => {
      const { entries } = (await api.get("/audit/list?action=switchOrganization", { key: there.key })).body;
      return entries.length > 0 && entries;
    }, "the entry is there");
    expect(came).toMatchObject([{ actor: "user", userId, status: 200 }]);
    const left = await api.get("/audit/list?action=leaveOrganization&limit=1");
    expect(left.body.entries).toMatchObject([{ actor: "user", userName: subject, target: null, status: 200 }]);
  });

  test.each([
    ["no account is", () => Promise.resolve()],
    ["the same address is another person's of the provider", () => account(there.id, { subject: "another" })],
    ["the same person is another provider's", () => account(there.id, { issuer: "https://other.example" })],
    [
      "an invitation waits that nobody took up",
      () => api.post("/user/invite", { name: "x", role: "admin", email: personOf(subject).email }, { key: there.key }),
    ],
    [
      "the person's account is disabled",
      async () => updateUser(api.database, there.id, await account(there.id), { disabled: true }),
    ],
    [
      "the person's account was erased",
      async () => api.post(`/user/${await account(there.id)}/erase`, {}, { key: there.key }),
    ],
    [
      "the person is let in no more",
      async () =>
        api.database.pool.query("update user_account set refused_at = now() where id = $1", [await account(there.id)]),
    ],
    [
      "the organization is being erased",
      async () => {
        await account(there.id);
        await api.post(`/organization/${there.id}/erase`, { name: there.name });
        // As if somebody had been enabled meanwhile.
        await api.database.pool.query("update user_account set disabled_at = null where organization_id = $1", [
          there.id,
        ]);
      },
    ],
  ])("gets nowhere where %s", async (_, prepare) => {
    await account(here, { subject: "another admin" });
    await account(there.id, { subject: "an admin there" });
    await prepare();
    expect(await offered()).toEqual([here]);
    const answer = await switchTo(there.id);
    expect([answer.status, answer.headers["set-cookie"]]).toEqual([404, undefined]);
    expect((await api.get("/me", browser)).body.orgId).toBe(here);
  });

  test("gets nowhere if a link signed it in, also once the provider knows the person", async () => {
    await account(there.id);
    const { body } = await api.post("/user/invite", { name: "x", role: "viewer", email: "link@example.com" });
    const byLink = await browserOf(here, body.user.id);
    expect((await switchTo(there.id, byLink)).status).toBe(404);
    // Whoever made the link could have opened it themselves, before the person signed in by the provider.
    await api.database.pool.query(
      "delete from browser_session where user_id in (select id from user_account where subject = $1)",
      [subject],
    );
    await api.database.pool.query(
      "update user_account set subject = 'moved' where organization_id = $1 and subject = $2",
      [here, subject],
    );
    await api.database.pool.query("update user_account set issuer = 'https://id.example', subject = $2 where id = $1", [
      body.user.id,
      subject,
    ]);
    expect([(await switchTo(there.id, byLink)).status, await offered(byLink)]).toEqual([404, []]);
    expect((await switchTo(there.id, await browserOf(here, body.user.id, "https://id.example"))).status).toBe(200);
  });

  test("gets nowhere by a key, not even of the same person, or by a key beside its cookie", async () => {
    await account(there.id);
    const { key } = await createKey(api.database, here, {
      name: "k",
      scopes: ["admin"],
      userId: (await api.get("/me", browser)).body.userId,
    });
    expect((await switchTo(there.id, { key })).status).toBe(403);
    expect((await switchTo(there.id, { key, headers: browser.headers ?? {} })).status).toBe(403);
    expect((await api.get("/me", { key })).body.organizations).toEqual([]);
    const principal = {
      organizationId: here,
      keyId: null,
      userId: null,
      scopes: ["admin" as const],
      automationIds: null,
    };
    const token = await createBrowserSession(api.database, principal, { days: 1, address: null, userAgent: null });
    const nobody = { key: null, headers: { cookie: `offstage_session=${token}` } };
    expect([(await switchTo(there.id, nobody)).status, await offered(nobody)]).toEqual([404, []]);
  });

  test("once, of two at once", async () => {
    await account(there.id);
    const both = await Promise.all([switchTo(there.id), switchTo(there.id)]);
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, expect.toBeOneOf([401, 404])]);
  });

  test("not because another site asks", async () => {
    await account(there.id);
    const answer = await switchTo(there.id, {
      key: null,
      headers: { ...browser.headers, origin: "https://evil.example" },
    });
    expect([answer.status, answer.body.error]).toEqual([403, "this request came from another site"]);
    expect(await offered()).toEqual([here, there.id].toSorted());
  });
});
