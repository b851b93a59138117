import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Principal, Scope } from "../../src/domain/people/key.ts";
import { createKey, revokeKey } from "../../src/store/people/keys.ts";
import { createBrowserSession } from "../../src/store/people/logins.ts";
import { updateUser } from "../../src/store/people/users.ts";
import { addGrant, addOrganization, signInUser } from "../store/fixtures.ts";
import { createTestApp, type Call, type TestApp } from "./app.ts";
import { examplesOf } from "./fuzz/examples.ts";

type Needed = Scope | "nothing";

/** Every route that the server has, and what it asks for. A new route fails until it has its line. */
const needed: Readonly<Record<string, Needed>> = {
  "GET /agent/list": "read",
  "POST /agent/:keyOrId/trigger": "trigger",
  "GET /audit/list": "admin",
  "GET /notice/settings": "read",
  "POST /notice/settings/update": "read",
  "POST /notice/test": "read",
  "POST /notice/unsubscribe": "nothing",
  "POST /subscription/create": "read",
  "POST /subscription/renew": "nothing",
  "GET /subscription/list": "read",
  "POST /subscription/:id/delete": "read",
  "GET /session/unread": "read",
  "POST /session/:id/read": "read",
  "POST /session/read-all": "read",
  "POST /automation/create": "write",
  "GET /automation/list": "read",
  "GET /automation/:keyOrId": "read",
  "POST /automation/:keyOrId/update": "write",
  "POST /automation/:keyOrId/delete": "write",
  "POST /automation/:keyOrId/preview": "read",
  "POST /automation/preview": "read",
  "GET /automation/template/list": "read",
  "GET /repository/:id/automation-files": "read",
  "POST /repository/:id/automation-files": "admin",
  "GET /automation/:keyOrId/runs": "read",
  "GET /automation/:keyOrId/state": "read",
  "POST /automation/:keyOrId/state/update": "write",
  "POST /automation/:keyOrId/trigger": "trigger",
  "POST /automation/:keyOrId/trigger/:id/rotate": "write",
  "GET /delivery/list": "admin",
  "GET /delivery/:id": "admin",
  "POST /delivery/:id/resend": "admin",
  "GET /grant/list": "read",
  "POST /grant/:id/revoke": "read",
  "GET /oauth/authorize": "nothing",
  "GET /oauth/request/:id": "read",
  "POST /oauth/request/:id/decide": "read",
  "POST /oauth/register": "nothing",
  "POST /oauth/token": "nothing",
  "POST /oauth/revoke": "nothing",
  "GET /job/list": "read",
  "GET /job/:id": "read",
  "POST /key/create": "admin",
  "GET /key/list": "admin",
  "POST /key/:id/revoke": "admin",
  "POST /hook/:triggerId": "nothing",
  "POST /hook/forge/:connectionId": "nothing",
  "GET /ledger/list": "read",
  "GET /ledger/:id": "read",
  "POST /ledger/:id/replay": "write",
  // It asks who it is by itself: test/mcp/mcp.test.ts.
  "GET /mcp": "nothing",
  "POST /mcp": "nothing",
  "POST /login/create": "nothing",
  "POST /login/delete": "nothing",
  "GET /login/list": "read",
  "GET /login/methods": "nothing",
  "GET /login/:method": "nothing",
  "GET /login/:method/callback": "nothing",
  "POST /login/:id/revoke": "read",
  "POST /login/switch": "read",
  "GET /me": "read",
  "GET /organization": "read",
  "POST /organization/update": "admin",
  "GET /organization/export": "admin",
  "POST /organization/erase": "admin",
  // And of nobody but admins of the organization `default`: organizations.test.ts.
  "GET /organization/list": "admin",
  "POST /organization/create": "admin",
  "POST /organization/:id/update": "admin",
  "POST /organization/:id/erase": "admin",
  "POST /repository/create": "write",
  "GET /repository/list": "read",
  "GET /repository/:id": "read",
  "POST /repository/:id/update": "write",
  "GET /repository/search": "write",
  "GET /repository/branches": "write",
  "GET /repository/files": "write",
  "POST /repository/:id/try-setup": "write",
  "POST /repository/:id/delete": "admin",
  "GET /repository/:id/egress": "read",
  "POST /repository/:id/egress": "admin",
  "POST /repository/:id/allow": "admin",
  "GET /repository/:id/environment": "read",
  "POST /repository/:id/environment": "admin",
  "GET /repository/:id/findings": "read",
  "POST /repository/:id/findings": "admin",
  "POST /repository/:id/allow-finding": "admin",
  "GET /repository/:id/limits": "read",
  "POST /repository/:id/limits": "admin",
  "POST /secret/create": "admin",
  "GET /secret/list": "admin",
  "POST /secret/:id/update": "admin",
  "POST /secret/:id/delete": "admin",
  "POST /registry/create": "admin",
  "GET /registry/list": "admin",
  "POST /registry/:id/update": "admin",
  "POST /registry/:id/delete": "admin",
  "POST /connection/create": "admin",
  "GET /connection/list": "admin",
  "GET /connection/:id": "admin",
  "POST /connection/:id/update": "admin",
  "POST /connection/:id/check": "admin",
  "POST /connection/:id/rotate-secret": "admin",
  "POST /connection/:id/delete": "admin",
  "POST /connection/github-app/start": "admin",
  "GET /connection/github-app/form": "nothing",
  "GET /connection/github-app/callback": "nothing",
  "POST /account/create": "write",
  "GET /account/list": "read",
  "GET /account/:id": "read",
  "POST /account/:id/update": "write",
  "POST /account/:id/check": "write",
  "POST /account/:id/delete": "read",
  "POST /session/create": "write",
  "GET /session/list": "read",
  "GET /session/search": "read",
  "GET /session/:id": "read",
  "POST /session/:id/queue": "write",
  "POST /session/:id/cancel": "write",
  "POST /job/:id/cancel": "write",
  "POST /session/:id/stop": "write",
  "POST /session/:id/delete": "write",
  "POST /session/:id/message": "write",
  "POST /session/:id/messages": "write",
  "POST /session/:id/resolve-conflicts": "write",
  "POST /session/:id/budget": "admin",
  "GET /session/:id/events": "read",
  "GET /session/:id/file/list": "read",
  "GET /session/:id/file/read": "read",
  "GET /session/:id/patch": "read",
  "GET /session/:id/transcript": "read",
  "GET /session/:id/message/list": "read",
  "POST /session/:id/message/:messageId/withdraw": "write",
  "POST /session/:id/share/create": "write",
  "GET /session/:id/share/list": "read",
  "GET /share/list": "admin",
  "POST /session/:id/share/:shareId/revoke": "write",
  "POST /session/:id/labels": "write",
  "POST /session/:id/archive": "write",
  "POST /session/:id/unarchive": "write",
  "GET /session/changes": "read",
  "GET /insight/figures": "read",
  "GET /insight/csv": "read",
  "GET /label/list": "read",
  "GET /session/:id/diff": "read",
  "GET /session/:id/answer/list": "read",
  "POST /task/create": "write",
  "GET /task/list": "read",
  "GET /task/search": "read",
  "GET /system/health": "admin",
  "GET /user/list": "admin",
  "POST /user/invite": "admin",
  "POST /user/:id/invite": "admin",
  "POST /user/:id/update": "admin",
  "POST /user/:id/erase": "admin",
  "POST /webhook/create": "admin",
  "GET /webhook/list": "admin",
  "GET /webhook/:id": "admin",
  "POST /webhook/:id/update": "admin",
  "POST /webhook/:id/rotate": "admin",
  "POST /webhook/:id/delete": "admin",
  "POST /webhook/:id/test": "admin",
};

