import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOidc } from "../../src/sign-in/oidc.ts";
import { requesterOf } from "../../src/store/queue/claims.ts";
import { createTestApp, type Answer, type TestApp } from "../api/app.ts";
import { cookieIn, signInAt } from "./browser.ts";
import { startProvider, type TestProvider } from "./oidc-provider.ts";

let provider: TestProvider;
let api: TestApp;

beforeAll(async () => {
  provider = await startProvider({
    alice: { name: "Alice", email: "alice@company.example", email_verified: true },
    bob: { name: "Bob", email: "Bob@Company.example", email_verified: true },
    unverified: { name: "Eve", email: "eve@company.example", email_verified: false },
    stranger: { name: "Stranger", email: "stranger@elsewhere.example", email_verified: true },
  });
  provider.serve(["http://offstage.test/login/oidc/callback"]);
});

beforeEach(async () => {
  await api?.close();
  // Another one for each: it counts failed sign-ins.
  api = await createTestApp({
    signInPolicy: {
      admins: ["alice@company.example"],
      domains: ["company.example"],
      githubOrganizations: [],
      defaultRole: "member",
    },
    signInMethods: [createOidc({ ...provider, name: "Company", trustEmail: false })],
  });
});

afterAll(async () => {
  await api?.close();
  await provider?.close();
});

const as = (session: string | null, url: string) => api.get(url, { key: null, headers: { cookie: session ?? "" } });
const users = async () => (await api.get("/user/list")).body.users;

describe("an invited person", () => {
  const invite = (body: object) => api.post("/user/invite", { name: "Carol", role: "viewer", ...body });
  const tokenOf = ({ body }: Answer): string => new URL(body.url).hash.slice(1);
  const open = async (token: string) => {
    const { status, headers } = await api.post("/login/create", { token }, { key: null });
    return { status, session: cookieIn(headers, "offstage_session") };
  };
  const stranger = { email: "Stranger@Elsewhere.example" };

  it("signs in by the link once, as themselves and in their role, and is listed from the start", async () => {
    const invited = await invite({ role: "member" });
    expect(invited).toMatchObject({
      status: 200,
      body: {
        user: {
          name: "Carol",
          email: null,
          issuer: "invitation",
          role: "member",
          lastSignInAt: null,
          lastSeenAt: null,
        },
      },
    });
    const [ahead, days] = [Date.parse(invited.body.expiresAt) - Date.now(), 86_400_000];
    expect([ahead > 6.9 * days, ahead < 7.1 * days]).toEqual([true, true]);
    expect(await users()).toEqual([invited.body.user]);
    const { session } = await open(tokenOf(invited));
    expect((await as(session, "/me")).body).toMatchObject({
      userId: invited.body.user.id,
      scopes: expect.arrayContaining(["write"]),
    });
    expect((await as(session, "/key/list")).status).toBe(403);
    expect((await open(tokenOf(invited))).status).toBe(401);
    expect((await users())[0].lastSignInAt).not.toBeNull();
  });

  it("is signed in by the newest link alone", async () => {
    const first = await invite({});
    const second = await api.post(`/user/${first.body.user.id}/invite`, {});
    expect(second.body.user).toEqual(first.body.user);
    expect((await open(tokenOf(first))).status).toBe(401);
    expect((await open(tokenOf(second))).status).toBe(200);
  });

  it("is signed in by none while disabled, nor once erased", async () => {
    const invited = await invite({});
    const { id } = invited.body.user;
    await api.post(`/user/${id}/update`, { disabled: true });
    expect((await open(tokenOf(invited))).status).toBe(401);
    expect(await api.post(`/user/${id}/invite`, {})).toMatchObject({ status: 409 });
    await api.post(`/user/${id}/update`, { disabled: false });
    // The links ended with the sign-ins.
    expect((await open(tokenOf(invited))).status).toBe(401);
    const again = await api.post(`/user/${id}/invite`, {});
    await api.post(`/user/${id}/erase`, {});
    expect((await open(tokenOf(again))).status).toBe(401);
    expect(await api.post(`/user/${id}/invite`, {})).toMatchObject({ status: 400 });
  });

  it("is let in by a provider that verified their address, whom the operator's lists do not name, and stays who they are", async () => {
    expect((await signInAt(api, "stranger")).to).toBe("/sign-in?problem=refused");
    const invited = await invite(stranger);
    for (const _ of [1, 2]) {
      const { session } = await signInAt(api, "stranger");
      expect((await as(session, "/me")).body).toMatchObject({ userId: invited.body.user.id, scopes: ["read"] });
    }
    expect(await users()).toEqual([
      expect.objectContaining({ id: invited.body.user.id, issuer: provider.issuer, name: "Stranger" }),
    ]);
    // No link does instead of the provider any more.
    expect((await open(tokenOf(invited))).status).toBe(401);
    expect(await api.post(`/user/${invited.body.user.id}/invite`, {})).toMatchObject({ status: 400 });
  });

  it("is not recognized by an address that the provider has not verified", async () => {
    const invited = await invite({ email: "eve@company.example" });
    expect((await signInAt(api, "unverified")).to).toBe("/sign-in?problem=refused");
    expect(await users()).toEqual([invited.body.user]);
  });

  it("has an address that no other of the organization has, also of two at once", async () => {
    await signInAt(api, "bob");
    expect(await invite({ email: "BOB@company.example" })).toMatchObject({
      status: 409,
      body: { error: "email: somebody of this organization has the address BOB@company.example" },
    });
    const both = await Promise.all([invite(stranger), invite({ email: stranger.email.toLowerCase() })]);
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  });

  it("is no admin to whom the last one could leave the organization", async () => {
    await signInAt(api, "alice");
    const invited = await invite({ role: "admin" });
    const alice = (await users()).find(({ name }: { name: string }) => name === "Alice");
    expect((await api.post(`/user/${alice.id}/update`, { role: "member" })).status).toBe(409);
    await open(tokenOf(invited));
    expect((await api.post(`/user/${alice.id}/update`, { role: "member" })).status).toBe(200);
  });

  it.each([
    ["no name", { name: "" }, /^name must/u],
    ["no role that there is", { role: "owner" }, /^role must/u],
    ["no address", { email: "carol" }, /^email must be an e-mail address/u],
  ])("has %s: refused by its field", async (_, body, error) => {
    expect(await invite(body)).toMatchObject({ status: 400, body: { error: expect.stringMatching(error) } });
  });

  it("is not named in commits by an unverified address", async () => {
    const invited = await invite(stranger);
    const { session } = await open(tokenOf(invited));
    const asked = { prompt: "x", queueRightAway: false };
    await api.post(`/user/${invited.body.user.id}/update`, { role: "member" });
    const made = await api.post("/session/create", asked, { key: null, headers: { cookie: session ?? "" } });
    expect(await requesterOf(api.database, made.body.id)).toBeNull();
    await signInAt(api, "stranger");
    expect(await requesterOf(api.database, made.body.id)).toMatchObject({ name: "Stranger" });
  });
});
