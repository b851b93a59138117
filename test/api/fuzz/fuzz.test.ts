import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Scope } from "../../../src/domain/people/key.ts";
import { createKey } from "../../../src/store/people/keys.ts";
import { createTestApp, type TestApp } from "../app.ts";
import { check, type Report } from "./check.ts";
import { operationsOf, type Operation } from "./description.ts";
import { requestsOf, type FuzzRequest, type Surroundings } from "./requests.ts";

/** Every operation of the API's own description, called over HTTP with what its schemas say and with what they do not. */
const total = 10_000;
/** What there is is made anew for each: the one before may have deleted it. */
const rounds = 5;
/** Things of each kind in a round. */
const ofEach = 3;
const concurrency = 3;
const marker = "theirs-and-nobody-elses";
/** The same number gives the same requests, but for the ids of what there is. */
const seed = Number(process.env["OFFSTAGE_FUZZ_SEED"] ?? 20_260_808);

let testApp: TestApp;
let origin: string;
let operations: Operation[];
let otherOrganizationId: string;
let theirKey: string;

beforeAll(async () => {
  testApp = await createTestApp({ rateLimitPerMinute: 1_000_000_000, hosts: ["127.0.0.1"] });
  origin = await testApp.app.listen({ host: "127.0.0.1", port: 0 });
  operations = operationsOf((await testApp.request("GET", "/openapi.json", { key: null })).body);
  const { database } = testApp;
  otherOrganizationId = crypto.randomUUID();
  // Its name alone is for the server's own admins to see.
  await database.pool.query("insert into organization (id, name) values ($1, 'theirs')", [otherOrganizationId]);
  theirKey = (await createKey(database, otherOrganizationId, { name: marker, scopes: ["admin"] })).key;
});

afterAll(() => testApp?.close());

/** Something of each kind, of this organization and of another, and keys of each role. */
async function surroundings(round: number): Promise<Surroundings> {
  const { database, organizationId, adminKey } = testApp;
  // A list of the round before may allow no repository.
  await database.pool.query("update organization set repositories = null");
  const own: Record<string, string[]> = {};
  const theirs: Record<string, string[]> = {};
  for (let count = 0; count < ofEach; count += 1) {
    await fill(own, adminKey, organizationId, "mine", `${round}-${count}`);
    await fill(theirs, theirKey, otherOrganizationId, marker, `${round}-${count}`);
  }
  // A further one, for what admins of the server may do.
  const { organization } = (await testApp.post("/organization/create", { name: `further ${round}` })).body;
  own["organization"] = [organization.id];
  const keyOf = async (scopes: readonly Scope[], expiresAt?: string): Promise<string> =>
    (await createKey(database, organizationId, { name: "mine", scopes, expiresAt })).key;
  const keys = [
    await keyOf(["trigger"]),
    await keyOf(["read"]),
    await keyOf(["write"]),
    await keyOf(["admin"], "2020-01-01T00:00:00Z"),
  ];
  const nothing = ["00000000-0000-4000-8000-000000000000", organizationId, otherOrganizationId];
  const ids = [...Object.values(own), ...Object.values(theirs)].flat();
  return { own, ids: [...ids, ...nothing], keys: [...keys, theirKey, "ofs_wrong", "", null], mainKey: adminKey };
}