/** No operations: the description of the API, and what a cluster asks for. They show nothing of any organization. */
const others = new Set([
  ..."/schemas/automation.json /openapi.json /skills/offstage/SKILL.md /healthz /readyz /metrics"
    .split(" ")
    .map((path) => `GET ${path}`),
  ..."oauth-protected-resource oauth-protected-resource/mcp oauth-authorization-server"
    .split(" ")
    .map((name) => `GET /.well-known/${name}`),
  "DELETE /mcp",
]);

/** What each scope holds, written once more than in the program. */
const holds: Readonly<Record<Scope, readonly Scope[]>> = {
  trigger: ["trigger"],
  read: ["read"],
  write: ["write", "read", "trigger"],
  admin: ["admin", "write", "read", "trigger"],
};

interface Route {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly operationId: string;
  readonly missingKey: number;
}

interface Credential {
  readonly name: string;
  readonly call: Call;
  /** Null: it is none that is good. */
  readonly scopes: readonly Scope[] | null;
}

let api: TestApp;
const routes: Route[] = [];
const allUrls: string[] = [];
const credentials: Credential[] = [];
let foreignKey: string;

/** Fastify publishes every app when it begins, so that its routes are seen as it adds them. */
function seeRoutes(message: unknown): void {
  const { fastify } = message as { fastify: FastifyInstance };
  fastify.addHook("onRoute", ({ url, method, config, schema }) => {
    for (const each of [method].flat()) {
      allUrls.push(`${each} ${url}`);
      if ((each !== "GET" && each !== "POST") || config?.operation === undefined) continue;
      const { operationId = "" } = (schema ?? {}) as { operationId?: string };
      routes.push({
        method: each as Route["method"],
        url,
        operationId,
        missingKey: config.operation.missingKey ?? 401,
      });
    }
  });
}

