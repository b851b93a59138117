import { createHash, randomBytes } from "node:crypto";
import {
  auth,
  InsufficientScopeError,
  type Client,
  UnauthorizedError,
  type OAuthClientProvider,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Scope } from "../../src/domain/people/key.ts";
import type { Role } from "../../src/domain/people/user.ts";
import { pruneClients } from "../../src/store/oauth/clients.ts";
import { pruneGrants } from "../../src/store/oauth/grants.ts";
import { createKey, revokeKey } from "../../src/store/people/keys.ts";
import { updateUser } from "../../src/store/people/users.ts";
import { createTestApp, type Answer, type TestApp } from "../api/app.ts";
import { identityOf, signInBrowser, signInUser } from "../store/fixtures.ts";
import { connected, listening, said } from "./connect.ts";

let api: TestApp;
let url: string;
const open: Client[] = [];
/** Documents in which programs describe themselves, by their addresses. */
const documents = new Map<string, unknown>();

beforeAll(async () => {
  api = await createTestApp({
    readClientDocument: (address) =>
      documents.has(address) ? Promise.resolve(documents.get(address)) : Promise.reject(new Error("404")),
  });
  url = await listening(api.app);
});
afterAll(() => api?.close());
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

interface Person {
  readonly userId: string;
  readonly cookie: string;
}

/** A person whose browser is signed in. */
async function person(role: Role, name: string = crypto.randomUUID()): Promise<Person> {
  const { database, organizationId } = api;
  const userId = (await signInUser(database, organizationId, identityOf(name), role))?.id ?? "";
  const token = await signInBrowser(database, organizationId, userId);
  return { userId, cookie: `offstage_session=${token}` };
}

const ofBrowser = ({ cookie }: Pick<Person, "cookie">) => ({ key: null, headers: { cookie } });

/** What a program keeps, and the browser of the person who decides: with it the SDK's own client can ask. */
function program(
  who: Pick<Person, "cookie"> | null,
  options: { readonly documentUrl?: string; readonly redirectUrl?: string } = {},
): OAuthClientProvider & { callback: URL | null; asked: URL | null; kept: { tokens?: StoredOAuthTokens } } {
  const kept: { client?: StoredOAuthClientInformation; tokens?: StoredOAuthTokens; verifier?: string } = {};
  const redirectUrl = options.redirectUrl ?? "http://127.0.0.1:33418/callback";
  return {
    kept,
    callback: null,
    asked: null,
    redirectUrl,
    ...(options.documentUrl !== undefined && { clientMetadataUrl: options.documentUrl }),
    clientMetadata: {
      client_name: "Some Editor",
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      application_type: "native",
    },
    state: () => "the state",
    clientInformation: () => kept.client,
    saveClientInformation: (information) => void (kept.client = information),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void (kept.tokens = tokens),
    saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier ?? "",
    async redirectToAuthorization(address) {
      this.asked = address;
      if (who !== null) this.callback = new URL((await decided(address, who, true)).redirectUrl);
    },
  };
}

/** Opens the page that asks, as a browser does. @returns the request's token in its address, or the page's path */
async function opened(address: URL | string): Promise<string> {
  const response = await fetch(address, { redirect: "manual" });
  expect(response.status).toBe(302);
  return response.headers.get("location") ?? "";
}

async function decided(
  address: URL | string,
  who: Pick<Person, "cookie">,
  allow: boolean,
): Promise<{ redirectUrl: string }> {
  const token = (await opened(address)).replace("/authorize/", "");
  expect(token).toMatch(/^[\w-]{43}$/u);
  const answer = await api.post(`/oauth/request/${token}/decide`, { allow }, ofBrowser(who));
  expect(answer.status).toBe(200);
  return answer.body as { redirectUrl: string };
}

/** Has a person let a program act, by the SDK's own client. @returns its provider, with tokens */
async function allowed(
  who: Pick<Person, "cookie">,
  options: Parameters<typeof program>[1] & { readonly scope?: string } = {},
) {
  const provider = program(who, options);
  const scope = options.scope === undefined ? {} : { scope: options.scope };
  expect(await auth(provider, { serverUrl: `${url}/mcp`, ...scope })).toBe("REDIRECT");
  const callback = (provider.callback as URL).searchParams;
  expect(callback.get("state")).toBe("the state");
  const result = await auth(provider, {
    serverUrl: `${url}/mcp`,
    authorizationCode: callback.get("code") ?? "",
    iss: callback.get("iss") ?? "",
  });
  expect(result).toBe("AUTHORIZED");
  return provider;
}

