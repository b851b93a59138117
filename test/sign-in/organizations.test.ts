import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOidc } from "../../src/sign-in/oidc.ts";
import { createTestApp, type Call, type TestApp } from "../api/app.ts";
import { cookieIn, signInAt } from "./browser.ts";
import { startProvider, type TestProvider } from "./oidc-provider.ts";

// One person of the provider in several organizations: where a sign-in begins, and where it can go on.

let provider: TestProvider;
let api: TestApp;
const domains: string[] = [];

beforeAll(async () => {
  provider = await startProvider({
    alice: { name: "Alice", email: "alice@company.example", email_verified: true },
    guest: { name: "Guest", email: "Guest@Elsewhere.example", email_verified: true },
    // Another person, with an address that the provider has not verified.
    mallory: { name: "Mallory", email: "guest@elsewhere.example", email_verified: false },
  });
  provider.serve(["http://offstage.test/login/oidc/callback"]);
  api = await createTestApp({
    signInPolicy: { admins: [], domains, githubOrganizations: [], defaultRole: "member" },
    signInMethods: [createOidc({ ...provider, name: "Company", trustEmail: false })],
  });
});

beforeEach(async () => {
  domains.splice(0, domains.length, "company.example");
  // Nobody but the organization default and its key.
  await api.database.pool.query(
    `delete from browser_session; delete from invitation_mail; delete from login_link; delete from audit_entry; delete from user_account;
     delete from api_key where organization_id <> '${api.organizationId}'; delete from organization where name <> 'default'`,
  );
});

afterAll(async () => {
  await api?.close();
  await provider?.close();
});

const as = (session: string | null): Call => ({ key: null, headers: { cookie: session ?? "" } });
const me = async (session: string | null) => (await api.get("/me", as(session))).body;
const organizationsOf = async (session: string | null): Promise<string[]> =>
  (await me(session)).organizations.map(({ name }: { name: string }) => name);

async function create(name: string): Promise<{ readonly id: string; readonly key: string }> {
  const { body } = await api.post("/organization/create", { name });
  return { id: body.organization.id, key: body.adminKey };
}

const invite = async (key: string, email: string, role = "member") =>
  (await api.post("/user/invite", { name: "Invited", email, role }, { key })).body;

async function switchTo(session: string | null, organizationId: string): Promise<string | null> {
  const { status, headers } = await api.post("/login/switch", { organizationId }, as(session));
  expect(status).toBe(200);
  return cookieIn(headers, "offstage_session");
}

