import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createKey } from "../../src/store/people/keys.ts";
import { retriesQuery, workersQuery } from "../../src/store/queue/system-health.ts";
import type { WorkerMachine } from "../../src/domain/system/health.ts";
import { addWarmSandbox, takeWarmSandbox } from "../../src/store/queue/warm-sandboxes.ts";
import { reportWorker } from "../../src/store/queue/worker-nodes.ts";
import { addOrganization, addSession, requireClaim } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
/** What the server's disk has, of which it needs 1,000,000,000 bytes. */
let disk = { freeBytes: 2e12, totalBytes: 4e12, neededBytes: 1e9 };

beforeAll(async () => {
  api = await createTestApp({ version: "7.8.9", diskSpace: () => Promise.resolve(disk) });
});
afterEach(async () => {
  const { pool } = api.database;
  await pool.query("delete from worker_node");
  await pool.query("delete from session");
  await pool.query("delete from migration where number = 9999");
  disk = { freeBytes: 2e12, totalBytes: 4e12, neededBytes: 1e9 };
});
afterAll(() => api?.close());

const agent = {
  id: "opencode",
  name: "OpenCode",
  available: true,
  problem: null,
  defaultModel: "m",
  reasoningLevels: [],
  isDefault: true,
};

const machine: WorkerMachine = {
  version: "7.8.9",
  nodeVersion: "24.0.0",
  startedAt: "2026-11-01T00:00:00.000Z",
  disk: { freeBytes: 5e12, totalBytes: 6e12, neededBytes: 2e9 },
  mirrors: 12,
};

interface WorkerOptions {
  readonly isAble?: boolean;
  readonly concurrency?: number;
  /** Null: the worker does not say. */
  readonly machine?: WorkerMachine | null;
}

const addWorker = (
  id: string,
  { isAble = true, concurrency = 2, machine: reported = machine }: WorkerOptions = {},
): Promise<void> =>
  reportWorker(api.database, {
    id,
    agents: [
      { ...agent, available: isAble },
      { ...agent, name: "Codex", available: false },
    ],
    defaultAgent: "opencode:m",
    concurrency,
    machine: reported,
  });

/** The worker was last seen so many minutes ago. */
async function silence(id: string, minutes: number): Promise<void> {
  await api.database.pool.query("update worker_node set seen_at = now() - $2 * interval '1 minute' where id = $1", [
    id,
    minutes,
  ]);
}

/** What the API says at once, of another process, which has no answer of before. */
// oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
async function health(): Promise<any> {
  const app = await api.another();
  const answer = await app.inject({
    method: "GET",
    url: "/system/health",
    headers: { authorization: `Bearer ${api.adminKey}` },
  });
  expect(answer.statusCode).toBe(200);
  return answer.json();
}

const codes = async (): Promise<string[]> =>
  (await health()).problems.map(({ code }: { readonly code: string }) => code);

test("one answer has the server, its workers with what they run, the queue and the database", async () => {
  await addWorker("one");
  await addWorker("two", { isAble: false, concurrency: 4 });
  await addSession(api.database, api.organizationId);
  await requireClaim(api.database, { worker: "two" });
  await addSession(api.database, api.organizationId);
  const later = await addSession(api.database, api.organizationId);
  await api.database.pool.query("update session set retry_at = now() + interval '1 hour' where id = $1", [later.id]);
  const { server, workers, queue, database, problems } = await health();
  expect(problems).toEqual([]);
  expect(server).toMatchObject({ version: "7.8.9", nodeVersion: process.versions.node, disk });
  expect(workers).toMatchObject([
    { id: "one", isSeen: true, concurrency: 2, runningSessions: 0, runningJobs: 0, agents: ["OpenCode"] },
    { id: "two", isSeen: true, concurrency: 4, runningSessions: 1, runningJobs: 0, agents: [] },
  ]);
  expect(queue).toMatchObject({
    sessions: { queued: 2, running: 1, waiting: 0 },
    retries: { due: 0, later: 1 },
    jobs: { pending: 0, running: 0 },
    deliveries: { due: 0, later: 0 },
  });
  expect(Date.parse(queue.retries.nextAt)).toBeGreaterThan(Date.now() + 3_000_000);
  expect(database.bytes).toBeGreaterThan(1_000_000);
  expect(database).toMatchObject({ unknownMigrations: 0, migration: { name: expect.stringMatching(/^\d{4}_/u) } });
});

