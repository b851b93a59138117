import { afterEach, beforeEach, expect, test } from "vitest";
import { createLogger } from "../../src/observability.ts";
import { claimSession, type ClaimedSession } from "../../src/store/queue/claims.ts";
import { knownEnd } from "../../src/worker/attempt/known-end.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession } from "../store/fixtures.ts";

let testDatabase: TestDatabase;
let session: ClaimedSession;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  const { database } = testDatabase;
  await addSession(database, await addOrganization(database), { repositories: [] });
  const limits = { worker: "worker", leaseMs: 60_000, maxRunningPerOrganization: 10, maxRunningPerRepository: null };
  const claimed = await claimSession(database, limits);
  if (claimed === null) throw new Error("nothing was claimed");
  session = claimed;
});
afterEach(() => testDatabase.close());

/** Why an attempt ended whose worker has heard nothing of its lease. */
async function endNow(): Promise<string> {
  const attempt = { session, signal: new AbortController().signal, logger: createLogger("silent") };
  return (await knownEnd(new Error("something broke"), attempt, testDatabase.database)).why;
}

test("what breaks while the worker has the session is a failure", async () => {
  expect(await endNow()).toBe("failed");
});

test.each([
  ["has expired", "lease_until = now() - interval '1 second'"],
  ["is another worker's", "attempt = attempt + 1, worker = 'other'"],
  ["is over, as the session was cancelled", "status = 'cancelled', worker = null, lease_until = null"],
])("what breaks when the lease %s is none", async (_, change) => {
  await testDatabase.database.pool.query(`update session set ${change} where id = $1`, [session.sessionId]);
  expect(await endNow()).toBe("lost");
});

test("what breaks while the database can't be asked is a failure", async () => {
  await testDatabase.database.pool.query("alter table session rename to away");
  expect(await endNow()).toBe("failed");
});
