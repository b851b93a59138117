import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { SignInPolicy } from "../../src/domain/people/user.ts";
import { createGitHubSignIn } from "../../src/sign-in/github.ts";
import { createOidc } from "../../src/sign-in/oidc.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { startGitHub, type GitHubPerson } from "./github-server.ts";
import { beginSignIn, comeBackTo, signInAt } from "./browser.ts";
import { passThrough, startProvider, type TestProvider } from "./oidc-provider.ts";

const policy: SignInPolicy = {
  admins: ["alice@company.example", "octo-admin"],
  domains: ["company.example"],
  githubOrganizations: ["company"],
  defaultRole: "member",
};

let provider: TestProvider;
let github: Awaited<ReturnType<typeof startGitHub>>;
let person: GitHubPerson;
let api: TestApp;

beforeAll(async () => {
  provider = await startProvider({
    alice: { name: "Alice", email: "alice@company.example", email_verified: true },
    bob: { name: "Bob <script>alert(1)</script>", email: "Bob@Company.example", email_verified: true },
    unverified: { name: "Eve", email: "eve@company.example", email_verified: false },
    stranger: { name: "Stranger", email: "stranger@company.example.evil.example", email_verified: true },
  });
  provider.serve(["http://offstage.test/login/oidc/callback"]);
  github = await startGitHub(() => person);
  api = await createTestApp({
    signInPolicy: policy,
    signInMethods: [
      createOidc({ ...provider, name: "Company", trustEmail: false }),
      createGitHubSignIn({
        webUrl: github.url,
        apiUrl: github.url,
        clientId: github.client.id,
        clientSecret: github.client.secret,
        asksOrganizations: true,
      }),
    ],
  });
});

beforeEach(async () => {
  person = { id: 7, login: "octo", email: "octo@elsewhere.example", verified: true, organizations: ["Company"] };
  await api.database.pool.query(
    "delete from browser_session where user_id is not null; update api_key set user_id = null; delete from user_account",
  );
});

afterAll(async () => {
  await api?.close();
  await provider?.close();
  await github?.close();
});

const begin = (method: string, next?: string) => beginSignIn(api, method, next);
const comeBack = (callback: string, cookie: string) => comeBackTo(api, callback, cookie);
const signIn = (login: string, next?: string) => signInAt(api, login, next);

async function signInByGitHub() {
  const { address, cookie } = await begin("github");
  const { headers } = await fetch(address, { redirect: "manual" });
  return comeBack(headers.get("location") ?? "", cookie);
}

const as = (session: string | null, url: string) => api.get(url, { key: null, headers: { cookie: session ?? "" } });
const users = async () => (await api.get("/user/list")).body.users;

