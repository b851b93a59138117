import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { jobStatuses, type JobStatus } from "../../src/domain/automations/job.ts";
import { ConflictError, messageOf } from "../../src/domain/errors/errors.ts";
import { sessionStatuses, type SessionStatus } from "../../src/domain/sessions/status.ts";
import { createJobs, getJob } from "../../src/store/automations/jobs.ts";
import { moveSession } from "../../src/store/sessions/transition.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, addSession } from "./fixtures.ts";

const src = join(import.meta.dirname, "../../src");
let testDatabase: TestDatabase;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
});

afterAll(() => testDatabase.close());

/** What becomes of jobs; from `completed` if the gate of the session filters the run. */
const movesOfJobs: Readonly<Record<JobStatus, readonly JobStatus[]>> = {
  pending: ["running", "cancelled"],
  running: ["pending", "completed", "failed", "cancelled"],
  completed: ["cancelled"],
  failed: [],
  cancelled: [],
};

/** A job of a new organization that has a status. @returns its id, and what asks for its status */
async function addJob(status: JobStatus) {
  const { database } = testDatabase;
  const organizationId = await addOrganization(database);
  const automationId = await addAutomation(database, organizationId, "moving");
  const id = crypto.randomUUID();
  await createJobs(database, [{ id, organizationId, automationId, priority: 5, payload: {} }]);
  await database.pool.query("update job set status = $2 where id = $1", [id, status]);
  return { id, statusOf: async () => (await getJob(database, organizationId, id))?.status };
}

test.each(jobStatuses)("a job that is %s makes its moves, and a refused one changes nothing", async (from) => {
  for (const to of jobStatuses) {
    const { id, statusOf } = await addJob(from);
    const refusal: unknown = await testDatabase.database.pool
      .query("select from move_job($1, $2, $3)", [id, from, to])
      .then(() => null, messageOf);
    const expected = movesOfJobs[from].includes(to) ? [null, to] : [`a job that is ${from} can't become ${to}`, from];
    expect([refusal, await statusOf()]).toEqual(expected);
  }
});

test.each([
  ["status", "select move_job($1, 'running', 'completed') as moved"],
  ["attempt", "select move_job($1, 'pending', 'running', of_attempt => 7) as moved"],
])("a job that has another %s by now does not move", async (_what, move) => {
  const { id, statusOf } = await addJob("pending");
  const { rows } = await testDatabase.database.pool.query(move, [id]);
  expect([rows, await statusOf()]).toEqual([[{ moved: null }], "pending"]);
});

test("nothing but move_job writes the status of a job, its fence or what came of it", async () => {
  expect(await writersOf("job", "status|worker|attempt|error|dead|superseded")).toEqual([
    "store/sql/jobs/move_job.sql: status,attempt,worker,superseded,error,dead",
    // The sessions of one that has begun are cancelled by the worker.
    "store/sql/jobs/supersede_runs.sql: superseded,error",
  ]);
});

/** The picture in src/domain/sessions/status.ts; queued ─▶ running is a claim. */
const moves: Readonly<Record<SessionStatus, readonly SessionStatus[]>> = {
  draft: ["queued", "cancelled"],
  queued: ["cancelled"],
  running: ["queued", "waiting", "completed", "failed", "cancelled"],
  waiting: ["running", "cancelled"],
  completed: ["queued"],
  failed: ["queued"],
  cancelled: ["queued"],
};

async function rowOf(id: string): Promise<Record<string, unknown> | undefined> {
  const { rows } = await testDatabase.database.pool.query<Record<string, unknown>>(
    "select * from session where id = $1",
    [id],
  );
  return rows[0];
}

test.each(sessionStatuses)(
  "a session that is %s makes the moves of the picture, and a refused one changes nothing",
  async (from) => {
    const { database } = testDatabase;
    const organizationId = await addOrganization(database);
    const made: SessionStatus[] = [];
    for (const to of sessionStatuses) {
      const { id } = await addSession(database, organizationId);
      await database.pool.query("update session set status = $2 where id = $1", [id, from]);
      const before = await rowOf(id);
      const refusal: unknown = await database
        .transaction((transaction) => moveSession(transaction, { id }, to))
        .catch((error: unknown) => error);
      const after = await rowOf(id);
      if (after?.["status"] === to && to !== from) made.push(to);
      const expected = moves[from].includes(to)
        ? [undefined, { ...after }]
        : [new ConflictError(`session ${id} is ${from} and can't become ${to}`), { ...before }];
      expect([refusal, after]).toEqual(expected);
    }
    expect(made.toSorted()).toEqual(moves[from].toSorted());
  },
);

