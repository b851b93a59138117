import { afterEach, beforeEach, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { Claim } from "../../src/store/queue/lease.ts";
import {
  addWarmSandbox,
  pruneWarmSandboxes,
  removeWarmSandboxesOf,
  takeWarmSandbox,
} from "../../src/store/queue/warm-sandboxes.ts";
import { reportWorker } from "../../src/store/queue/worker-nodes.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession, atOnce, expireLease, requireClaim } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});

afterEach(() => testDatabase.close());

const warm = (): { readonly id: string; readonly worker: string; readonly key: string } => ({
  id: crypto.randomUUID(),
  worker: "worker",
  key: "a launch",
});

async function idsLeft(): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>("select id from warm_sandbox order by created_at");
  return rows.map(({ id }) => id);
}

test("a sandbox is taken once, however many attempts want it at the same moment", async () => {
  const organizationId = await addOrganization(database);
  const one = warm();
  await addWarmSandbox(database, one);
  const claims = await atOnce(8, async () => {
    await addSession(database, organizationId);
    return requireClaim(database);
  });
  const taken = await atOnce(40, (index) => takeWarmSandbox(database, claims[index % claims.length] as Claim, one));
  expect(taken.filter(Boolean)).toHaveLength(1);
  const { rows } = await database.pool.query("select session_id from warm_sandbox where id = $1", [one.id]);
  expect(rows).toEqual([{ session_id: claims[taken.indexOf(true) % claims.length]?.sessionId }]);
});

test("an attempt that has lost its claim takes none, and one of another launch or worker is not taken", async () => {
  const organizationId = await addOrganization(database);
  const one = warm();
  await addWarmSandbox(database, one);
  await addSession(database, organizationId);
  const claim = await requireClaim(database);
  expect(await takeWarmSandbox(database, claim, { ...one, key: "another launch" })).toBe(false);
  expect(await takeWarmSandbox(database, claim, { ...one, worker: "another" })).toBe(false);
  expect(await takeWarmSandbox(database, { ...claim, attempt: claim.attempt - 1 }, one)).toBe(false);
  await expireLease(database, claim.sessionId);
  expect(await takeWarmSandbox(database, claim, one)).toBe(false);
  await database.pool.query("update session set lease_until = now() + interval '1 minute'");
  expect(await takeWarmSandbox(database, claim, one)).toBe(true);
});

test("those of a worker that starts are forgotten, and those of workers that are gone after a day", async () => {
  const [own, gone, recent] = [warm(), { ...warm(), worker: "gone" }, { ...warm(), worker: "gone" }];
  const alive = { ...warm(), worker: "alive" };
  for (const each of [own, gone, recent, alive]) await addWarmSandbox(database, each);
  await removeWarmSandboxesOf(database, "worker");
  expect(await idsLeft()).toEqual([gone.id, recent.id, alive.id]);
  await reportWorker(database, { id: "alive", agents: [], defaultAgent: null, concurrency: 1 });
  await database.pool.query("update warm_sandbox set created_at = now() - interval '2 days' where id = any($1)", [
    [gone.id, alive.id],
  ]);
  expect(await pruneWarmSandboxes(database)).toBe(1);
  expect(await idsLeft()).toEqual(expect.arrayContaining([recent.id, alive.id]));
});
