import { afterEach, beforeEach, expect, test } from "vitest";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";

let testDatabase: TestDatabase;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
});

afterEach(() => testDatabase.close());

test("a worker whose disk is full has room made, and goes on once there is some", async () => {
  const { database } = testDatabase;
  let [asked, isFull] = [0, true];
  const reported: number[] = [];
  const began: string[] = [];
  const worker = createWorker({
    database,
    logger: createLogger("silent"),
    metrics: createMetrics(),
    id: "worker",
    concurrency: 1,
    leaseMs: 3_000,
    maxRunningPerOrganization: 10,
    async hasRoom() {
      asked += 1;
      return !isFull;
    },
    onFull: () => void reported.push(asked),
    async runSession({ sessionId }) {
      began.push(sessionId);
    },
    runJob: () => Promise.resolve(),
  });
  await worker.start();
  try {
    const { id } = await addSession(database, await addOrganization(database), { repositories: [] });
    await waitFor(() => asked >= 3, "it was looked for room again and again");
    expect([reported, began]).toEqual([[1], []]);
    isFull = false;
    await waitFor(() => began.length > 0, "the session began");
    expect(began).toEqual([id]);
  } finally {
    await worker.stop();
  }
});
