import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { definitionsDirectory, migrationsDirectory, type Database } from "../../src/database/database.ts";
import { migrate } from "../../src/database/migrate.ts";
import { listEvents } from "../../src/store/sessions/events.ts";
import { requireSession } from "../../src/store/sessions/sessions.ts";
import { moveSession } from "../../src/store/sessions/transition.ts";
import { createEmptyDatabase, type TestDatabase } from "../database.ts";
import { addOrganization } from "./fixtures.ts";

const problem = { code: "setup_failed", reason: "It ended with 1.", retryable: true } as const;
const ofOldNode = { ...problem, mend: "Fix the script." };
const shown = { ...problem, remedy: "Fix the script." };

let folder: string;
let testDatabase: TestDatabase;
let database: Database;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-remedy-"));
  testDatabase = await createEmptyDatabase();
  database = testDatabase.database;
});

afterEach(async () => {
  await testDatabase.close();
  await rm(folder, { recursive: true, force: true });
});

/** The schema and the functions of the version before, whose newest migration is 0027. */
async function migrateAsBefore(): Promise<void> {
  await cp(migrationsDirectory, folder, { recursive: true });
  for (const name of await readdir(folder)) if (name >= "0028") await rm(join(folder, name));
  await migrate(database.pool, folder);
}

const migrateToNow = (): Promise<void> => migrate(database.pool, migrationsDirectory, definitionsDirectory);

/** A running session of an organization with a webhook. */
async function addRunningSession(): Promise<{ id: string; organizationId: string }> {
  const organizationId = await addOrganization(database);
  await database.pool.query(
    `insert into webhook (id, organization_id, url, events, sealed, master_key)
     values (gen_random_uuid(), $1, 'http://127.0.0.1/', '{}', '', '')`,
    [organizationId],
  );
  const id = crypto.randomUUID();
  await database.pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, priority, queued_at, started_at)
     values ($1, $2, 'Work', 'Work', 'running', 'offstage/work', 5, now(), now())`,
    [id, organizationId],
  );
  return { id, organizationId };
}

/** Writes that a step failed, and then the session, with the statements of the version before. */
async function failAsBefore(id: string): Promise<void> {
  await database.pool.query(
    `with counted as (update session set last_event = last_event + 1 where id = $1 returning last_event)
     insert into event (session_id, seq, type, data) select $1, last_event, 'step.failed', $2 from counted`,
    [id, JSON.stringify({ step: "setup", durationMs: 1, failure: ofOldNode })],
  );
  await database.pool.query("select from move_session($1, $2, $3, $4, $5, $6)", [
    id,
    "failed",
    null,
    JSON.stringify(ofOldNode),
    null,
    false,
  ]);
}

/** The failures that readers of this version are shown: of the session, its events and what webhooks are sent. */
async function failuresShown({ id, organizationId }: { id: string; organizationId: string }): Promise<unknown[]> {
  const { failure } = await requireSession(database, organizationId, id);
  const page = await listEvents(database, organizationId, id, 0, 10);
  const events = page?.events.map(({ type, data }) => [type, (data as { failure?: unknown }).failure]) ?? [];
  const sent = await database.pool.query<{ failure: unknown }>(
    "select data -> 'failure' as failure from webhook_delivery where organization_id = $1",
    [organizationId],
  );
  return [failure, ...events, ...sent.rows.map((row) => row.failure)];
}

const allWithRemedy = [shown, ["step.failed", shown], ["session.status", shown], shown];

async function storedFailure(id: string): Promise<unknown> {
  const { rows } = await database.pool.query<{ failure: unknown }>("select failure from session where id = $1", [id]);
  return rows[0]?.failure;
}

test("a failure that the version before has stored is shown with its remedy after the migration", async () => {
  await migrateAsBefore();
  const session = await addRunningSession();
  await failAsBefore(session.id);
  await migrateToNow();
  expect(await failuresShown(session)).toEqual(allWithRemedy);
  const { rows } = await database.pool.query("select data -> 'failure' as failure from event order by seq");
  expect(rows).toEqual([{ failure: shown }, { failure: shown }]);
  // A node of the version before shows it too.
  expect(await storedFailure(session.id)).toEqual({ ...ofOldNode, ...shown });
});

test("a failure that a node of the version before writes during an upgrade is shown with its remedy", async () => {
  await migrateAsBefore();
  const session = await addRunningSession();
  await migrateToNow();
  await failAsBefore(session.id);
  expect(await failuresShown(session)).toEqual(allWithRemedy);
  expect(await storedFailure(session.id)).toEqual({ ...ofOldNode, ...shown });
});

test("a failure that this version writes is shown by nodes of the version before", async () => {
  await migrateToNow();
  const { id } = await addRunningSession();
  await database.transaction((transaction) => moveSession(transaction, { id }, "failed", { failure: shown }));
  expect(await storedFailure(id)).toEqual({ ...ofOldNode, ...shown });
});

test("a session without a failure has none, also for a node of the version before that ends it", async () => {
  await migrateToNow();
  const { id, organizationId } = await addRunningSession();
  await database.pool.query("select from move_session($1, $2, $3, $4, $5, $6)", [
    id,
    "completed",
    null,
    null,
    "Did it.",
    false,
  ]);
  const { failure, status, summary } = await requireSession(database, organizationId, id);
  expect({ failure, status, summary }).toEqual({ failure: null, status: "completed", summary: "Did it." });
  expect(await storedFailure(id)).toBe(null);
});