beforeAll(async () => {
  subscribe("fastify.initialization", seeRoutes);
  api = await createTestApp();
  unsubscribe("fastify.initialization", seeRoutes);
  await addCredentials();
});

afterAll(() => api?.close());

async function addCredentials(): Promise<void> {
  const { database, organizationId } = api;
  const input = { expiresAt: null, automationIds: null };
  const keyOf = async (scopes: Scope[], more: object = {}): Promise<{ key: string; id: string }> => {
    const { key, record } = await createKey(database, organizationId, { name: "table", scopes, ...input, ...more });
    return { key, id: record.id };
  };
  const good = (name: string, call: Call, scopes: readonly Scope[]) => void credentials.push({ name, call, scopes });
  const bad = (name: string, call: Call) => void credentials.push({ name, call, scopes: null });
  const cookie = (token: string, more: Record<string, string> = {}): Call => ({
    key: null,
    headers: { cookie: `offstage_session=${token}`, ...more },
  });
  const browser = { days: 30, address: null, userAgent: null };
  const sets: Scope[][] = [["admin"], ["read", "write"], ["write"], ["read"], ["trigger"], ["read", "trigger"]];
  for (const scopes of sets) {
    const name = scopes.join(" and ");
    const { key, id } = await keyOf(scopes);
    good(`a key to ${name}`, { key }, scopes);
    const principal: Principal = { organizationId, keyId: id, userId: null, scopes, automationIds: null };
    good(
      `a browser that showed a key to ${name}`,
      cookie(await createBrowserSession(database, principal, browser)),
      scopes,
    );
  }
  const limited = await keyOf(["trigger"], { automationIds: [crypto.randomUUID()] });
  good("a key to trigger one automation", { key: limited.key }, ["trigger"]);
  for (const [role, scopes] of [
    ["admin", ["admin"]],
    ["member", ["read", "write"]],
    ["viewer", ["read"]],
  ] as const) {
    const identity = {
      issuer: "https://id.example",
      subject: role,
      login: null,
      email: null,
      name: role,
      organizations: [],
    };
    const user = await signInUser(database, organizationId, identity, role);
    // What was written of it when it signed in does not count, but the role that it has now.
    const principal = {
      organizationId,
      keyId: null,
      userId: user?.id ?? "",
      scopes: ["admin"],
      automationIds: null,
    } as const;
    good(`a ${role}'s browser`, cookie(await createBrowserSession(database, principal, browser)), scopes);
    if (role === "member") {
      const other = await signInUser(database, organizationId, { ...identity, subject: "disabled" }, role);
      const token = await createBrowserSession(database, { ...principal, userId: other?.id ?? "" }, browser);
      const owned = { name: "owned", scopes: ["admin" as const], automationIds: null, userId: other?.id ?? "" };
      const { key, record } = await createKey(database, organizationId, owned);
      const lent = { ...principal, userId: null, keyId: record.id };
      const lentToken = await createBrowserSession(database, lent, browser);
      await updateUser(database, organizationId, other?.id ?? "", { disabled: true });
      const demoted = await signInUser(database, organizationId, { ...identity, subject: "demoted" }, "admin");
      const theirs = await createKey(database, organizationId, { ...owned, userId: demoted?.id ?? "" });
      const asAdmin = { ...lent, keyId: theirs.record.id };
      const theirToken = await createBrowserSession(database, asAdmin, browser);
      // It is known by now that the key may do all.
      expect((await api.get("/key/list", { key: theirs.key })).status).toBe(200);
      await updateUser(database, organizationId, demoted?.id ?? "", { role });
      good("the key of an admin who is a member by now", { key: theirs.key }, ["write"]);
      good("a browser that signed in with the key of an admin who is a member by now", cookie(theirToken), ["write"]);
      bad("the browser of a user who was disabled", cookie(token));
      bad("the key of a user who was disabled", { key });
      bad("a browser that signed in with the key of a user who was disabled", cookie(lentToken));
    }
  }
  bad("nothing", { key: null });
  bad("a key that there is not", { key: `ofs_${"x".repeat(49)}` });
  bad("an empty key", { key: null, headers: { authorization: "Bearer " } });
  bad("a key as a password", { key: null, headers: { authorization: `Basic ${btoa(`x:${api.adminKey}`)}` } });
  bad("two keys", { key: null, headers: { authorization: `Bearer ${api.adminKey}, Bearer ${api.adminKey}` } });
  bad("a cookie that there is not", cookie("x".repeat(43)));
  bad("a key's value as a cookie", cookie(api.adminKey));
  const revoked = await keyOf(["admin"]);
  const principal = {
    organizationId,
    keyId: revoked.id,
    userId: null,
    scopes: ["admin"],
    automationIds: null,
  } as const;
  const ofRevoked = await createBrowserSession(database, principal, browser);
  await revokeKey(database, organizationId, revoked.id);
  bad("a key that was revoked", { key: revoked.key });
  bad("the browser of a key that was revoked", cookie(ofRevoked));
  const expired = await keyOf(["admin"], { expiresAt: new Date(Date.now() - 1_000).toISOString() });
  bad("a key that has expired", { key: expired.key });
  const old = await createBrowserSession(database, { ...principal, keyId: null }, { ...browser, days: 0 });
  bad("a browser whose sign-in has ended", cookie(old));
  const elsewhere = await addOrganization(database);
  const foreigner = {
    issuer: "https://id.example",
    subject: "f",
    login: null,
    email: null,
    name: "f",
    organizations: [],
  };
  const userId = (await signInUser(database, elsewhere, foreigner, "admin"))?.id ?? "";
  const foreign = { name: "foreign", scopes: ["admin" as const], ...input, userId };
  foreignKey = (await createKey(database, elsewhere, foreign)).key;
}