/** Adds the ids of one of each, by the word before them in paths. */
async function fill(
  ids: Record<string, string[]>,
  key: string,
  organizationId: string,
  word: string,
  name: string,
): Promise<void> {
  const { pool } = testApp.database;
  const add = (noun: string, id: string): void => void (ids[noun] ??= []).push(id);
  const create = async (noun: string, path: string, body: unknown): Promise<string> => {
    const { status, body: made } = await testApp.post(path, body, { key });
    if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(made)}`);
    add(noun, made.id);
    return made.id;
  };
  const repositoryId = await create("repository", "/repository/create", {
    url: `https://git.example.com/acme/${word}-${name}`,
  });
  const automation = { name: word, macro: `same-${name}`, instructions: `${word} {{ event.x | default: 1 }}` };
  const automationId = await create("automation", "/automation/create", {
    ...automation,
    codeRepoIds: [repositoryId],
    triggers: [{ type: "webhook" }, { type: "source", source: "cloudEvents" }],
  });
  const { body: made } = await testApp.get(`/automation/${automationId}`, { key });
  for (const { id, type } of made.triggers) {
    add("trigger", id);
    if (type === "webhook") add("hook", id);
  }
  add("automation", automation.macro);
  add("agent", automationId);
  for (const queueRightAway of [true, false]) {
    await create("session", "/session/create", { prompt: word, codeRepoIds: [repositoryId], queueRightAway });
  }
  await pool.query(
    `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url)
     select gen_random_uuid(), session.organization_id, session.id, repository_id, branch_name, 'main', 1, 'https://git.example.com/1'
     from session join session_repository on session_id = session.id where session.organization_id = $1
     on conflict do nothing`,
    [organizationId],
  );
  const job = await create("job", `/automation/${automationId}/trigger`, { x: 1 });
  add("ledger", job);
  await pool.query("update job set status = 'failed', error = $2 where id = $1", [job, word]);
  // One that has not begun, and so can be cancelled.
  await create("job", `/automation/${automationId}/trigger`, { x: 2 });
  const webhook = await create("webhook", "/webhook/create", { url: `https://hooks.example.com/${word}` });
  const { body: delivery } = await testApp.post(`/webhook/${webhook}/test`, {}, { key });
  add("delivery", delivery.id);
  await pool.query("update webhook_delivery set status = 'dead' where id = $1", [delivery.id]);
  const secret = { name: `SECRET_${name.replace("-", "_")}`, value: `a value of ${word}`, repositoryId };
  await create("secret", "/secret/create", secret);
  const scope = `@${name.toLowerCase()}`;
  await create("registry", "/registry/create", { kind: "npm", url: "https://npm.example/", scope, token: word });
  const connection = { kind: "git", webUrl: `https://${word}-${name}.example` };
  await create("connection", "/connection/create", { ...connection, credential: { type: "token", token: word } });
  await create("key", "/key/create", { name: word, role: "viewer" });
  const login = await pool.query<{ id: string }>(
    `insert into browser_session (hash, organization_id, scopes, user_agent, expires_at)
     values (sha256($1::bytea), $2, '{admin}', $3, now() + interval '1 hour') returning id`,
    [crypto.randomUUID(), organizationId, word],
  );
  for (const { id } of login.rows) add("login", id);
  // One whom a provider signs in, and one who was invited.
  for (const issuer of ["https://id.example.com", "invitation"]) {
    const user = crypto.randomUUID();
    await pool.query(
      "insert into user_account (id, organization_id, issuer, subject, name, role) values ($1, $2, $5, $4, $3, 'member')",
      [user, organizationId, word, user, issuer],
    );
    add("user", user);
  }
  // Whose the key is, and an account: this one is never disabled or erased, which would end the key.
  const owner = crypto.randomUUID();
  await pool.query(
    "insert into user_account (id, organization_id, issuer, subject, name, role) values ($1, $2, 'https://id.example.com', $4, $3, 'admin')",
    [owner, organizationId, word, owner],
  );
  await pool.query("update api_key set user_id = $2 where hash = sha256(convert_to($1, 'UTF8'))", [key, owner]);
  const endpoint = `https://push.example.com/${word}-${name}`;
  await create("subscription", "/subscription/create", { endpoint, keys: { p256dh: "BAAA", auth: "AAAA" } });
  await create("account", "/account/create", { webUrl: `https://${word}-${name}.example`, token: word });
}

/**
 * The requests of a round: as many of each operation, in an order in which they meet each other's results. What deletes
 * comes among the last, so that not all of the others find nothing.
 */
function requestsOfRound(around: Surroundings, round: number): FuzzRequest[] {
  const each = Math.ceil(total / rounds / operations.length);
  const drawn = operations.flatMap((operation, index) =>
    fc.sample(requestsOf(operation, around), { seed: seed + round * 1_000 + index, numRuns: each }),
  );
  const shuffled =
    fc.sample(fc.shuffledSubarray(drawn, { minLength: drawn.length }), { seed: seed + round, numRuns: 1 })[0] ?? [];
  const late = Math.floor(shuffled.length * 0.7);
  const deletes = ({ operation }: FuzzRequest): boolean => /^(?:delete|revoke)/u.test(operation);
  const [early, rest] = [shuffled.slice(0, late), shuffled.slice(late)];
  const mixed = [...rest, ...early.filter(deletes)];
  return [
    ...early.filter((request) => !deletes(request)),
    ...(fc.sample(fc.shuffledSubarray(mixed, { minLength: mixed.length }), { seed: seed + round, numRuns: 1 })[0] ??
      []),
  ];
}