test.each([
  [
    "queued",
    "status = 'queued', failure = '{\"code\": \"passing\"}', interrupted_at = now(), started_at = now(), queue_wait_ms = 7",
  ],
  [
    "waiting",
    "status = 'waiting', ready = true, waiting = '{}', retry_at = null, worker = 'before', lease_until = now()",
  ],
])(
  "a claim of a session that is %s leaves nothing of what came before, and what no move of its kind sets",
  async (from, set) => {
    const { pool } = testDatabase.database;
    const organizationId = await addOrganization(testDatabase.database);
    const { id } = await addSession(testDatabase.database, organizationId);
    await pool.query(
      `update session set ${set}, cancel_requested = true, reserved_usd = 3, summary = 'Done', retry = '{"counts": {}}',
       archived_at = now(), attempt = 4 where id = $1`,
      [id],
    );
    const before = await rowOf(id);
    const { rows: moved } = await pool.query(
      `select id, lease_until = now() + interval '1 minute' as leased
     from move_session($1, 'running', null, null, null, false, null, 'claimer', interval '1 minute', 2)`,
      [id],
    );
    expect(moved).toEqual([{ id, leased: true }]);
    const changed = {
      status: "running",
      attempt: 5,
      worker: "claimer",
      reserved_usd: "2.000000",
      cancel_requested: false,
    };
    const cleared = {
      failure: null,
      waiting: null,
      ready: false,
      retry_at: null,
      interrupted_at: null,
      finished_at: null,
    };
    const times = Object.fromEntries(
      ["lease_until", "updated_at", ...(from === "queued" ? [] : ["started_at", "queue_wait_ms"])].map((name) => [
        name,
        expect.anything(),
      ]),
    );
    const after = {
      ...before,
      ...changed,
      ...cleared,
      ...times,
      last_event: String(Number(before?.["last_event"]) + 1),
    };
    expect(await rowOf(id)).toEqual(after);
    const { rows: events } = await pool.query(
      "select data from event where session_id = $1 order by seq desc limit 1",
      [id],
    );
    expect(events).toEqual([{ data: { from, to: "running" } }]);
    const again =
      "select id from move_session($1, 'running', null, null, null, false, null, 'other', interval '1 minute')";
    expect((await pool.query(again, [id])).rows).toEqual([{ id: null }]);
  },
);

/** The places in the source that write some of these columns of a table, separated by `|`. */
async function writersOf(table: string, names: string): Promise<string[]> {
  const files = await readdir(src, { recursive: true });
  const writers: string[] = [];
  for (const file of files.filter((name) => /\.(?:ts|sql)$/u.test(name) && !name.includes("migrations/"))) {
    const source = (await readFile(join(src, file), "utf8")).replaceAll(/--.*$/gmu, "");
    const updates = new RegExp(`update ${table} set([^;\`"]+?)(?:\\bwhere id\\b|[;\`"])`, "gu");
    for (const [, assigned = ""] of source.matchAll(updates)) {
      const written = [...assigned.matchAll(new RegExp(`(?:^|,)\\s*(${names})\\s*=`, "gu"))].map(
        ([, column]) => column,
      );
      if (written.length > 0) writers.push(`${file}: ${[...new Set(written)].join()}`);
    }
  }
  return writers.sort();
}

/** What belongs to a move; a lease is renewed in its own place. */
const columns = "status|worker|attempt|waiting|queued_at|started_at|finished_at|failure|retry|retry_at|interrupted_at";

test("nothing but move_session writes what belongs to a move of a session", async () => {
  expect(await writersOf("session", columns)).toEqual([
    // A worker that lost its lease outlived the attempt.
    "store/queue/lease.ts: retry",
    // A turn that ended is progress.
    "store/queue/progress.ts: retry",
    // Its worker takes it again after its lease ran out: it goes on as it was, under a new fence.
    "store/queue/retake.ts: attempt,retry",
    // The time of a retry has come.
    "store/queue/retry.ts: retry_at",
    // What was counted of other causes goes, and what was counted while its worker outlived it.
    "store/sessions/transition.ts: retry",
    "store/sessions/transition.ts: retry",
    // A person asked for work.
    "store/sessions/transition.ts: retry,retry_at",
    `store/sql/sessions/move_session.sql: ${columns
      .split("|")
      .toSorted((a, b) => order.indexOf(a) - order.indexOf(b))
      .join()}`,
    // A claim, which keeps its place in the queue and its count of failures.
    `store/sql/sessions/move_session.sql: ${order.filter((name) => !["queued_at", "retry"].includes(name)).join()}`,
  ]);
});

/** As move_session.sql has them. */
const order = [
  "status",
  "attempt",
  "queued_at",
  "started_at",
  "finished_at",
  "failure",
  "waiting",
  "retry_at",
  "interrupted_at",
  "retry",
  "worker",
];