async function client(provider: OAuthClientProvider): Promise<Client> {
  const made = await connected(url, { authProvider: provider, onInsufficientScope: "throw" });
  open.push(made);
  return made;
}

/** A request by hand, with what a program may vary. */
function authorizeUrl(changes: Record<string, string | null> = {}, verifier = "v".repeat(43)): URL {
  const address = new URL(`${url}/oauth/authorize`);
  const usual = {
    response_type: "code",
    client_id: "offstage-cli",
    redirect_uri: "http://127.0.0.1:5000/callback",
    state: "s",
    scope: "read write",
    resource: url,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries({ ...usual, ...changes }))
    if (value !== null) address.searchParams.set(name, value);
  return address;
}

function exchanged(fields: Record<string, string>): Promise<Answer> {
  const body = new URLSearchParams({ client_id: "offstage-cli", ...fields }).toString();
  return api.request("POST", "/oauth/token", {
    key: null,
    headers: { "content-type": "application/x-www-form-urlencoded" },
    raw: body,
  });
}

/** Tokens of the command line, for the API. */
async function ofCommandLine(who: Pick<Person, "cookie">, scope = "read write", resource = url) {
  const { redirectUrl } = await decided(authorizeUrl({ scope, resource }), who, true);
  const code = new URL(redirectUrl).searchParams.get("code") ?? "";
  const answer = await exchanged({
    grant_type: "authorization_code",
    code,
    redirect_uri: "http://127.0.0.1:5000/callback",
    code_verifier: "v".repeat(43),
  });
  expect(answer.status).toBe(200);
  return { code, ...(answer.body as { access_token: string; refresh_token: string; scope: string }) };
}

describe("the SDK's own client is let act", () => {
  test("after it registered (RFC 7591), and does what its person may", async () => {
    const who = await person("member", "Ada");
    const provider = await allowed(who);
    const mcp = await client(provider);
    const { facts } = said(await mcp.callTool({ name: "start_session", arguments: { prompt: "For Ada" } }));
    const { body } = await api.get(`/session/${facts.sessionId}`);
    expect(body.requestedBy).toMatchObject({ type: "user", id: who.userId, name: "Ada" });
  });

  test("by a document in which it describes itself", async () => {
    const documentUrl = "https://editor.example/oauth/client.json";
    documents.set(documentUrl, {
      client_id: documentUrl,
      client_name: "The Editor",
      redirect_uris: ["http://127.0.0.1/callback"],
    });
    const who = await person("member");
    const provider = await allowed(who, { documentUrl });
    expect(provider.asked?.searchParams.get("client_id")).toBe(documentUrl);
    const { body } = await api.get("/grant/list", ofBrowser(who));
    expect(body.grants).toMatchObject([{ clientId: documentUrl, clientName: "The Editor", resource: "mcp" }]);
    expect((await (await client(provider)).listTools()).tools.length).toBeGreaterThan(10);
  });

  test("and asks for a new token by itself when the old one has ended", async () => {
    const provider = await allowed(await person("member"));
    const before = provider.kept.tokens;
    const mcp = await client(provider);
    await api.database.pool.query("update oauth_token set expires_at = now() where kind = 'access'");
    expect(said(await mcp.callTool({ name: "list_sessions", arguments: {} })).isError).toBe(false);
    expect(provider.kept.tokens?.access_token).not.toBe(before?.access_token);
    expect(provider.kept.tokens?.refresh_token).not.toBe(before?.refresh_token);
  });

  test("for less if its person may do less, and gets the scope that it lacks", async () => {
    const provider = await allowed(await person("viewer"));
    expect(provider.kept.tokens?.scope).toBe("read");
    const mcp = await client(provider);
    expect(said(await mcp.callTool({ name: "list_sessions", arguments: {} })).isError).toBe(false);
    const start = mcp.callTool({ name: "start_session", arguments: { prompt: "x" } });
    await expect(start).rejects.toThrow(InsufficientScopeError);
    await expect(start).rejects.toMatchObject({ requiredScope: "write" });
  });

  test("only once its person agreed", async () => {
    const provider = program(null);
    await expect(connected(url, { authProvider: provider })).rejects.toThrow(UnauthorizedError);
    const who = await person("member");
    const { redirectUrl } = await decided(provider.asked as URL, who, false);
    const answer = new URL(redirectUrl).searchParams;
    expect(Object.fromEntries(answer)).toMatchObject({ error: "access_denied", state: "the state", iss: url });
    expect((await api.get("/grant/list", ofBrowser(who))).body.grants).toEqual([]);
  });
});