function tell(reports: readonly Report[]): string {
  const sent = reports.reduce((sum, report) => sum + report.sent, 0);
  const worst = reports.flatMap((report) => [...report.operations].map(([name, { worstMs }]) => ({ name, worstMs })));
  const [slowest] = worst.toSorted((one, other) => other.worstMs - one.worstMs);
  const statuses = new Map<number, number>();
  for (const report of reports) {
    for (const [status, count] of report.statuses) statuses.set(status, (statuses.get(status) ?? 0) + count);
  }
  const counts = [...statuses]
    .toSorted(([one], [other]) => one - other)
    .map(([status, count]) => `${count} × ${status}`);
  return `fuzz of the API, seed ${seed}: ${sent} requests, ${counts.join(", ")}; slowest ${slowest?.name} ${Math.round(slowest?.worstMs ?? 0)} ms`;
}

test("no operation breaks, dawdles, or shows another organization's data, whatever it is sent", async () => {
  expect(operations.length).toBeGreaterThan(60);
  const reports: Report[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const requests = requestsOfRound(await surroundings(round), round);
    reports.push(await check({ origin, requests, concurrency, forbidden: { text: marker, except: theirKey } }));
  }
  console.log(tell(reports));
  expect(reports.flatMap(({ complaints }) => complaints)).toEqual([]);
  const leastEach = Math.floor(total / operations.length);
  const sumOf = (operationId: string, field: "count" | "succeeded"): number =>
    reports.reduce((sum, report) => sum + (report.operations.get(operationId)?.[field] ?? 0), 0);
  const names = operations.map(({ operationId }) => operationId);
  expect(names.filter((name) => sumOf(name, "count") < leastEach)).toEqual([]);
  // Else it was always refused before it began, as an erasure must be here, which would end everything else, and what is not signed.
  const needsMore = [
    "deliverToConnection",
    "eraseOrganization",
    "eraseOtherOrganization",
    // A browser that a provider signed in, of whose person there is another account.
    "switchOrganization",
    // A forge that can be asked.
    "searchBranches",
    "searchFiles",
    // A worker, which has files.
    "listFiles",
    "readFile",
    // A program's request, which a person in a browser decides, and what comes of it.
    "decideOAuthRequest",
    "getOAuthRequest",
    "revokeGrant",
    // A stream that ends by itself, a browser's own address, its secret, a link to a session, and a message that waits behind a turn.
    "renewSubscription",
    "revokeShare",
    "streamSessionChanges",
    "unsubscribe",
    "withdrawMessage",
  ];
  expect(names.filter((name) => sumOf(name, "succeeded") === 0).toSorted()).toEqual(needsMore.toSorted());
  expect(reports.reduce((sum, { sent }) => sum + sent, 0)).toBeGreaterThanOrEqual(total);
  const succeeded = reports.reduce((sum, { statuses }) => sum + (statuses.get(200) ?? 0), 0);
  expect(succeeded).toBeGreaterThan(total / 4);
});

/** A small server with each fault that the fuzz is there to find. */
async function faulty(): Promise<{ server: Server; origin: string }> {
  const server = createServer((request, response) => {
    const answer = (status: number, body: string, type = "application/json"): void => {
      response.writeHead(status, { "content-type": type }).end(body);
    };
    switch (request.url) {
      case "/breaks":
        return answer(500, '{"error":"it broke"}');
      case "/dawdles":
        return void setTimeout(() => answer(200, "{}"), 2_300);
      case "/tells":
        return answer(200, JSON.stringify({ name: marker }));
      case "/shows":
        return answer(400, "<h1>Bad Request</h1>", "text/html");
      case "/hangs-up":
        return void request.socket.destroy();
      default:
        return answer(200, "{}");
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test("what breaks, dawdles, tells, hangs up or answers in another form would be noticed", async () => {
  const { server, origin: at } = await faulty();
  const paths = ["/good", "/breaks", "/dawdles", "/tells", "/shows", "/hangs-up"];
  const requests = paths.map((target) => ({ operation: target, method: "GET", target, headers: [], body: null }));
  const report = await check({ origin: at, requests, concurrency, forbidden: { text: marker, except: "no key" } });
  server.close();
  server.closeAllConnections();
  const complaintOf = (path: string): string => report.complaints.filter((each) => each.includes(`${path} `)).join();
  expect(complaintOf("/breaks")).toContain("a fault of the server's");
  expect(complaintOf("/dawdles")).toContain("slow");
  expect(complaintOf("/tells")).toContain("has another organization's data");
  expect(complaintOf("/shows")).toContain("not in the form of errors");
  expect(complaintOf("/hangs-up")).toContain("no answer");
  expect(report.complaints).toHaveLength(5);
  expect(report.operations.get("/good")?.count).toBe(1);
});
