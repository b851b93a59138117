import type pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLogger } from "../../src/observability.ts";
import { applyFiles, type ReadFile } from "../../src/store/automations/apply-files.ts";
import { claimSync } from "../../src/store/automations/file-sync.ts";
import { releaseHeldJobs } from "../../src/store/automations/firings.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { untilStored } from "../../src/worker/attempt/until-stored.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { requireClaim } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { createRuns, type Runs } from "./run.ts";

let api: TestApp;
let runs: Runs;
const others: pg.PoolClient[] = [];
beforeEach(async () => {
  api = await createTestApp();
  runs = createRuns(api);
});
afterEach(async () => {
  for (const other of others.splice(0)) {
    await other.query("rollback");
    other.release();
  }
  await api.close();
});

/** A transaction beside. */
async function begin(): Promise<pg.PoolClient> {
  const client = await api.database.pool.connect();
  others.push(client);
  await client.query("begin");
  return client;
}
/** Waits until so many transactions wait for a lock. */
const untilBlocked = (count: number): Promise<unknown> =>
  waitFor(async () => {
    const { rowCount } = await api.database.pool.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return rowCount === count;
  }, `${count} wait for a lock`);
const lockAutomation = "select from automation where id = $1 for no key update";
const lockJob = "select from job where id = $1 for no key update";

test("the end of a completed run waits for no automation once it has its job, as triggers lock them the other way", async () => {
  const id = await runs.add();
  const jobId = await runs.trigger(id);
  await runs.runNextJob();
  const session = await requireClaim(api.database);
  const holder = await begin();
  await holder.query(lockJob, [jobId]);
  const ended = runs.end(session, "completed");
  await untilBlocked(1);
  // Another run fails after this one has ended, and a trigger is decided.
  await api.database.pool.query("update automation set failed_in_a_row = 1 where id = $1", [id]);
  const trigger = await begin();
  await trigger.query(lockAutomation, [id]);
  await holder.query("commit");
  // It has its job: it is over, or waits for the automation.
  await Promise.race([ended, untilBlocked(1)]);
  const superseded = trigger.query(lockJob, [jobId]).then(() => trigger.query("commit"));
  await Promise.all([ended, superseded]);
  expect((await api.get(`/session/${session.sessionId}`)).body.status).toBe("completed");
  expect((await runs.get(id)).failedInARow).toBe(1);
});

test("what an attempt stores at its end is stored again if others' transactions had it rolled back, and never otherwise", async () => {
  const first = await runs.add();
  const second = await runs.add();
  const other = await begin();
  // The writer below asks first for what is free, so that it is the one that finds the circle.
  await other.query("set local deadlock_timeout = '1min'");
  await other.query(lockAutomation, [second]);
  let attempts = 0;
  const codes: unknown[] = [];
  const write = () =>
    api.database
      .transaction(async (transaction) => {
        attempts += 1;
        await transaction.query(lockAutomation, [first]);
        await transaction.query(lockAutomation, [second]);
        return attempts;
      })
      .catch((error: unknown) => {
        codes.push((error as { code?: unknown }).code);
        throw error;
      });
  const stored = untilStored({ logger: createLogger("silent") }, write);
  await untilBlocked(1);
  await other.query(lockAutomation, [first]);
  await other.query("commit");
  expect(await stored).toBe(2);
  expect(codes).toEqual(["40P01"]);
  const broken = untilStored({ logger: createLogger("silent") }, () => {
    attempts += 1;
    return api.database.pool.query("select 1 / 0");
  });
  await expect(broken).rejects.toThrow("division by zero");
  expect(attempts).toBe(3);
});

test("files that change automations and the release of their held jobs don't wait in a circle", async () => {
  const { database } = api;
  const vault = createVault(environmentKeyring(Buffer.alloc(32, 7).toString("base64")));
  const { body: repository } = await api.post("/repository/create", { url: "https://example.com/acme/files" });
  await api.post(`/repository/${repository.id}/automation-files`, { enabled: true });
  const fileOf = (macro: string, instructions: string): ReadFile => ({
    path: `${macro}.yaml`,
    blob: instructions,
    url: null,
    content: {
      name: macro,
      macro,
      instructions,
      agent: null,
      targetBranch: null,
      priority: 5,
      paused: false,
      budgetUsd: null,
      title: null,
      triggers: [],
    },
  });
  const apply = async (instructions: string): Promise<unknown> => {
    await database.pool.query("update automation_sync set due_at = now()");
    const claim = await claimSync(database, 60_000);
    if (claim === null) throw new Error("no files were due");
    const files = ["a", "b"].map((macro) => fileOf(macro, instructions));
    return applyFiles(database, vault, claim, { branch: "main", commit: instructions, files }, async () => undefined);
  };
  expect(await apply("One")).toEqual([]);
  // The job of the later file is the older one.
  const jobs: string[] = [];
  for (const macro of ["b", "a"]) jobs.push(await runs.trigger((await api.get(`/automation/${macro}`)).body.id));
  await database.pool.query(
    "update job set held_until = now() - interval '1 second', held_since = now() - interval '1 minute'",
  );
  const holder = await begin();
  await holder.query(lockJob, [jobs[0]]);
  const released = releaseHeldJobs(database);
  await untilBlocked(1);
  const applied = apply("Two");
  await untilBlocked(2);
  await holder.query("commit");
  expect(await Promise.all([released, applied])).toEqual([2, []]);
  expect((await api.get("/automation/a")).body.instructions).toBe("Two");
});