describe("the page gets", () => {
  test("who asks, where the answer goes, and what the person can give", async () => {
    const token = (await opened(authorizeUrl({ scope: "read write admin offline_access" }))).replace("/authorize/", "");
    const asked = (who: Person) => api.get(`/oauth/request/${token}`, ofBrowser(who));
    expect((await asked(await person("viewer"))).body).toEqual({
      clientName: "Offstage command line",
      clientHost: null,
      redirectHost: "127.0.0.1:5000",
      isLocal: true,
      resource: "api",
      scopes: ["read"],
    });
    expect((await asked(await person("admin"))).body.scopes).toEqual(["read", "write", "admin"]);
    expect((await api.get(`/oauth/request/${"x".repeat(43)}`, ofBrowser(await person("member")))).status).toBe(404);
  });

  test.each([
    ["an unknown program", { client_id: "nobody" }, "client"],
    ["a document that can't be read", { client_id: "https://gone.example/client.json" }, "client"],
    ["a document of another program", { client_id: "https://liar.example/client.json" }, "client"],
    ["an address of a document with a way up", { client_id: "https://liar.example/a/../client.json" }, "client"],
    ["an address that is not registered", { redirect_uri: "https://evil.example/callback" }, "redirect"],
    ["another path", { redirect_uri: "http://127.0.0.1:5000/other" }, "redirect"],
    ["another host that looks local", { redirect_uri: "http://127.0.0.1.evil.example/callback" }, "redirect"],
    ["no address", { redirect_uri: null }, "redirect"],
    ["a script", { redirect_uri: "javascript:alert(1)" }, "redirect"],
  ])("%s, and redirects no browser", async (_name, changes, problem) => {
    documents.set("https://liar.example/client.json", {
      client_id: "https://other.example/client.json",
      client_name: "Liar",
      redirect_uris: ["http://127.0.0.1/callback"],
    });
    expect(await opened(authorizeUrl(changes))).toBe(`/authorize?problem=${problem}`);
  });

  test.each([
    ["no PKCE", { code_challenge: null }, "invalid_request"],
    ["PKCE without a hash", { code_challenge_method: "plain" }, "invalid_request"],
    ["another kind of answer", { response_type: "token" }, "unsupported_response_type"],
    ["another server's resource", { resource: "https://other.example/mcp" }, "invalid_target"],
  ])("nothing: the program gets %s", async (_name, changes, error) => {
    const answer = new URL(await opened(authorizeUrl(changes)));
    expect(answer.origin).toBe("http://127.0.0.1:5000");
    expect(Object.fromEntries(answer.searchParams)).toMatchObject({ error, state: "s", iss: url });
  });

  test("by a signed-in browser alone, from our own page: no key, no program and no other site decides", async () => {
    const who = await person("admin");
    const token = (await opened(authorizeUrl())).replace("/authorize/", "");
    const path = `/oauth/request/${token}/decide`;
    const { access_token: ofProgram } = await ofCommandLine(who, "read write admin");
    expect((await api.post(path, { allow: true }, { key: null })).status).toBe(401);
    expect((await api.post(path, { allow: true })).status).toBe(403);
    expect((await api.post(path, { allow: true }, { key: ofProgram })).status).toBe(403);
    expect((await api.post(path, { allow: true }, { key: ofProgram, headers: { cookie: who.cookie } })).status).toBe(
      403,
    );
    // A key in the address counts before any cookie, so that one beside it says nothing.
    for (const key of [ofProgram, api.adminKey]) {
      const inAddress = await api.post(
        `${path}?apiKey=${key}`,
        { allow: true },
        ofBrowser({ cookie: "offstage_session=x" }),
      );
      expect(inAddress.status).toBe(403);
    }
    const elsewhere = { cookie: who.cookie, origin: "https://evil.example" };
    expect((await api.post(path, { allow: true }, { key: null, headers: elsewhere })).status).toBe(403);
    expect((await api.post(path, { allow: true }, ofBrowser(who))).status).toBe(200);
    expect((await api.post(path, { allow: true }, ofBrowser(who))).status).toBe(404);
  });
});