describe("by OpenID Connect", () => {
  it("goes out with state, nonce and PKCE, and comes back signed in, to where it was going", async () => {
    const { address } = await begin("oidc");
    const asked = new URL(address).searchParams;
    expect(Object.fromEntries(asked)).toMatchObject({
      client_id: "offstage",
      response_type: "code",
      code_challenge_method: "S256",
      redirect_uri: "http://offstage.test/login/oidc/callback",
    });
    for (const name of ["state", "nonce", "code_challenge"]) expect(asked.get(name)?.length).toBeGreaterThan(40);
    const back = await signIn("alice", "/sessions/00000000-0000-4000-8000-000000000000");
    expect(back).toMatchObject({ status: 302, to: "/sessions/00000000-0000-4000-8000-000000000000" });
    const me = await as(back.session, "/me");
    expect(me.body).toMatchObject({ orgId: api.organizationId, userId: expect.any(String) as string });
  });

  it.each([
    ["alice", "admin", 200],
    ["bob", "member", 403],
  ])("makes %s, as the operator's lists say, %s", async (login, role, adminOperation) => {
    const { session } = await signIn(login);
    expect((await users())[0]).toMatchObject({ role, issuer: provider.issuer });
    expect((await as(session, "/session/list")).status).toBe(200);
    expect((await as(session, "/key/list")).status).toBe(adminOperation);
  });

  it("puts who asked on a session, signed in or by a key of their own, and finds their sessions", async () => {
    const { session } = await signIn("alice");
    const asAlice = { key: null, headers: { cookie: session ?? "" } };
    const [alice] = await users();
    const create = async (call: object): Promise<string> =>
      (await api.post("/session/create", { prompt: "x", queueRightAway: false }, call)).body.id;
    const { key } = (await api.post("/key/create", { name: "Alice's laptop" }, asAlice)).body;
    const me = {
      orgId: api.organizationId,
      userId: alice.id,
      scopes: ["trigger", "read", "write"],
      isServerAdmin: false,
      organizations: [],
    };
    expect((await api.get("/me", { key })).body).toEqual(me);
    expect((await api.get("/me")).body).toMatchObject({ userId: null });
    const hers = [await create(asAlice), await create({ key })];
    const others = await create({});
    for (const id of hers) {
      const { requestedBy } = (await api.get(`/session/${id}`)).body;
      expect(requestedBy).toEqual({ type: "user", id: alice.id, name: alice.name });
    }
    const byKey = (await api.get(`/session/${others}`)).body.requestedBy;
    expect(byKey).toMatchObject({ type: "key", name: expect.any(String) as string });
    const listed = async (query: string, call?: object): Promise<string[]> =>
      (await api.get(`/session/list?${query}`, call)).body.sessions.map(({ id }: { id: string }) => id);
    expect(await listed(`requestedBy=${alice.id}`)).toEqual(hers.toReversed());
    expect(await listed("requestedBy=me", { key: null, headers: asAlice.headers })).toEqual(hers.toReversed());
    expect(await listed(`requestedBy=${byKey.id}`)).toEqual([others]);
    expect(await listed("requestedBy=me")).toEqual([others]);
    expect((await api.get("/session/search?q=x&requestedBy=me")).body.sessions).toHaveLength(1);
  });

  it.each(["unverified", "stranger"])("refuses %s, whom no list names, and says whom to ask", async (login) => {
    const back = await signIn(login);
    expect(back).toMatchObject({ to: "/sign-in?problem=refused", session: null });
    expect(await users()).toEqual([]);
  });

  it("recognizes a person, and keeps the role that an admin gave", async () => {
    await signIn("bob");
    const [bob] = await users();
    await api.post(`/user/${bob.id}/update`, { role: "viewer" });
    const { session } = await signIn("bob");
    expect(await users()).toHaveLength(1);
    expect((await as(session, "/session/list")).status).toBe(200);
    const creating = await api.post(
      "/session/create",
      { prompt: "x" },
      { key: null, headers: { cookie: session ?? "" } },
    );
    expect(creating.status).toBe(403);
  });

  it("is in the audit log", async () => {
    await signIn("alice");
    const { body } = await api.get("/audit/list?action=signIn");
    expect(body.entries[0]).toMatchObject({
      actor: "user",
      outcome: "allowed",
      userId: (await users())[0].id,
      userName: (await users())[0].name,
    });
  });
});

