import { afterEach, beforeEach, expect, test } from "vitest";
import type { Service } from "../../src/lifecycle/service.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { createWorker, type AttemptSignals } from "../../src/worker/worker.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";

let testDatabase: TestDatabase;
let worker: Service;
/** The attempts that run, in the order of their beginning. */
let begun: { readonly signals: AttemptSignals; readonly end: () => void }[];

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  begun = [];
  worker = createWorker({
    database: testDatabase.database,
    logger: createLogger("silent"),
    metrics: createMetrics(),
    id: "worker",
    concurrency: 10,
    leaseMs: 60_000,
    maxRunningPerOrganization: 10,
    startsAtOnce: 2,
    runSession: (_, signals) =>
      new Promise((end) => {
        signals.signal.addEventListener("abort", () => end());
        begun.push({ signals, end });
      }),
    runJob: () => Promise.resolve(),
  });
  const organizationId = await addOrganization(testDatabase.database);
  for (let count = 0; count < 5; count += 1) {
    await addSession(testDatabase.database, organizationId, { repositories: [] });
  }
});

afterEach(async () => {
  await worker.stop();
  await testDatabase.close();
});

const queued = async (): Promise<number> => {
  const { rows } = await testDatabase.database.pool.query<{ count: number }>(
    "select count(*)::int as count from session where status = 'queued'",
  );
  return rows[0]?.count ?? 0;
};

test("a worker leaves sessions in the queue while as many agents start as it may start at once", async () => {
  await worker.start();
  await waitFor(() => begun.length === 2, "two attempts began");
  expect(await queued()).toBe(3);
  begun[0]?.signals.atWork();
  await waitFor(() => begun.length === 3, "the agent of one is at work, and another began");
  // Said again, as in a second turn, it makes no more room.
  begun[0]?.signals.atWork();
  expect(await queued()).toBe(2);
  begun[1]?.end();
  await waitFor(() => begun.length === 4, "one has ended without an agent, and another began");
});

test("an attempt that waits for something else, such as a fetch, holds the others up for seconds only", async () => {
  await worker.start();
  await waitFor(() => begun.length === 4, "the first two never were at work, and two more began");
  expect(await queued()).toBe(1);
});
