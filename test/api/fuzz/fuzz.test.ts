import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createKey } from "../../../src/store/keys.ts";
import { createTestApp, type TestApp } from "../app.ts";
import { check, type Report } from "./check.ts";
import { operationsOf, type Operation } from "./description.ts";
import { requestsOf, type FuzzRequest, type Surroundings } from "./requests.ts";

/** Every operation of the API's own description, called over HTTP with what its schemas say and with what they do not. */
const total = 10_000;
/** What there is is made anew for each: the one before may have deleted it. */
const rounds = 5;
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
  await database.pool.query("insert into organization (id, name) values ($1, $2)", [otherOrganizationId, marker]);
  theirKey = (await createKey(database, otherOrganizationId, { name: marker, scopes: ["admin"] })).key;
});

afterAll(() => testApp?.close());

/** Something of each kind, of this organization and of another, and keys of each role. */
async function surroundings(round: number): Promise<Surroundings> {
  const { database, organizationId, adminKey } = testApp;
  const ids: string[] = ["00000000-0000-4000-8000-000000000000", organizationId, otherOrganizationId];
  for (const [key, word] of [
    [adminKey, "mine"],
    [theirKey, marker],
  ] as const) {
    const create = async (path: string, body: unknown): Promise<string> => {
      const { status, body: made } = await testApp.post(path, body, { key });
      expect(status, `${path}: ${JSON.stringify(made)}`).toBe(200);
      return made.id;
    };
    const repository = await create("/repository/create", { url: `https://git.example.com/acme/${word}-${round}` });
    const macro = `same-${round}`;
    const automation = await create("/automation/create", { name: word, macro, instructions: `${word} {{ event.x }}` });
    ids.push(
      ...[repository, automation, macro],
      await create("/session/create", { prompt: word, codeRepoIds: [repository] }),
      await create("/session/create", { prompt: word, queueRightAway: false }),
      await create(`/automation/${automation}/trigger`, { x: 1 }),
      await create("/webhook/create", { url: `https://hooks.example.com/${word}` }),
      await create("/secret/create", {
        name: `SECRET_${round}`,
        value: `a value of ${word}`,
        repositoryId: repository,
      }),
      await create("/key/create", { name: word, role: "viewer" }),
    );
  }
  const keyOf = async (scopes: readonly ("read" | "write" | "admin")[], expiresAt?: string): Promise<string> =>
    (await createKey(database, organizationId, { name: "mine", scopes, expiresAt })).key;
  const keys = [await keyOf(["read"]), await keyOf(["write"]), await keyOf(["admin"], "2020-01-01T00:00:00Z")];
  return { ids, keys: [...keys, theirKey, "ofs_wrong", "", null], mainKey: adminKey };
}

/** The requests of a round: as many of each operation, in an order in which they meet each other's results. */
function requestsOfRound(around: Surroundings, round: number): FuzzRequest[] {
  const each = Math.ceil(total / rounds / operations.length);
  const drawn = operations.flatMap((operation, index) =>
    fc.sample(requestsOf(operation, around), { seed: seed + round * 1_000 + index, numRuns: each }),
  );
  return (
    fc.sample(fc.shuffledSubarray(drawn, { minLength: drawn.length }), { seed: seed + round, numRuns: 1 })[0] ?? []
  );
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

test("no operation breaks, dawdles, or tells of another organization, whatever it is sent", async () => {
  expect(operations.length).toBeGreaterThan(60);
  const reports: Report[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const requests = requestsOfRound(await surroundings(round), round);
    reports.push(await check({ origin, requests, concurrency, forbidden: { text: marker, except: theirKey } }));
  }
  console.log(tell(reports));
  expect(reports.flatMap(({ complaints }) => complaints)).toEqual([]);
  const leastEach = Math.floor(total / operations.length);
  for (const { operationId } of operations) {
    const count = reports.reduce((sum, report) => sum + (report.operations.get(operationId)?.count ?? 0), 0);
    expect(count, operationId).toBeGreaterThanOrEqual(leastEach);
  }
  expect(reports.reduce((sum, { sent }) => sum + sent, 0)).toBeGreaterThanOrEqual(total);
  // Most that goes wrong is told before an operation begins: so many got through to the end.
  const succeeded = reports.reduce((sum, { statuses }) => sum + (statuses.get(200) ?? 0), 0);
  expect(succeeded).toBeGreaterThan(total / 10);
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
  expect(complaintOf("/tells")).toContain("tells of another organization");
  expect(complaintOf("/shows")).toContain("not in the form of errors");
  expect(complaintOf("/hangs-up")).toContain("no answer");
  expect(report.complaints).toHaveLength(5);
  expect(report.operations.get("/good")?.count).toBe(1);
});