describe("a sign-in that was tampered with comes to nothing", () => {
  it("in another browser than it was begun in", async () => {
    const [mine, theirs] = [await begin("oidc"), await begin("oidc")];
    const callback = await passThrough(theirs.address, "alice");
    expect(await comeBack(callback, mine.cookie)).toMatchObject({ to: "/sign-in?problem=expired", session: null });
    expect(await comeBack(callback, "")).toMatchObject({ to: "/sign-in?problem=expired", session: null });
  });

  it("the second time", async () => {
    const { address, cookie } = await begin("oidc");
    const callback = await passThrough(address, "alice");
    expect((await comeBack(callback, cookie)).session).not.toBeNull();
    expect(await comeBack(callback, cookie)).toMatchObject({ to: "/sign-in?problem=expired", session: null });
  });

  it("with a code of another sign-in", async () => {
    const [mine, theirs] = [await begin("oidc"), await begin("oidc")];
    const callback = new URL(await passThrough(mine.address, "bob"));
    const other = new URL(await passThrough(theirs.address, "alice"));
    callback.searchParams.set("code", other.searchParams.get("code") ?? "");
    expect(await comeBack(callback.href, mine.cookie)).toMatchObject({ to: "/sign-in?problem=denied", session: null });
  });

  it("with another nonce in its identity", async () => {
    const { address, cookie } = await begin("oidc");
    await api.database.pool.query("update sign_in set nonce = 'another-nonce-than-the-one-that-was-sent'");
    const callback = await passThrough(address, "alice");
    expect(await comeBack(callback, cookie)).toMatchObject({ to: "/sign-in?problem=denied", session: null });
  });

  it("with an identity that its provider did not sign", async () => {
    const { address, cookie } = await begin("oidc");
    const callback = await passThrough(address, "bob");
    provider.forgeNext({ email: "alice@company.example" });
    expect(await comeBack(callback, cookie)).toMatchObject({ to: "/sign-in?problem=denied", session: null });
  });

  it("too late", async () => {
    const { address, cookie } = await begin("oidc");
    await api.database.pool.query("update sign_in set expires_at = now() - interval '1 second'");
    const callback = await passThrough(address, "alice");
    expect(await comeBack(callback, cookie)).toMatchObject({ to: "/sign-in?problem=expired" });
  });

  it("at the callback of another method", async () => {
    const { address, cookie } = await begin("oidc");
    const callback = (await passThrough(address, "alice")).replace("/login/oidc/", "/login/github/");
    expect(await comeBack(callback, cookie)).toMatchObject({ to: "/sign-in?problem=expired", session: null });
  });

  it("if the provider says no, without a word of its own on our page", async () => {
    const { address, cookie } = await begin("oidc");
    const state = new URL(address).searchParams.get("state") ?? "";
    const query = new URLSearchParams({
      state,
      error: "access_denied",
      error_description: "<script>alert(1)</script>",
    });
    const back = await comeBack(`http://offstage.test/login/oidc/callback?${query.toString()}`, cookie);
    expect(back).toMatchObject({ to: "/sign-in?problem=denied", session: null });
  });

  it.each([
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "/sessions/../../evil",
    "/sessions?at=//evil.example",
    "javascript:alert(1)",
  ])("or leads to our own page in the place of %s", async (next) => {
    expect((await signIn("alice", next)).to).toBe("/");
  });

  it("and too many of them in a minute are not even looked at", async () => {
    const limited = await api.another({ signInMethods: [createOidc({ ...provider, name: "C", trustEmail: false })] });
    const statuses: number[] = [];
    for (let count = 0; count < 21; count += 1) {
      const { statusCode } = await limited.inject({
        method: "GET",
        url: "/login/oidc/callback?state=guess&code=guess",
      });
      statuses.push(statusCode);
    }
    expect(new Set(statuses.slice(0, 20))).toEqual(new Set([302]));
    const last = await limited.inject({ method: "POST", url: "/login/create", payload: { key: "ofs_guess" } });
    expect([statuses.at(-1), last.statusCode]).toEqual([429, 429]);
    expect(Number(last.headers["retry-after"])).toBeGreaterThan(0);
  });
});

describe("by GitHub", () => {
  it("lets in members of an organization there, by the id that no other can get", async () => {
    const { session } = await signInByGitHub();
    expect((await as(session, "/session/list")).status).toBe(200);
    expect((await users())[0]).toMatchObject({ name: "Name of octo", role: "member", email: "octo@elsewhere.example" });
    person = { ...person, login: "renamed" };
    await signInByGitHub();
    expect(await users()).toHaveLength(1);
    // Another account that took the login that is free now.
    person = { ...person, id: 8, login: "octo", organizations: [] };
    expect(await signInByGitHub()).toMatchObject({ to: "/sign-in?problem=refused" });
  });

  it("makes an admin whose login the operator named", async () => {
    person = { ...person, login: "Octo-Admin", organizations: [] };
    await signInByGitHub();
    expect((await users())[0].role).toBe("admin");
  });

  it("lets in whom an organization has that GitHub names on a later page", async () => {
    const others = Array.from({ length: 200 }, (_, index) => `other-${index}`);
    person = { ...person, organizations: [...others, "Company"] };
    const { session } = await signInByGitHub();
    expect((await as(session, "/session/list")).status).toBe(200);
    person = { ...person, id: 9, organizations: others };
    expect(await signInByGitHub()).toMatchObject({ to: "/sign-in?problem=refused" });
  });

  it("does not take an address that GitHub did not verify", async () => {
    person = { ...person, email: "x@company.example", verified: false, organizations: [] };
    expect(await signInByGitHub()).toMatchObject({ to: "/sign-in?problem=refused" });
  });
});

