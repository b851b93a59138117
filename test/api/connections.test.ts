import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { checkConnection } from "../../src/forges/connections/check-connection.ts";
import { appManifest, convertManifest } from "../../src/forges/github/app-manifest.ts";
import { withReach } from "../../src/forges/http/reach.ts";
import { createGuardedFetch } from "../../src/gateway/egress/guarded-fetch.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { readConnectionForDelivery } from "../../src/store/secrets/event-connections.ts";
import {
  checkConnectionSoon,
  claimDueConnections,
  connectionAddresses,
  openConnections,
  saveConnectionHealth,
} from "../../src/store/secrets/opened-connections.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { rotateMasterKey } from "../../src/store/secrets/rotation.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { readerOf } from "../../src/inbound/forges/readers.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { signed, signedAt } from "../inbound/deliveries.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { addOrganization } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

let forge: TestForge;
let app: TestApp;
let changed: string[] = [];
/** Whether a check fails in itself. */
let failing = false;
const masterKey = randomBytes(32).toString("base64");
const vault = createVault(environmentKeyring(masterKey));

beforeAll(async () => {
  forge = await startForge();
  const reach = createGuardedFetch({ privateHosts: ["127.0.0.1"], setting: "OFFSTAGE_FORGE_HOSTS" });
  const configured = [{ kind: "github", webUrl: "https://github.com", apiUrl: "https://api.github.com" }] as const;
  app = await createTestApp({
    vault,
    connections: {
      check: (connection, credential) =>
        failing
          ? Promise.reject(new Error("failed"))
          : checkConnection(connection, credential, { reach, configured, signal: new AbortController().signal }),
      appManifest,
      convertAppManifest: ({ apiUrl }, code) =>
        withReach({ fetch: reach.fetch, refused: () => undefined }, () =>
          convertManifest(apiUrl ?? "", code, AbortSignal.timeout(hangTimeoutMs)),
        ),
      changed: (organizationId) => Promise.resolve(void changed.push(organizationId)),
    },
  });
});
beforeEach(async () => {
  changed = [];
  forge.setScopes("repo, workflow");
  await app.database.pool.query("delete from forge_connection");
});
afterAll(async () => {
  await app?.close();
  await forge?.close();
});

const body = (over: object = {}) => ({
  kind: "github",
  webUrl: forge.url,
  apiUrl: forge.apiUrl,
  credential: { type: "token", token: forge.token },
  ...over,
});
async function connect(over: object = {}) {
  const { status, body: made } = await app.post("/connection/create", body(over));
  expect([status, made.error]).toEqual([200, undefined]);
  return made;
}
const due = async () => {
  await app.database.pool.query("update forge_connection set next_check_at = now()");
  return claimDueConnections(app.database, vault, 10);
};

it("connects a forge, shows it, and never answers its credential", async () => {
  const made = await connect({ name: "Ours" });
  expect(made).toMatchObject({
    kind: "github",
    name: "Ours",
    webUrl: forge.url,
    credential: "token",
    account: "tester",
    health: { state: "ok", problems: [] },
    hookUrl: `http://offstage.test/hook/forge/${made.id}`,
  });
  expect(made.webhookSecret).toMatch(/^[0-9a-f]{64}$/u);
  expect(changed).toEqual([app.organizationId]);
  const { webhookSecret, ...shown } = made;
  const [got, listed] = [await app.get(`/connection/${made.id}`), await app.get("/connection/list")];
  expect(got.body).toEqual(shown);
  expect(listed.body).toEqual({ connections: [shown], nextCursor: null });
  const all = JSON.stringify([made, got.body, listed.body]);
  expect(all).not.toContain(forge.token);
  expect(JSON.stringify([got.body, listed.body])).not.toContain(webhookSecret);
  const { rows } = await app.database.pool.query<{ text: string }>(
    "select connection::text as text from forge_connection connection",
  );
  expect(rows[0]?.text).not.toContain(Buffer.from(forge.token).toString("hex"));
});