describe("a sign-in at the provider", () => {
  it("begins where the person was invited, who is of no other organization, and offers nothing else", async () => {
    const team = await create("team");
    const invited = await invite(team.key, "guest@elsewhere.example", "admin");
    const { session, to } = await signInAt(api, "guest");
    expect([to, await me(session)]).toEqual([
      "/",
      expect.objectContaining({
        orgId: team.id,
        userId: invited.user.id,
        isServerAdmin: false,
        organizations: [{ id: team.id, name: "team", role: "admin" }],
      }),
    ]);
    const { users } = (await api.get("/user/list")).body;
    expect(users).toEqual([]);
  });

  it("of somebody with an organization begins there, and leads to where they see that they were invited elsewhere", async () => {
    await signInAt(api, "alice");
    const team = await create("team");
    await invite(team.key, "alice@company.example", "viewer");
    const { session, to } = await signInAt(api, "alice");
    expect([to, (await me(session)).orgId]).toEqual(["/settings#organizations", api.organizationId]);
    expect(await organizationsOf(session)).toEqual(["default", "team"]);
    // Whoever was on their way to something gets there.
    const other = await create("other");
    await invite(other.key, "alice@company.example");
    expect((await signInAt(api, "alice", "/sessions/x")).to).toBe("/sessions/x");
    expect((await signInAt(api, "alice")).to).toBe("/");
  });

  it("begins where the person was last, by a sign-in or a switch, with their role there", async () => {
    const team = await create("team");
    await invite(team.key, "alice@company.example", "viewer");
    // Both are new to her: the one that somebody invited her to.
    const first = await signInAt(api, "alice");
    expect(await me(first.session)).toMatchObject({ orgId: team.id, scopes: ["read"] });
    const members = (await api.get("/user/list")).body.users;
    expect(members).toMatchObject([
      { name: "Alice", email: "alice@company.example", lastSignInAt: null, role: "member" },
    ]);
    const switched = await switchTo(first.session, api.organizationId);
    expect((await me(switched)).scopes).toEqual(["trigger", "read", "write"]);
    expect((await me((await signInAt(api, "alice")).session)).orgId).toBe(api.organizationId);
    await switchTo(switched, team.id);
    expect((await me((await signInAt(api, "alice")).session)).orgId).toBe(team.id);
  });

  it("takes up no invitation to an address that the provider has not verified, nor one of another person", async () => {
    const team = await create("team");
    const invited = await invite(team.key, "guest@elsewhere.example");
    expect((await signInAt(api, "mallory")).to).toBe("/sign-in?problem=refused");
    expect((await api.get("/user/list", { key: team.key })).body.users).toEqual([invited.user]);
    await signInAt(api, "guest");
    // The address is somebody's by now: what another one has of it gives them nothing.
    const other = await create("other");
    await invite(other.key, "mallory@elsewhere.example");
    const { session } = await signInAt(api, "guest");
    expect(await organizationsOf(session)).toEqual(["team"]);
  });

  it("goes past an organization that disabled the person, and is refused if each of theirs did", async () => {
    const [team, other] = [await create("team"), await create("other")];
    const invited = await invite(team.key, "guest@elsewhere.example");
    const elsewhere = await invite(other.key, "guest@elsewhere.example");
    const disable = (id: string, disabled: boolean, key: string) =>
      api.post(`/user/${id}/update`, { disabled }, { key });
    const { session } = await signInAt(api, "guest");
    expect(await organizationsOf(session)).toEqual(["other", "team"]);
    await disable(elsewhere.user.id, true, other.key);
    const again = await signInAt(api, "guest");
    expect([(await me(again.session)).orgId, await organizationsOf(again.session)]).toEqual([team.id, ["team"]]);
    await disable(invited.user.id, true, team.key);
    expect((await signInAt(api, "guest")).to).toBe("/sign-in?problem=disabled");
    await disable(invited.user.id, false, team.key);
    expect((await me((await signInAt(api, "guest")).session)).orgId).toBe(team.id);
  });

  it("goes past an organization that is being erased", async () => {
    const team = await create("team");
    await invite(team.key, "alice@company.example");
    await signInAt(api, "alice");
    await api.post(`/organization/${team.id}/erase`, { name: "team" });
    const { session } = await signInAt(api, "alice");
    expect([(await me(session)).orgId, await organizationsOf(session)]).toEqual([api.organizationId, ["default"]]);
  });

  it("keeps somebody out of the organization default whom the operator's lists do not name any more, also by a switch", async () => {
    const team = await create("team");
    await signInAt(api, "alice");
    await invite(team.key, "alice@company.example");
    domains.pop();
    const { session } = await signInAt(api, "alice");
    expect([(await me(session)).orgId, await organizationsOf(session)]).toEqual([team.id, ["team"]]);
    const answer = await api.post("/login/switch", { organizationId: api.organizationId }, as(session));
    expect(answer.status).toBe(404);
    domains.push("company.example");
    expect(await organizationsOf((await signInAt(api, "alice")).session)).toEqual(["default", "team"]);
  });

  it("gives nobody another role, or the operator's, in an organization that is not the operator's", async () => {
    const team = await create("team");
    await invite(team.key, "alice@company.example", "viewer");
    const admins = await api.another({
      signInPolicy: { admins: ["alice@company.example"], domains: [], githubOrganizations: [], defaultRole: "viewer" },
      signInMethods: [createOidc({ ...provider, name: "Company", trustEmail: false })],
    });
    const { session } = await signInAt({ ...api, app: admins }, "alice");
    expect((await me(session)).organizations).toEqual([
      { id: api.organizationId, name: "default", role: "admin" },
      { id: team.id, name: "team", role: "viewer" },
    ]);
    expect(await me(session)).toMatchObject({ orgId: team.id, scopes: ["read"], isServerAdmin: false });
    const switched = await switchTo(session, api.organizationId);
    expect(await me(switched)).toMatchObject({ isServerAdmin: true });
  });

  it("lets no browser switch that the link of an invitation signed in before, whoever opened it", async () => {
    await signInAt(api, "alice");
    const team = await create("team");
    const invited = await invite(team.key, "alice@company.example", "admin");
    // The admin who made the link opens it.
    const token = new URL(invited.url).hash.slice(1);
    const { headers } = await api.post("/login/create", { token }, { key: null });
    const opened = cookieIn(headers, "offstage_session");
    await signInAt(api, "alice");
    expect(await me(opened)).toMatchObject({ orgId: team.id, userId: invited.user.id, organizations: [] });
    const answer = await api.post("/login/switch", { organizationId: api.organizationId }, as(opened));
    expect(answer.status).toBe(404);
  });
});