describe("users", () => {
  it("whom an admin disables are signed out at once, and can't come back until they are enabled", async () => {
    const { session } = await signIn("bob");
    const [bob] = await users();
    await api.post(`/user/${bob.id}/update`, { disabled: true });
    expect((await as(session, "/session/list")).status).toBe(401);
    expect((await signIn("bob")).to).toBe("/sign-in?problem=disabled");
    await api.post(`/user/${bob.id}/update`, { disabled: false });
    expect((await signIn("bob")).session).not.toBeNull();
  });

  it("have the rights of their role as it is now, not as it was when they signed in", async () => {
    const { session } = await signIn("bob");
    const [bob] = await users();
    expect((await as(session, "/key/list")).status).toBe(403);
    await api.post(`/user/${bob.id}/update`, { role: "admin" });
    expect((await as(session, "/key/list")).status).toBe(200);
  });

  it("always include an admin, even when two demote each other at once", async () => {
    await signIn("alice");
    await signIn("bob");
    const [bob, alice] = await users();
    await api.post(`/user/${bob.id}/update`, { role: "admin" });
    const answers = await Promise.all([
      api.post(`/user/${bob.id}/update`, { role: "viewer" }),
      api.post(`/user/${alice.id}/update`, { disabled: true }),
    ]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  });

  it("are for admins to see and change, and of their own organization alone", async () => {
    const { session } = await signIn("bob");
    const [bob] = await users();
    expect((await as(session, "/user/list")).status).toBe(403);
    const change = await api.post(
      `/user/${bob.id}/update`,
      { role: "admin" },
      { key: null, headers: { cookie: session ?? "" } },
    );
    expect(change.status).toBe(403);
    expect((await api.post(`/user/${crypto.randomUUID()}/update`, { role: "admin" })).status).toBe(404);
  });
});

it("says that a provider is down, and works again once it is up, without a restart", async () => {
  const other = await startProvider({ alice: { email: "alice@company.example", email_verified: true } });
  const app = await api.another({ signInMethods: [createOidc({ ...other, name: "Other", trustEmail: false })] });
  const first = await app.inject({ method: "GET", url: "/login/oidc" });
  expect(first.headers["location"]).toBe("/sign-in?problem=unavailable");
  other.serve(["http://offstage.test/login/oidc/callback"]);
  const second = await app.inject({ method: "GET", url: "/login/oidc" });
  expect(String(second.headers["location"])).toContain(`${other.issuer}/auth`);
  await other.close();
});

it("offers what is set up and nothing else", async () => {
  const { body } = await api.get("/login/methods", { key: null });
  expect(body).toEqual({
    methods: [
      { id: "oidc", name: "Company" },
      { id: "github", name: "GitHub" },
    ],
  });
  const bare = await api.another({ signInMethods: [] });
  expect((await bare.inject({ method: "GET", url: "/login/oidc" })).statusCode).toBe(404);
});

it("makes keys of a role, and of scopes, and not of both", async () => {
  expect((await api.post("/key/create", { name: "k", role: "viewer" })).body.scopes).toEqual(["read"]);
  expect((await api.post("/key/create", { name: "k" })).body.scopes).toEqual(["read", "write"]);
  const both = await api.post("/key/create", { name: "k", role: "viewer", scopes: ["admin"] });
  expect([both.status, both.body.error]).toEqual([400, "role: can't be given beside scopes: choose one of them"]);
});