it("refuses a credential that lacks what sessions need, naming each scope with its reason, and saves nothing", async () => {
  forge.setScopes("read:org");
  const { status, body: answer } = await app.post("/connection/create", body());
  expect(status).toBe(400);
  expect(answer.error).toMatch(/^credential: missing repo: Sessions can't push branches and open pull requests\. Add/u);
  expect((await app.get("/connection/list")).body.connections).toEqual([]);
});

it("saves one that lacks something optional as degraded, and says what", async () => {
  forge.setScopes("repo");
  const made = await connect();
  expect(made.health).toMatchObject({ state: "degraded", problems: [{ missing: "workflow", essential: false }] });
  forge.setScopes("repo, workflow");
  const { body: checked } = await app.post(`/connection/${made.id}/check`, {});
  expect(checked.health).toMatchObject({ state: "ok", problems: [] });
});

it("has its own mention and trusted bots, and the server's settings again if these are removed", async () => {
  const made = await connect({ mention: "@Robot", allowedBots: ["Renovate[bot]", "renovate[bot]", "helper"] });
  expect(made).toMatchObject({ mention: "Robot", allowedBots: ["renovate[bot]", "helper"] });
  const update = async (changes: object) => (await app.post(`/connection/${made.id}/update`, changes)).body;
  expect(await update({ name: "Another" })).toMatchObject({
    mention: "Robot",
    allowedBots: ["renovate[bot]", "helper"],
  });
  expect(await update({ allowedBots: [] })).toMatchObject({ mention: "Robot", allowedBots: [] });
  expect(await update({ mention: null, allowedBots: null })).toMatchObject({ mention: null, allowedBots: null });
  const { body: got } = await app.get(`/connection/${made.id}`);
  expect(got).toMatchObject({ mention: null, allowedBots: null });
});

it.each([
  [{ mention: "two words" }, /^mention must be a name, such as offstage/u],
  [{ allowedBots: ["a, b"] }, /^allowedBots\.0 must be a bot's login, such as renovate\[bot\]/u],
])("refuses %j, naming the field and what it must be", async (over, problem) => {
  const { status, body: answer } = await app.post("/connection/create", body(over));
  expect([status, answer.error]).toEqual([400, expect.stringMatching(problem)]);
  expect((await app.get("/connection/list")).body.connections).toEqual([]);
});

it("replaces a credential only by one that is good, and keeps the webhook's secret", async () => {
  const { id, webhookSecret } = await connect();
  const wrong = await app.post(`/connection/${id}/update`, { credential: { type: "token", token: "wrong" } });
  expect([wrong.status, wrong.body.error]).toEqual([400, expect.stringContaining("missing a valid token")]);
  const [before] = await openConnections(app.database, vault, app.organizationId);
  expect(before?.credential).toEqual({ type: "token", token: forge.token });
  const renamed = await app.post(`/connection/${id}/update`, { name: "Another" });
  expect(renamed.body).toMatchObject({ name: "Another", credential: "token" });
  const updated = await app.post(`/connection/${id}/update`, { credential: { type: "token", token: forge.token } });
  expect(updated.status).toBe(200);
  expect(await readConnectionForDelivery(app.database, vault, id)).toMatchObject({ secrets: [webhookSecret] });
});

it("accepts the webhook secret before a rotation for a day, and no other", async () => {
  const { id, webhookSecret: first } = await connect();
  const secrets = async () => (await readConnectionForDelivery(app.database, vault, id))?.secrets;
  const { body: rotated } = await app.post(`/connection/${id}/rotate-secret`, {});
  expect(await secrets()).toEqual([rotated.webhookSecret, first]);
  expect(new Date(rotated.previousSecretUntil).valueOf()).toBeGreaterThan(Date.now() + 23 * 60 * 60_000);
  const { body: again } = await app.post(`/connection/${id}/rotate-secret`, {});
  expect(await secrets()).toEqual([again.webhookSecret, rotated.webhookSecret]);
  await app.database.pool.query("update forge_connection set previous_secret_until = now() - interval '1 second'");
  expect(await secrets()).toEqual([again.webhookSecret]);
  expect(await readConnectionForDelivery(app.database, vault, crypto.randomUUID())).toBeNull();
});

it("keeps which repositories work items are about, of Azure DevOps alone", async () => {
  const map = { Shop: "back end" };
  const refused = await app.post("/connection/create", body({ workItemRepositories: map }));
  expect([refused.status, refused.body.error]).toEqual([
    400,
    expect.stringContaining("only azure has work items") as string,
  ]);
  const { id } = await connect();
  const updated = await app.post(`/connection/${id}/update`, { workItemRepositories: map });
  expect([updated.status, updated.body.error]).toEqual([
    400,
    expect.stringContaining("only azure has work items") as string,
  ]);
  await app.database.pool.query("update forge_connection set kind = 'azure' where id = $1", [id]);
  const set = await app.post(`/connection/${id}/update`, { workItemRepositories: map });
  expect([set.body.error, set.body.workItemRepositories]).toEqual([undefined, map]);
  expect((await app.post(`/connection/${id}/update`, { name: "Boards" })).body.workItemRepositories).toEqual(map);
  expect((await readConnectionForDelivery(app.database, vault, id))?.workItemRepositories).toEqual(map);
  const none = await app.post(`/connection/${id}/update`, { workItemRepositories: null });
  expect(none.body.workItemRepositories).toBeNull();
});

it("takes a secret that the forge has made, as GitLab makes its signing tokens", async () => {
  const token = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString("base64")}`;
  const { id, webhookSecret } = await connect({ webhookSecret: token(1) });
  expect(webhookSecret).toBe(token(1));
  const verifies = async (secret: string) => {
    const known = await readConnectionForDelivery(app.database, vault, id);
    const delivery = signed("gitlab", {}, Buffer.from("{}"), secret);
    return readerOf("gitlab").verify(delivery, known?.secrets ?? [], signedAt);
  };
  expect([await verifies(token(1)), await verifies(token(2))]).toEqual([true, false]);
  const { body: rotated } = await app.post(`/connection/${id}/rotate-secret`, { webhookSecret: token(2) });
  expect(rotated.webhookSecret).toBe(token(2));
  expect([await verifies(token(1)), await verifies(token(2))]).toEqual([true, true]);
  for (const [wrong, problem] of [
    ["whsec_not-what-it-is-to-be", "must be whole"],
    ["short", "must be at least 16"],
    ["with spaces in it, which headers lose", "without spaces"],
  ] as const) {
    const { status, body: refused } = await app.post(`/connection/${id}/rotate-secret`, { webhookSecret: wrong });
    expect([status, refused.error]).toEqual([400, expect.stringContaining(problem) as string]);
  }
});

it("forgets all that is secret when it is deleted, and says how many repositories it served", async () => {
  const { host } = new URL(forge.url);
  await app.post("/repository/create", { url: `http://${host}/acme/served` });
  await app.post("/repository/create", { url: "https://git.example/acme/not" });
  const { id } = await connect();
  const { body: deleted } = await app.post(`/connection/${id}/delete`, {});
  expect(deleted).toMatchObject({ id, repositories: 1 });
  expect(await readConnectionForDelivery(app.database, vault, id)).toBeNull();
  expect(await openConnections(app.database, vault, app.organizationId)).toEqual([]);
  const { rows } = await app.database.pool.query("select sealed, master_key from forge_connection");
  expect(rows).toEqual([{ sealed: null, master_key: null }]);
  expect((await app.get(`/connection/${id}`)).status).toBe(404);
  expect((await connect()).id).not.toBe(id);
});

it("has one connection of an address for each organization", async () => {
  await connect();
  const again = await app.post("/connection/create", body());
  expect([again.status, again.body.error]).toEqual([409, expect.stringContaining("already exists")]);
  const other = await addOrganization(app.database);
  const { key } = await createKey(app.database, other, { name: "other", scopes: ["admin"] });
  expect((await app.post("/connection/create", body(), { key })).status).toBe(200);
  expect(await openConnections(app.database, vault, other)).toHaveLength(1);
  expect((await app.get("/connection/list", { key })).body.connections).toHaveLength(1);
});

it("takes the operator's forge for a connection that only receives events, if there is one", async () => {
  const credential = { type: "configured" };
  const made = await app.post("/connection/create", { kind: "github", credential });
  expect(made.body).toMatchObject({ webUrl: "https://github.com", apiUrl: "https://api.github.com", account: null });
  // No person's token goes to an address of it: the operator names the API.
  const addresses = await connectionAddresses(app.database, app.organizationId);
  expect(addresses.map(({ webUrl }) => webUrl)).not.toContain("https://github.com");
  const none = await app.post("/connection/create", { kind: "gitea", webUrl: "https://git.example", credential });
  expect([none.status, none.body.error]).toEqual([400, expect.stringContaining("there is no gitea at this address")]);
});

it.each([
  [{ kind: "gitea", webUrl: undefined }, /^webUrl is required for this kind/u],
  [{ webUrl: "https://x:y@git.example" }, /^webUrl must not contain credentials/u],
  [{ webUrl: "ssh://git.example" }, /^webUrl must be an https/u],
  [{ webUrl: "https://git.example/?a" }, /^webUrl must not have a query/u],
  [{ webUrl: "http://git.internal", apiUrl: undefined }, /^credential: missing encryption/u],
  [{ kind: "gitea", credential: { type: "app", appId: "1", privateKey: "x" } }, /app is for github only/u],
  [{ credential: { type: "token", token: "a b" } }, /^credential.token must be printable/u],
])("refuses %j with the field's name", async (over, sentence) => {
  const answer = await app.post("/connection/create", body(over));
  expect([answer.status, answer.body.error]).toEqual([400, expect.stringMatching(sentence)]);
});

it("is sealed again when the master key is rotated", async () => {
  const { id, webhookSecret } = await connect();
  const fresh = randomBytes(32).toString("base64");
  const both = createVault(environmentKeyring(`${fresh},${masterKey}`));
  expect(await rotateMasterKey(app.database, both)).toBe(1);
  const only = createVault(environmentKeyring(fresh));
  expect(await readConnectionForDelivery(app.database, only, id)).toMatchObject({ secrets: [webhookSecret] });
});

it("gives each due check to one worker, and drops a finding about a credential that was replaced", async () => {
  const { id } = await connect();
  expect(await claimDueConnections(app.database, vault, 10)).toEqual([]);
  const [claimed] = await due();
  expect(claimed).toMatchObject({ id, credential: { type: "token", token: forge.token } });
  expect(await claimDueConnections(app.database, vault, 10)).toEqual([]);
  const problem = { missing: "repo", why: "no", remedy: "add", essential: true };
  const stale = { id, revision: "another" };
  await saveConnectionHealth(app.database, stale, { account: null, problems: [problem] });
  expect((await app.get(`/connection/${id}`)).body.health.state).toBe("ok");
  if (claimed !== undefined) await saveConnectionHealth(app.database, claimed, { account: null, problems: [problem] });
  expect((await app.get(`/connection/${id}`)).body).toMatchObject({
    account: "tester",
    health: { state: "broken", problems: [problem] },
  });
});

it("is checked soon after a forge refused it, but not again and again", async () => {
  const { id } = await connect();
  await checkConnectionSoon(app.database, id);
  expect(await claimDueConnections(app.database, vault, 10)).toEqual([]);
  await app.database.pool.query("update forge_connection set checked_at = now() - interval '2 minutes'");
  await checkConnectionSoon(app.database, id);
  expect(await claimDueConnections(app.database, vault, 10)).toHaveLength(1);
  await checkConnectionSoon(app.database, id);
  expect(await claimDueConnections(app.database, vault, 10)).toEqual([]);
});

it("has at most a hundred connections of an organization, and says so", async () => {
  await connect();
  await app.database.pool.query(
    `insert into forge_connection (id, organization_id, kind, name, web_url, credential, sealed, master_key, state, problems, next_check_at)
     select gen_random_uuid(), organization_id, kind, name, 'https://git.example/' || number, credential, sealed, master_key, state,
       problems, next_check_at from forge_connection, generate_series(1, 98) as number`,
  );
  await connect({ webUrl: `${forge.url}/other` });
  const { status, body: answer } = await app.post("/connection/create", body({ webUrl: `${forge.url}/acme` }));
  expect([status, answer.error]).toEqual([409, expect.stringContaining("at most 100 connections")]);
});

it("is due again in ten minutes if an asked check says that it is broken", async () => {
  const { id } = await connect();
  forge.setScopes("read:org");
  const { body: checked } = await app.post(`/connection/${id}/check`, {});
  expect(checked.health.state).toBe("broken");
  const { rows } = await app.database.pool.query<{ minutes: number }>(
    "select round(extract(epoch from next_check_at - now()) / 60)::integer as minutes from forge_connection",
  );
  expect(rows).toEqual([{ minutes: 10 }]);
});

describe("the registration of a GitHub App by a manifest", () => {
  /** As far as GitHub's page, which has registered the App. */
  async function registered() {
    const started = await app.post("/connection/github-app/start", { webUrl: forge.url, name: "Our App" });
    expect(started.status).toBe(200);
    const cookie = String(started.headers["set-cookie"]).split(";")[0] ?? "";
    const page = await app.app.inject({ method: "GET", url: started.body.formUrl, headers: { cookie } });
    const [, action = "", manifest = ""] =
      /action="([^"]+)">\s*<input type="hidden" name="manifest" value="([^"]+)"/u.exec(page.body) ?? ["", "", ""];
    expect(page.headers["content-security-policy"]).toContain(`form-action ${forge.url}`);
    const unescaped = (value: string) => value.replaceAll("&quot;", '"').replaceAll("&amp;", "&");
    expect(JSON.parse(unescaped(manifest))).toEqual(started.body.manifest);
    const posted = await fetch(unescaped(action), {
      method: "POST",
      body: new URLSearchParams({ manifest: unescaped(manifest) }),
    });
    const [, back = ""] = /href="([^"]+)"/u.exec(await posted.text()) ?? [];
    const { pathname, search } = new URL(unescaped(back));
    return { started: started.body, cookie, url: `${pathname}${search}` };
  }
  const open = (url: string, cookie: string) => app.app.inject({ method: "GET", url, headers: { cookie } });

  it("ends with a connection whose App delivers to it, and leads on to the installation", async () => {
    const { started, cookie, url } = await registered();
    const answer = await open(url, cookie);
    expect([answer.statusCode, answer.headers.location]).toEqual([
      302,
      `${forge.url}/apps/offstage-4711/installations/new`,
    ]);
    const [connection] = (await app.get("/connection/list")).body.connections;
    expect(connection).toMatchObject({
      name: "Our App",
      credential: "app",
      account: "offstage-4711",
      hookUrl: started.manifest.hook_attributes.url,
      health: { state: "degraded", problems: [{ missing: "an installation" }] },
    });
    const { secrets } = (await readConnectionForDelivery(app.database, vault, connection.id)) ?? {};
    expect(secrets).toEqual([expect.stringMatching(/^hook-secret-/u)]);
    const [entry] = (await app.get("/audit/list?action=registerGitHubApp")).body.entries;
    expect(entry).toMatchObject({ actor: "key", outcome: "allowed" });
    const again = await app.post("/connection/github-app/start", { webUrl: forge.url });
    expect([again.status, again.body.error]).toEqual([409, expect.stringContaining("already exists")]);
  });

  it("keeps the App if it can't be checked, and has it checked again", async () => {
    const { cookie, url } = await registered();
    failing = true;
    expect((await open(url, cookie)).headers.location).toContain("/installations/new");
    failing = false;
    const [connection] = (await app.get("/connection/list")).body.connections;
    expect(connection).toMatchObject({
      credential: "app",
      health: { state: "degraded", problems: [{ missing: "a check" }] },
    });
    const { body: checked } = await app.post(`/connection/${connection.id}/check`, {});
    expect(checked).toMatchObject({
      account: "offstage-4711",
      installUrl: `${forge.url}/apps/offstage-4711/installations/new`,
      health: { problems: [{ missing: "an installation" }] },
    });
  });

  it("takes nothing if the key was revoked, or the erasure of the organization has begun, meanwhile", async () => {
    const { cookie, url } = await registered();
    const { pool } = app.database;
    await pool.query("update api_key set revoked_at = now() where organization_id = $1", [app.organizationId]);
    expect((await open(url, cookie)).headers.location).toBe("/settings?connection=failed#connections");
    await pool.query("update api_key set revoked_at = null where organization_id = $1", [app.organizationId]);
    await pool.query("insert into erasure (organization_id) values ($1)", [app.organizationId]);
    expect((await open(url, cookie)).headers.location).toBe("/settings?connection=failed#connections");
    await pool.query("delete from erasure");
    expect((await app.get("/connection/list")).body.connections).toEqual([]);
    // The code was not used up.
    expect((await open(url, cookie)).headers.location).toContain("/installations/new");
  });

  it("takes nothing from another browser, of another state, too late or twice", async () => {
    const { cookie, url } = await registered();
    const other = await app.post("/connection/github-app/start", { webUrl: forge.url });
    const otherCookie = String(other.headers["set-cookie"]).split(";")[0] ?? "";
    const locationOf = async (to: string, by: string) => (await open(to, by)).headers.location;
    expect(await locationOf(url, "")).toBe("/settings?connection=expired#connections");
    expect(await locationOf(url, otherCookie)).toBe("/settings?connection=expired#connections");
    expect(await locationOf(url.replace(/state=[^&]{20}/u, "state=x"), cookie)).toBe(
      "/settings?connection=expired#connections",
    );
    expect(await locationOf(url.replace(/code=[^&]+/u, "code=unknown"), cookie)).toBe(
      "/settings?connection=failed#connections",
    );
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 31 * 60_000 });
    expect(await locationOf(url, cookie)).toBe("/settings?connection=expired#connections");
    vi.useRealTimers();
    expect((await app.get("/connection/list")).body.connections).toEqual([]);
    expect(await locationOf(url, cookie)).toContain("/installations/new");
    expect(await locationOf(url, cookie)).toBe("/settings?connection=failed#connections");
    expect((await app.get("/connection/list")).body.connections).toHaveLength(1);
  });
});
