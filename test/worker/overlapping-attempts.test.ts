import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Service } from "../../src/lifecycle/service.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { LeaseLostError } from "../../src/store/queue/lease.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";

let testDatabase: TestDatabase;
let worker: Service;
/** The attempts that began, and functions that end each of them, which ignore signals. */
let begun: number[];
let ends: PromiseWithResolvers<void>[];
/** What the worker logged. */
let lines: string[];

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  begun = [];
  lines = [];
  ends = Array.from({ length: 10 }, () => Promise.withResolvers<void>());
  worker = createWorker({
    database: testDatabase.database,
    logger: pino({ level: "warn" }, { write: (line) => void lines.push(line) }),
    metrics: createMetrics(),
    id: "worker",
    concurrency: 10,
    leaseMs: 3_000,
    maxRunningPerOrganization: 10,
    async runSession({ attempt }) {
      begun.push(attempt);
      await ends[attempt]?.promise;
    },
    runJob: () => Promise.resolve(),
  });
});

afterEach(async () => {
  for (const { resolve } of ends) resolve();
  await worker.stop();
  await testDatabase.close();
});

test("of three attempts at a session none begins before the one before it has ended", async () => {
  const { database } = testDatabase;
  await worker.start();
  const { id } = await addSession(database, await addOrganization(database), { repositories: [] });
  await waitFor(() => begun.length === 1, "the first attempt began");
  for (const next of [2, 3]) {
    await database.pool.query("update session set lease_until = now() - interval '1 second' where id = $1", [id]);
    await waitFor(async () => {
      const { rows } = await database.pool.query<{ attempt: number }>("select attempt from session where id = $1", [
        id,
      ]);
      return rows[0]?.attempt === next;
    }, `attempt ${next} was claimed`);
  }
  expect(begun).toEqual([1]);
  for (const ended of [1, 2]) {
    ends[ended]?.resolve();
    await waitFor(() => begun.length > ended, "the next attempt began");
    expect(begun).toEqual(Array.from({ length: ended + 1 }, (_, index) => index + 1));
  }
});

test("an attempt whose end is not recorded, as its lease was lost, is logged as that and as no error", async () => {
  const { database } = testDatabase;
  await worker.start();
  await addSession(database, await addOrganization(database), { repositories: [] });
  await waitFor(() => begun.length === 1, "the attempt began");
  ends[1]?.reject(new LeaseLostError("the claim was lost"));
  const logged = await waitFor(() => lines.find((line) => line.includes("the claim was lost")), "it was logged");
  const { level, msg } = JSON.parse(logged) as { readonly level: number; readonly msg: string };
  expect({ level, msg }).toEqual({ level: 40, msg: "the lease was lost before the attempt's end was recorded" });
});
