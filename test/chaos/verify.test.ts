import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { UnavailableError } from "../../src/domain/errors/errors.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { addAutomation, addOrganization, addSession } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { tickRepository, type Ticking } from "./automations.ts";
import { listProcesses } from "./processes.ts";
import { slowRecoveries, type Recovery } from "./recoveries.ts";
import type { Accepted } from "./requests.ts";
import { unforeseen } from "./unforeseen.ts";
import { brokenPromises, type LookedAt } from "./verify.ts";

/** That each promise which the chaos looks at is seen to be broken, in a fleet that kept all but one. */
let testDatabase: TestDatabase;
let forge: TestForge;
let folder: string;
let fleet: LookedAt;
let organizationId: string;
let accepted: Accepted[];
let ticking: Ticking & { readonly pausedAt: string };
const children: ChildProcess[] = [];

const repository = "chaos-0";
const query = (text: string, values: readonly unknown[] = []) => testDatabase.database.pool.query(text, [...values]);

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  forge = await startForge();
  folder = await mkdtemp(join(tmpdir(), "offstage-verify-"));
  const data = join(folder, "worker-0");
  for (const name of ["mirrors", "run", "sessions"]) await mkdir(join(data, name), { recursive: true });
  fleet = { folder, forge, store: testDatabase.database.pool, workers: [{ data }], dyingMs: 500 };
  organizationId = await addOrganization(testDatabase.database);
  for (const name of [repository, tickRepository]) await forge.createRepository("acme", name, { "README.md": "# A\n" });
  const file = "made-1.txt";
  const id = await done("work-1", repository, { [file]: "what was asked", "more-1.txt": "more" }, 1);
  accepted = [{ number: 1, kind: "session", id, repository, file, content: "what was asked" }];
  ticking = await tick();
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await forge?.close();
  await testDatabase?.close();
  await rm(folder, { recursive: true, force: true });
});

/** A session that is completed, with its branch and pull request. */
async function done(branch: string, name: string, files: Record<string, string>, number: number): Promise<string> {
  const { id } = await addSession(testDatabase.database, organizationId, { branchName: branch });
  await query("update session set status = 'completed' where id = $1", [id]);
  for (const to of ["running", "completed"]) await move(id, to);
  await forge.commit("acme", name, branch, files);
  forge.propose("acme", name, { number, head: branch });
  await mkdir(join(fleet.workers[0]?.data ?? "", "sessions", id), { recursive: true });
  return id;
}

const move = (id: string, to: string) =>
  query(
    `insert into event (session_id, seq, type, data)
     select $1, max(seq) + 1, 'session.status', jsonb_build_object('to', $2::text) from event where session_id = $1`,
    [id, to],
  );

/** A schedule that ticked once, with its run. */
async function tick(): Promise<Ticking & { readonly pausedAt: string }> {
  const automationId = await addAutomation(testDatabase.database, organizationId, "ticks");
  const [triggerId, jobId] = [randomUUID(), randomUUID()];
  await query(
    `insert into trigger (id, organization_id, automation_id, type, position, created_at)
     values ($1, $2, $3, 'schedule', 1, '2026-11-25T10:00:30Z')`,
    [triggerId, organizationId, automationId],
  );
  await query(
    `insert into job (id, organization_id, automation_id, trigger_id, status, priority, payload)
     values ($1, $2, $3, $4, 'completed', 5, '{"scheduledAt": "2026-11-25T10:01:00.000Z"}')`,
    [jobId, organizationId, automationId, triggerId],
  );
  const session = await done("tick-1", tickRepository, { "tick.txt": "ticked" }, 1);
  await query("update session set job_id = $2 where id = $1", [session, jobId]);
  return { automationId, triggerId, pausedAt: "2026-11-25T10:01:30Z" };
}

const broken = (): Promise<string[]> => brokenPromises(fleet, accepted, ticking, []);
const first = (): string => accepted[0]?.id ?? "";
const inData = (...path: string[]): string => join(fleet.workers[0]?.data ?? "", ...path);

/** A process that has a word in its command, as those of the fleet have. */
async function leave(word: string): Promise<void> {
  children.push(spawn("sh", ["-c", "sleep 600; true", word], { stdio: "ignore" }));
  await waitFor(() => listProcesses().some(({ command }) => command.includes(`true ${word}`)), "it runs");
}

test("nothing is broken where all was kept", async () => {
  expect(await broken()).toEqual([]);
});

/** A pull request whose text is not current. */
async function owePullRequest(): Promise<void> {
  const id = randomUUID();
  await query(
    "insert into repository (id, organization_id, url, address_key, name) values ($1, $2, 'https://g.example/a/b', 'g.example/a/b', 'a/b')",
    [id, organizationId],
  );
  await query(
    `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, section_due_at)
     values (gen_random_uuid(), $1, $2, $3, 'h', 't', 1, 'u', now())`,
    [organizationId, first(), id],
  );
}

const loseSession = (): void =>
  void accepted.push({ number: 2, kind: "session", id: randomUUID(), repository, file: "b.txt", content: "b" });