test("says that there is no worker, which of them is not seen, and that none has an agent", async () => {
  expect(await codes()).toEqual(["no_worker"]);
  await addWorker("gone");
  await silence("gone", 1);
  expect(await codes()).toEqual(["no_worker", "worker_not_seen"]);
  await addWorker("here", { isAble: false });
  const { problems, workers } = await health();
  expect(problems).toMatchObject([{ code: "no_agent", severity: "bad" }, { code: "worker_not_seen" }]);
  expect(problems[1].what).toContain("did not stop in order: gone.");
  expect(workers).toMatchObject([
    { id: "gone", isSeen: false },
    { id: "here", isSeen: true },
  ]);
  // Its sessions were found without it, whatever it says of itself.
  await addWorker("gone");
  await addWorker("here");
  await api.database.pool.query("update worker_node set lost_at = now() + interval '1 second' where id = 'gone'");
  expect(await codes()).toEqual(["worker_not_seen"]);
});

test("says that the disk is full before it says that it soon is", async () => {
  await addWorker("one");
  disk = { ...disk, freeBytes: 4e9 };
  expect(await codes()).toEqual([]);
  disk = { ...disk, freeBytes: 3.9e9 };
  expect(await codes()).toEqual(["disk_nearly_full"]);
  disk = { ...disk, freeBytes: 0.9e9 };
  expect(await codes()).toEqual(["disk_full"]);
});

const withFree = (freeBytes: number): WorkerMachine => ({ ...machine, disk: { ...machine.disk, freeBytes } });

test("shows each worker's version, disk and caches, or that the worker does not report them", async () => {
  await addWorker("one");
  await addWorker("silent", { machine: null });
  const [taken, ready] = [crypto.randomUUID(), crypto.randomUUID()];
  for (const id of [taken, ready]) await addWarmSandbox(api.database, { id, worker: "one", key: "k" });
  await addSession(api.database, api.organizationId);
  const held = await requireClaim(api.database, { worker: "one" });
  expect(await takeWarmSandbox(api.database, held, { id: taken, worker: "one", key: "k" })).toBe(true);
  const { workers, problems } = await health();
  expect(problems).toEqual([]);
  expect(workers).toMatchObject([
    { id: "one", machine, warmSandboxes: 1 },
    { id: "silent", machine: null, warmSandboxes: 0 },
  ]);
  await api.database.pool.query("delete from warm_sandbox");
});

test("has nothing of before from a worker that was put back to a version that does not tell it", async () => {
  await addWorker("one", { machine: { ...machine, version: "9.0.0" } });
  expect(await codes()).toEqual(["worker_version"]);
  // As the version before reports itself.
  await api.database.pool.query(
    `insert into worker_node (id, agents, default_agent, concurrency) values ('one', '[]', null, 2)
     on conflict (id) do update set concurrency = excluded.concurrency, seen_at = now()`,
  );
  const { workers, problems } = await health();
  expect([workers[0].machine, problems]).toEqual([null, []]);
});

test("says which workers have another version than the server, and whose disk is full or nearly so", async () => {
  await addWorker("older", { machine: { ...machine, version: "7.8.8" } });
  await addWorker("full", { machine: withFree(1e9) });
  await addWorker("fuller", { machine: withFree(1) });
  await addWorker("filling", { machine: withFree(7e9) });
  await addWorker("gone", { machine: withFree(0) });
  await silence("gone", 1);
  const { problems } = await health();
  expect(problems).toMatchObject([
    {
      code: "worker_disk_full",
      severity: "bad",
      what: "The disks of 2 workers (full, fuller) are full, and no session begins there.",
    },
    { code: "worker_not_seen" },
    { code: "worker_disk_nearly_full", what: "The disk of the worker filling is nearly full." },
    {
      code: "worker_version",
      what: "This server is Offstage 7.8.9, and a worker has another version (7.8.8): older.",
    },
  ]);
});

test("says once that the disk of a server and of the worker in its process is full", async () => {
  await addWorker("own", { machine: withFree(1) });
  disk = { ...disk, freeBytes: 1 };
  const app = await api.another({ workerId: "own" });
  const headers = { authorization: `Bearer ${api.adminKey}` };
  const { server, problems } = (await app.inject({ method: "GET", url: "/system/health", headers })).json();
  expect([server.workerId, problems]).toMatchObject(["own", [{ code: "disk_full" }]]);
});