/** Each id of the path is the same: that of an automation's trigger of the API is the automation's, and a session's link has its id. */
const pathOf = (url: string, id: string = crypto.randomUUID()): string =>
  url.replace(/:(?:id|messageId|shareId|keyOrId|method)/gu, id);
const isHeld = (scopes: readonly Scope[], scope: Scope): boolean => scopes.some((each) => holds[each].includes(scope));

function outcomeOf(status: number, { error = "" }: { readonly error?: string }): string {
  if ([200, 400, 404, 409].includes(status) && !error.includes("cannot be determined")) return "let in";
  return `${status} ${/lacks the scope \w+|limited to other automations/u.exec(error)?.[0] ?? ""}`.trim();
}

/** What is a person's own, but for what is refused for its body before that. */
function isPersonal(url: string): boolean {
  if (/^\/(?:account|subscription)\/(?:create|:id\/update)$/u.test(url) || url === "/notice/settings/update")
    return false;
  return /^\/(?:account|notice|subscription)\//u.test(url) || /^\/session\/(?::id\/read|read-all)$/u.test(url);
}

function wantedOf({ name, scopes }: Credential, scope: Scope, { url, missingKey }: Route): string {
  if (scopes === null) return name === "nothing" ? `${missingKey}` : "401";
  if (!isHeld(scopes, scope)) return `403 lacks the scope ${scope}`;
  // They are a person's: the other credentials have none.
  if (isPersonal(url) && !/^a \w+'s browser$| of an admin who is a member by now$/u.test(name)) return "403";
  // A person decides, at our page.
  if (url === "/oauth/request/:id" && !name.includes("browser")) return "403";
  return name === "a key to trigger one automation" ? "403 limited to other automations" : "let in";
}

test("every route is in the table of what it asks for, and nothing else is", () => {
  const known = routes.map(({ method, url }) => `${method} ${url}`).toSorted();
  expect(known).toEqual(Object.keys(needed).toSorted());
  const all = allUrls.filter((each) => !/^(?:HEAD|OPTIONS) /u.test(each));
  expect(all.filter((each) => needed[each] === undefined).toSorted()).toEqual([...others].toSorted());
});

describe("each credential does what its scopes hold, and nothing else, at every route", () => {
  test("the table is of all kinds of credentials", () => {
    expect(credentials.filter(({ scopes }) => scopes !== null).length).toBeGreaterThanOrEqual(16);
    expect(credentials.filter(({ scopes }) => scopes === null).length).toBeGreaterThanOrEqual(11);
  });

  test.each(Object.entries(needed).filter(([, scope]) => scope !== "nothing"))(
    "%s asks for %s",
    async (name, scope) => {
      const route = routes.find(({ method, url }) => `${method} ${url}` === name);
      if (route === undefined) throw new Error(`there is no ${name}`);
      const outcomes: string[] = [];
      for (const { name: who, call } of credentials) {
        // An empty body and an unknown id: an admitted caller gets that error, and nothing changes.
        const { status, body } = await api.request(route.method, pathOf(route.url), { ...call, body: {} });
        outcomes.push(`${who}: ${outcomeOf(status, body)}`);
      }
      const wanted = credentials.map((each) => `${each.name}: ${wantedOf(each, scope as Scope, route)}`);
      expect(outcomes).toEqual(wanted);
    },
  );

  test("a HEAD is let in where the GET is, and nowhere else", async () => {
    for (const { url } of routes.filter(({ method }) => method === "GET")) {
      for (const { name, call } of credentials) {
        const headers = { ...(call.key != null && { authorization: `Bearer ${call.key}` }), ...call.headers };
        const [head, get] = await Promise.all(
          (["HEAD", "GET"] as const).map((method) => api.app.inject({ method, url: pathOf(url), headers })),
        );
        expect([url, name, head?.statusCode, head?.body]).toEqual([url, name, get?.statusCode, ""]);
      }
    }
  });

  test("a browser's cookie changes nothing when another site sends it", async () => {
    const browser = credentials.find(({ name }) => name === "a admin's browser");
    for (const { method, url } of routes.filter(
      (route) => route.method === "POST" && needed[`POST ${route.url}`] !== "nothing",
    )) {
      for (const headers of [
        { origin: "https://evil.example" },
        { "sec-fetch-site": "cross-site" },
        { origin: "null" },
      ]) {
        const answer = await api.request(method, pathOf(url), {
          key: null,
          headers: { ...browser?.call.headers, ...(headers as Record<string, string>) },
        });
        expect([url, answer.status, answer.body.error]).toEqual([url, 403, "this request came from another site"]);
      }
    }
  });
});

describe("another organization's admin", () => {
  /** Ids of everything that there is, by the first word of the paths that take them. */
  const own = new Map<string, string>();
  const word = "own";

  beforeAll(async () => {
    const made = async (path: string, body: unknown): Promise<string> => {
      const answer = await api.post(path, body);
      expect([path, answer.status]).toEqual([path, 200]);
      return answer.body.id;
    };
    const first = async (path: string, list: string): Promise<string> => (await api.get(path)).body[list][0].id;
    const users = (await api.get("/user/list")).body.users as { id: string; role: string; disabledAt: string | null }[];
    own.set("user", users.find(({ role, disabledAt }) => role === "member" && disabledAt === null)?.id ?? "");
    const { key } = await createKey(api.database, api.organizationId, {
      name: "owned",
      scopes: ["write"],
      userId: own.get("user"),
    });
    const account = { webUrl: "https://own.example", token: "a-secret-token" };
    const subscription = { endpoint: "https://push.example/own", keys: { p256dh: "BAAA", auth: "AAAA" } };
    own.set("subscription", (await api.post("/subscription/create", subscription, { key })).body.id);
    own.set("account", (await api.post("/account/create", account, { key })).body.id);
    own.set("repository", await made("/repository/create", { url: "https://git.example/acme/own" }));
    const codeRepoIds = [own.get("repository")];
    own.set("session", await made("/session/create", { prompt: "ours", codeRepoIds }));
    await api.database.pool.query(
      `insert into share_link (id, organization_id, session_id, hash, expires_at)
       values ($1, $2, $1, 'no token', now() + interval '1 day')`,
      [own.get("session"), api.organizationId],
    );
    own.set(
      "automation",
      await made("/automation/create", {
        name: word,
        macro: word,
        instructions: "x",
        codeRepoIds,
        triggers: [{ type: "api" }],
      }),
    );
    own.set("agent", own.get("automation") ?? "");
    own.set("job", await made(`/automation/${word}/trigger`, {}));
    own.set("ledger", await first("/ledger/list", "entries"));
    own.set("webhook", await made("/webhook/create", { url: "https://hooks.example.com/own" }));
    await api.post(`/webhook/${own.get("webhook")}/test`, {});
    own.set("delivery", await first("/delivery/list", "deliveries"));
    own.set("secret", await made("/secret/create", { name: "OWN", value: "a secret value" }));
    const registry = { kind: "npm", url: "https://npm.example/", scope: "@own", token: "a secret token" };
    own.set("registry", await made("/registry/create", registry));
    const connection = { kind: "github", credential: { type: "token", token: "a-secret-token" } };
    own.set("connection", await made("/connection/create", connection));
    own.set("key", await made("/key/create", { name: word }));
    const organization = await api.post("/organization/create", { name: word });
    own.set("organization", organization.body.organization.id);
    own.set("grant", await addGrant(api.database, api.organizationId));
    own.set("login", await first("/login/list", "logins"));
  });

  /** All that the organization has, but for when it was last used, and for what is written of who asked. */
  async function everything(): Promise<string> {
    const { pool } = api.database;
    const { rows } = await pool.query<{ name: string }>(
      `select table_name as name from information_schema.columns
       where column_name = 'organization_id' and table_schema = 'public' and table_name not in ('audit', 'idempotency') order by 1`,
    );
    const dumps: unknown[] = [];
    for (const { name } of rows) {
      const { rows: found } = await pool.query(
        `select to_jsonb(row) - 'last_used_at' as row from "${name}" row where organization_id = $1 order by 1`,
        [api.organizationId],
      );
      dumps.push([name, found]);
    }
    const events = await pool.query("select count(*)::int as count from event");
    return JSON.stringify([dumps, events.rows]);
  }

  const bodyOf = ({ operationId }: Route): unknown =>
    examplesOf(operationId, {
      repository: own.get("repository") ?? "",
      word: `w${Math.random().toString(36).slice(2, 10)}`,
      key: "x",
    }) ?? {};
  const withIds = (): Route[] =>
    routes
      // A program's request has no owner until a person decides it: test/mcp/oauth.test.ts.
      .filter(({ url }) => /:(?:id|keyOrId)/u.test(url) && !url.startsWith("/oauth/"))
      .toSorted((a, b) => Number(ends(a)) - Number(ends(b)));
  const ends = ({ url }: Route): boolean => /\/(?:delete|revoke|erase)$/u.test(url);

  test("finds none of what there is by its id, and changes nothing of it", async () => {
    const before = await everything();
    for (const route of withIds()) {
      const id = own.get(route.url.split("/")[1] ?? "");
      expect([route.url, typeof id]).toEqual([route.url, "string"]);
      for (const spelling of [id, id?.toUpperCase(), ...(/keyOrId/u.test(route.url) ? [word] : [])]) {
        const answer = await api.request(route.method, pathOf(route.url, spelling), {
          key: foreignKey,
          body: bodyOf(route),
        });
        // What is for admins of the server alone does not even look for it.
        const wanted = route.url.startsWith("/organization/") ? 403 : 404;
        expect([route.url, answer.status]).toEqual([route.url, wanted]);
      }
    }
    expect(await everything()).toBe(before);
  });

  test("sees nothing of it in any list, also if it asks for it by name", async () => {
    const lists = routes.filter(
      ({ method, url }) => method === "GET" && !url.includes(":") && needed[`GET ${url}`] !== "nothing",
    );
    const narrowed = ["automation", "repository", "webhook", "session"].map((noun) => `${noun}Id=${own.get(noun)}`);
    for (const { url } of lists) {
      const asked = url.endsWith("/search") ? ["q=ours"] : ["", ...narrowed];
      for (const query of asked) {
        const answer = await api.get(`${url}?${query}`, { key: foreignKey });
        // What is written of who asked holds what was asked for: see below.
        const isAudit = url === "/audit/list" || url === "/organization/export";
        const shown = isAudit || answer.status !== 200 ? "" : JSON.stringify(answer.body);
        expect([url, query, [...own.values()].filter((id) => shown.includes(id))]).toEqual([url, query, []]);
        expect([url, query, answer.status < 500]).toEqual([url, query, true]);
      }
    }
    // Of the asker alone.
    const { body: audit } = await api.get("/audit/list?limit=100", { key: foreignKey });
    expect(new Set(audit.entries.map(({ keyName }: { keyName: string }) => keyName.split(" ")[0]))).toEqual(
      new Set(["foreign"]),
    );
  });

  test("can name none of it in a body", async () => {
    const before = await everything();
    const codeRepoIds = [own.get("repository")];
    for (const [path, body] of [
      ["/session/create", { prompt: "x", codeRepoIds }],
      ["/task/create", { prompt: "x", codeRepoIds }],
      ["/automation/create", { name: "x", macro: "theirs", instructions: "x", codeRepoIds }],
      ["/secret/create", { name: "THEIRS", value: "a secret value", repositoryId: own.get("repository") }],
      ["/key/create", { name: "x", scopes: ["trigger"], automationIds: [own.get("automation")] }],
    ] as const) {
      const { status } = await api.post(path, body, { key: foreignKey });
      expect([path, status === 400 || status === 404]).toEqual([path, true]);
    }
    expect(await everything()).toBe(before);
  });

  // Last, since it changes what there is: the ids of the tests above lead somewhere.
  test("asks for what its own admin gets at every one of these routes", async () => {
    for (const route of withIds()) {
      const id = own.get(route.url.split("/")[1] ?? "");
      const body = route.operationId === "eraseOtherOrganization" ? { name: word } : bodyOf(route);
      const answer = await api.request(route.method, pathOf(route.url, id), { body });
      expect([route.url, answer.status, answer.status === 404]).toEqual([route.url, answer.status, false]);
    }
  });
});