describe("a token", () => {
  const reads = (token: string): Promise<Answer> => api.get("/session/list", { key: token });

  test("for the API is good for no MCP server, and the other way round", async () => {
    const who = await person("member");
    const [ofApi, ofMcp] = [await ofCommandLine(who), await ofCommandLine(who, "read", `${url}/mcp`)];
    expect((await reads(ofApi.access_token)).status).toBe(200);
    expect((await reads(ofMcp.access_token)).status).toBe(401);
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const atMcp = (key: string) =>
      api.post("/mcp", list, { key, headers: { accept: "application/json, text/event-stream" } });
    const response = await api.app.inject({
      method: "POST",
      url: "/mcp",
      headers: {
        authorization: `Bearer ${ofMcp.access_token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      payload: JSON.stringify(list),
    });
    expect(response.statusCode).toBe(200);
    expect((await atMcp(ofApi.access_token)).status).toBe(401);
  });

  test("is stored as a hash alone", async () => {
    const { access_token: access, refresh_token: refresh, code } = await ofCommandLine(await person("member"));
    const { rows } = await api.database.pool.query<{ all: string }>(
      `select coalesce(json_agg(t)::text, '') || (select coalesce(json_agg(g)::text, '') from oauth_grant g)
         || (select coalesce(json_agg(r)::text, '') from oauth_request r) as all from oauth_token t`,
    );
    for (const secret of [access, refresh, code]) expect(rows[0]?.all).not.toContain(secret);
    expect(rows[0]?.all).toContain("refresh");
  });

  test.each([
    ["with another verifier", { code_verifier: "w".repeat(43) }],
    ["for another address", { redirect_uri: "http://127.0.0.1:5001/callback" }],
    ["as another program", { client_id: crypto.randomUUID() }],
    ["for another resource", { resource: "mcp" }],
  ])("is not had for a code %s, and the code is good for nothing then", async (_name, changes) => {
    const { redirectUrl } = await decided(authorizeUrl(), await person("member"), true);
    const right = {
      grant_type: "authorization_code",
      code: new URL(redirectUrl).searchParams.get("code") ?? "",
      redirect_uri: "http://127.0.0.1:5000/callback",
      code_verifier: "v".repeat(43),
    };
    const wrong = { ...right, ...("resource" in changes ? { resource: `${url}/mcp` } : changes) };
    expect((await exchanged(wrong)).body).toMatchObject({ error: "invalid_grant" });
    expect((await exchanged(right)).body).toMatchObject({ error: "invalid_grant" });
  });

  test("ends if its code is exchanged a second time: it was stolen", async () => {
    const { code, access_token: token } = await ofCommandLine(await person("member"));
    expect((await reads(token)).status).toBe(200);
    const again = await exchanged({
      grant_type: "authorization_code",
      code,
      redirect_uri: "http://127.0.0.1:5000/callback",
      code_verifier: "v".repeat(43),
    });
    expect(again).toMatchObject({ status: 400, body: { error: "invalid_grant" } });
    expect((await reads(token)).status).toBe(401);
  });

  test("is refreshed by two processes at once, and not by a thief later", async () => {
    const { refresh_token: refresh } = await ofCommandLine(await person("member"));
    const again = () => exchanged({ grant_type: "refresh_token", refresh_token: refresh });
    const both = await Promise.all([again(), again()]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    const newest = both[1]?.body as { access_token: string };
    expect((await reads(newest.access_token)).status).toBe(200);
    await api.database.pool.query(
      "update oauth_token set replaced_at = now() - interval '2 minutes' where replaced_at is not null",
    );
    expect((await again()).body).toMatchObject({ error: "invalid_grant" });
    expect((await reads(newest.access_token)).status).toBe(401);
  });

  test("has no scope that its person has lost, and ends with the person", async () => {
    const who = await person("admin");
    await person("admin");
    const { access_token: token, refresh_token: refresh } = await ofCommandLine(who, "read write admin");
    expect((await api.get("/key/list", { key: token })).status).toBe(200);
    await updateUser(api.database, api.organizationId, who.userId, { role: "member" });
    expect((await api.get("/key/list", { key: token })).status).toBe(403);
    expect((await reads(token)).status).toBe(200);
    await updateUser(api.database, api.organizationId, who.userId, { disabled: true });
    expect((await reads(token)).status).toBe(401);
    expect((await exchanged({ grant_type: "refresh_token", refresh_token: refresh })).status).toBe(400);
    await updateUser(api.database, api.organizationId, who.userId, { disabled: false });
    expect((await reads(token)).status).toBe(401);
  });

  test("of a browser that a key signed in ends with the key", async () => {
    const scopes: Scope[] = ["read", "write"];
    const { key, record } = await createKey(api.database, api.organizationId, { name: "lent", scopes });
    const signedIn = await api.post("/login/create", { key }, { key: null });
    const cookie = String(signedIn.headers["set-cookie"]).split(";")[0] ?? "";
    const { access_token: token, scope } = await ofCommandLine({ cookie }, "read write admin");
    expect(scope).toBe("read write");
    expect((await reads(token)).status).toBe(200);
    await revokeKey(api.database, api.organizationId, record.id);
    expect((await reads(token)).status).toBe(401);
  });

  test("is given back by the program, both at once (RFC 7009)", async () => {
    const { access_token: token, refresh_token: refresh } = await ofCommandLine(await person("member"));
    const revoke = (fields: Record<string, string>) =>
      api.request("POST", "/oauth/revoke", {
        key: null,
        headers: { "content-type": "application/x-www-form-urlencoded" },
        raw: new URLSearchParams(fields).toString(),
      });
    expect((await revoke({ token: refresh, client_id: "another" })).status).toBe(200);
    expect((await reads(token)).status).toBe(200);
    expect((await revoke({ token: refresh, client_id: "offstage-cli" })).status).toBe(200);
    expect((await reads(token)).status).toBe(401);
    expect((await revoke({ token: "ofr_unknown", client_id: "offstage-cli" })).status).toBe(200);
  });

  test("is refused in OAuth's own words", async () => {
    expect(await exchanged({ grant_type: "password" })).toMatchObject({
      status: 400,
      body: { error: "unsupported_grant_type", error_description: expect.any(String) as string },
    });
    expect((await exchanged({ grant_type: "refresh_token" })).body).toMatchObject({ error: "invalid_request" });
    const twice = await api.request("POST", "/oauth/token", {
      key: null,
      headers: { "content-type": "application/x-www-form-urlencoded" },
      raw: "grant_type=refresh_token&grant_type=password&client_id=x",
    });
    expect(twice.body).toMatchObject({ error: "invalid_request" });
    const broken = await api.request("POST", "/oauth/register", { key: null, raw: "{" });
    expect(broken).toMatchObject({ status: 400, body: { error: "invalid_request" } });
    // These need no credential, and PostgreSQL refuses NUL.
    const withNul = { client_name: "x", redirect_uris: ["https://a.example/\0"] };
    expect(await api.post("/oauth/register", withNul, { key: null })).toMatchObject({
      status: 400,
      body: { error: "invalid_client_metadata", error_description: expect.stringContaining("NUL") as string },
    });
    const refresh = { grant_type: "refresh_token", refresh_token: "ofr_x", client_id: "a\0b" };
    for (const answer of [await exchanged(refresh), await api.post("/oauth/revoke", { token: "x", client_id: "\0" })])
      expect(answer).toMatchObject({ status: 400, body: { error: "invalid_request" } });
  });
});

describe("what a person allowed", () => {
  test("is shown to them and to admins, and ended by them", async () => {
    const [ada, bob] = [await person("member", "Ada L."), await person("member", "Bob")];
    const { access_token: token } = await ofCommandLine(ada, "read");
    const list = async (who: Person) => (await api.get("/grant/list", ofBrowser(who))).body.grants as { id: string }[];
    const [grant] = await list(ada);
    expect(grant).toMatchObject({
      clientId: "offstage-cli",
      by: "user",
      userId: ada.userId,
      name: "Ada L.",
      scopes: ["read"],
      resource: "api",
    });
    expect(await list(bob)).toEqual([]);
    const id = grant?.id ?? "";
    expect((await api.post(`/grant/${id}/revoke`, {}, ofBrowser(bob))).status).toBe(404);
    const all = await api.get("/grant/list?limit=100");
    expect((all.body.grants as { id: string }[]).map((each) => each.id)).toContain(id);
    expect((await api.post(`/grant/${id}/revoke`, {}, ofBrowser(ada))).body).toMatchObject({ id });
    expect((await api.get("/session/list", { key: token })).status).toBe(401);
    expect(await list(ada)).toEqual([]);
  });
});

describe("programs that register", () => {
  const register = (body: object) => api.post("/oauth/register", body, { key: null });

  test.each([
    ["no address", { client_name: "x" }],
    ["an unencrypted address", { redirect_uris: ["http://evil.example/callback"] }],
    ["a script", { redirect_uris: ["javascript:alert(1)"] }],
    ["an address with a fragment", { redirect_uris: ["https://a.example/#x"] }],
    ["an address with credentials", { redirect_uris: ["https://a:b@a.example/"] }],
    ["too many addresses", { redirect_uris: Array.from({ length: 21 }, (_, at) => `https://a.example/${at}`) }],
  ])("with %s are refused", async (_name, body) => {
    expect(await register(body)).toMatchObject({ status: 400, body: { error: "invalid_client_metadata" } });
  });

  test("get no secret, and are deleted without a grant", async () => {
    const { status, body } = await register({ client_name: "Once", redirect_uris: ["https://once.example/callback"] });
    expect(status).toBe(201);
    expect(body).toMatchObject({ token_endpoint_auth_method: "none", client_name: "Once" });
    expect(body).not.toHaveProperty("client_secret");
    const isKnown = async () =>
      !(
        await opened(authorizeUrl({ client_id: body.client_id, redirect_uri: "https://once.example/callback" }))
      ).includes("problem");
    expect(await isKnown()).toBe(true);
    await pruneClients(api.database);
    expect(await isKnown()).toBe(true);
    await api.database.pool.query("update oauth_client set created_at = now() - interval '8 days'");
    await pruneClients(api.database);
    expect(await isKnown()).toBe(false);
  });

  test("what has ended is removed, and nothing else", async () => {
    const who = await person("member");
    const [ended, kept] = [await ofCommandLine(who), await ofCommandLine(who)];
    const hash = createHash("sha256").update(ended.access_token).digest();
    await api.database.pool.query(
      "update oauth_grant set expires_at = now() where id = (select grant_id from oauth_token where hash = $1)",
      [hash],
    );
    expect(await pruneGrants(api.database)).toBeGreaterThan(0);
    expect((await api.get("/session/list", { key: ended.access_token })).status).toBe(401);
    expect((await api.get("/session/list", { key: kept.access_token })).status).toBe(200);
  });
});

test("the metadata names the server as the program knows it", async () => {
  const at = async (path: string, host: string) =>
    (await api.app.inject({ url: path, headers: { host } })).json<Record<string, unknown>>();
  expect(await at("/.well-known/oauth-protected-resource/mcp", "localhost:4747")).toMatchObject({
    resource: "http://localhost:4747/mcp",
    authorization_servers: ["http://localhost:4747"],
  });
  expect(await at("/.well-known/oauth-protected-resource", "offstage.test")).toMatchObject({
    resource: "http://offstage.test",
  });
  expect(await at("/.well-known/oauth-authorization-server", "offstage.test")).toMatchObject({
    issuer: "http://offstage.test",
    code_challenge_methods_supported: ["S256"],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  });
  const token = randomBytes(8).toString("hex");
  const evil = await api.app.inject({
    url: "/.well-known/oauth-authorization-server",
    headers: { host: `${token}.example` },
  });
  expect(evil.statusCode).toBe(421);
});