test("says that the queue is old, with what is in the way, and does not count what waits for its retry", async () => {
  await addWorker("one", { concurrency: 1 });
  const { id } = await addSession(api.database, api.organizationId);
  await api.database.pool.query("update session set queued_at = now() - interval '20 minutes' where id = $1", [id]);
  const free = (await health()).problems;
  expect(free).toMatchObject([{ code: "sessions_wait", what: "A session has waited in the queue for 20 minutes." }]);
  expect(free[0].remedy).toContain("Workers have places free");
  const running = await addSession(api.database, api.organizationId, { priority: 1 });
  expect((await requireClaim(api.database, { worker: "one" })).sessionId).toBe(running.id);
  expect((await health()).problems[0].remedy).toContain("All places are taken");
  await api.database.pool.query("update session set retry_at = now() + interval '1 minute' where id = $1", [id]);
  expect(await codes()).toEqual([]);
});

test("says that a newer version uses the database", async () => {
  await addWorker("one");
  await api.database.pool.query("insert into migration (number, name) values (9999, '9999_newer.sql')");
  expect((await health()).problems).toMatchObject([
    { code: "database_newer", what: expect.stringContaining("9999_newer.sql") },
  ]);
});

test("asks the database once for all who ask within a second", async () => {
  const [one, other] = await Promise.all([api.get("/system/health"), api.get("/system/health")]);
  expect(other.body.checkedAt).toBe(one.body.checkedAt);
});

test("another organization's admin learns nothing of the server", async () => {
  const elsewhere = await addOrganization(api.database);
  const input = { name: "foreign", scopes: ["admin" as const], automationIds: null, userId: null };
  const { key } = await createKey(api.database, elsewhere, input);
  const answer = await api.get("/system/health", { key });
  expect([answer.status, answer.body]).toEqual([
    403,
    { error: "this concerns the whole server: only admins of the organization default may see and change it" },
  ]);
});

test("looks at no row of what is over, however much there is", async () => {
  const { pool } = api.database;
  await pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, queued_at)
     select gen_random_uuid(), $1, 'Over', 'Over', 'completed', 'over', now() from generate_series(1, 3000)`,
    [api.organizationId],
  );
  await pool.query("vacuum analyze session");
  for (const query of [workersQuery, retriesQuery]) {
    const { rows } = await pool.query<Record<"QUERY PLAN", string>>(`explain ${query}`);
    const reads = rows.map((row) => row["QUERY PLAN"]).filter((line) => / on session\b/u.test(line));
    expect(reads.length).toBeGreaterThan(0);
    expect(reads.filter((line) => line.includes("Seq Scan"))).toEqual([]);
  }
});

test("a user is seen when they, or a program that acts for them, last asked for something", async () => {
  const { pool } = api.database;
  const { rows } = await pool.query<{ id: string }>(
    `insert into user_account (id, organization_id, issuer, subject, name, role, last_sign_in_at)
     values (gen_random_uuid(), $1, 'https://id.example', 'ada', 'Ada', 'member', '2031-01-01T00:00:00Z') returning id`,
    [api.organizationId],
  );
  const seen = async (): Promise<unknown> => (await api.get("/user/list")).body.users[0].lastSeenAt;
  expect(await seen()).toBe("2031-01-01T00:00:00.000Z");
  await pool.query(
    `insert into browser_session (hash, organization_id, user_id, scopes, expires_at, last_used_at)
     values ('a', $1, $2, '{}', now() + interval '1 day', '2031-02-01T00:00:00Z')`,
    [api.organizationId, rows[0]?.id],
  );
  expect(await seen()).toBe("2031-02-01T00:00:00.000Z");
  await pool.query(
    `insert into oauth_grant (id, organization_id, user_id, client_id, client_name, scopes, resource, expires_at, last_used_at)
     values (gen_random_uuid(), $1, $2, 'p', 'P', '{read}', 'api', now() + interval '1 day', '2031-03-01T00:00:00Z')`,
    [api.organizationId, rows[0]?.id],
  );
  expect(await seen()).toBe("2031-03-01T00:00:00.000Z");
});