test.each<[string, () => unknown, string]>([
  ["a failed session", () => query("update session set status = 'failed' where id = $1", [first()]), "is failed"],
  [
    "a session that is held",
    () => query("update session set worker = 'w' where id = $1", [first()]),
    "still held by w",
  ],
  ["a lost session", loseSession, "was accepted and has no session"],
  ["a doubled session", () => addSession(testDatabase.database, organizationId), "there are 2 sessions"],
  [
    "a doubled pull request",
    () => forge.propose("acme", repository, { number: 2, head: "work-1", base: "other" }),
    "work-1 of chaos-0 has 2 pull requests",
  ],
  [
    "another content",
    () => forge.commit("acme", repository, "work-1", { "made-1.txt": "else" }),
    'made-1.txt on work-1 of chaos-0 has "else"',
  ],
  ["a file too many", () => forge.commit("acme", repository, "work-1", { "x.txt": "x" }), "instead of"],
  [
    "a failed tick",
    () => query("update job set status = 'failed'"),
    "the job of the tick of 2026-11-25T10:01:00.000Z is failed",
  ],
  [
    "a lost tick",
    () => query("update trigger set created_at = created_at - interval '1 minute' where type = 'schedule'"),
    "the schedule's ticks were",
  ],
  [
    "a gap in the events",
    () => query("delete from event where session_id = $1 and seq = 1", [first()]),
    "up to number",
  ],
  ["two ends in a row", () => move(first(), "completed"), "and was completed before"],
  ["a process in its folder", () => leave(inData("x")), "is still there"],
  ["git that is still at the forge", () => leave(`${forge.url}/acme/${repository}`), "is still there"],
  ["a lock of a mirror", () => writeFile(inData("mirrors", "a.lock"), ""), "has the lock a.lock"],
  ["a socket", () => writeFile(inData("run", "s"), ""), "has the socket s"],
  ["a folder of no session", () => mkdir(inData("sessions", randomUUID())), "of no session"],
  ["something that the feedback loop owes", owePullRequest, "is not current"],
])("%s is reported", async (_, hurt, words) => {
  await hurt();
  expect((await broken()).join("\n")).toContain(words);
});

test("a lock that is held is reported", async () => {
  const client = await testDatabase.database.pool.connect();
  try {
    await client.query("select pg_advisory_lock(4711)");
    expect((await broken()).join("\n")).toContain("the lock 4711 is still held");
  } finally {
    client.release(true);
  }
});

/** A log whose last line says what a node logs of an error. */
async function logged(name: string, msg: string, error: Error, level: 40 | 50 = 50): Promise<void> {
  const own = Object.fromEntries(Object.entries(error));
  const line = JSON.stringify({ level, msg, err: { ...own, type: error.name, message: error.message } });
  await writeFile(join(folder, `${name}.log`), `{"level":30,"msg":"started"}\n${line}\n${name} ended: SIGKILL\n`);
}

const nodes = [{ name: "api-0" }, { name: "worker-0" }, { name: "worker-1" }];
const away = Object.assign(new Error("connect ENOENT /x"), { code: "ENOENT", syscall: "connect" });
const constraint = Object.assign(new Error("duplicate key value"), { name: "DatabaseError", code: "23505" });

test.each([
  [
    "a request of an API that answered 500",
    "api-0",
    "request failed with an unexpected error",
    new TypeError("x is not a function"),
  ],
  ["a job", "worker-0", "job aborted unexpectedly; will retry", constraint],
  ["an attempt", "worker-0", "an attempt failed with an unexpected error", new Error("bug")],
  ["an attempt that mistook the database's error", "worker-0", "an attempt ended with an unexpected error", away],
])("an unforeseen error of %s is reported", async (_, node, msg, error) => {
  await logged(node, msg, error);
  expect(await unforeseen(folder, nodes)).toEqual([expect.stringContaining(`${node}: {`)]);
  expect((await unforeseen(folder, nodes))[0]).toContain(error.message);
});

test("an unforeseen error of a background task is reported, and none that the chaos causes", async () => {
  await logged("worker-0", "could not tidy; will retry", new RangeError("out of range"), 40);
  await logged("worker-1", "could not tidy; will retry", away, 40);
  await logged("api-0", "request failed with an unexpected error", new UnavailableError("the database is away"));
  expect(await unforeseen(folder, nodes)).toEqual([expect.stringContaining("out of range")]);
  await logged("worker-0", "the early start failed; another is made", new RangeError("out of range"), 40);
  await logged(
    "worker-1",
    "the disk of this worker is full",
    new Error("git read-tree failed: unable to write file a"),
  );
  expect(await unforeseen(folder, nodes)).toEqual([]);
});

const recovery = (parts: Partial<Recovery["parts"]>): Recovery => ({
  sessionId: "s",
  tookMs: 0,
  ownMs: 0,
  begun: 0,
  overtaken: 0,
  parts: { lease: 0, pause: 0, nobody: 0, shrunk: 0, full: 0, free: 0, ...parts },
});

test("recoveries that took long by our own doing are reported, if they are more than one in a hundred", () => {
  const leaseMs = 3_000;
  const quick = Array.from({ length: 100 }, () =>
    recovery({ lease: 3_500, nobody: 900_000, full: 900_000, shrunk: 900_000 }),
  );
  expect(slowRecoveries(quick, leaseMs)).toEqual([]);
  const slow = recovery({ lease: 3_500, pause: 8_000, free: 10_000 });
  expect(slowRecoveries([slow, ...quick.slice(1)], leaseMs)).toEqual([]);
  expect(slowRecoveries([slow, slow, ...quick.slice(2)], leaseMs)).toHaveLength(2);
  expect(slowRecoveries([slow], leaseMs)[0]).toContain("a slow recovery");
});
