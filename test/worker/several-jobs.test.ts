import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { claimJob, createJobs } from "../../src/store/automations/jobs.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, addSession } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";

let testDatabase: TestDatabase;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
});
afterAll(() => testDatabase.close());

async function trigger(organizationId: string, automationId: string, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    const id = crypto.randomUUID();
    await createJobs(testDatabase.database, [{ id, organizationId, automationId, priority: 5, payload: {} }]);
  }
}

test("jobs that wait for a slow forge hold up two of their automation, four of their organization, and nobody else", async () => {
  const { database } = testDatabase;
  const slow = await addOrganization(database);
  const other = await addOrganization(database);
  const [first, second, third, elsewhere] = [
    await addAutomation(database, slow, "first"),
    await addAutomation(database, slow, "second"),
    await addAutomation(database, slow, "third"),
    await addAutomation(database, other, "elsewhere"),
  ];
  const answered = Promise.withResolvers<void>();
  const begun: string[] = [];
  const worker = createWorker({
    database,
    logger: createLogger("silent"),
    metrics: createMetrics(),
    id: "worker",
    concurrency: 1,
    leaseMs: 60_000,
    maxRunningPerOrganization: 1,
    runSession: () => Promise.resolve(),
    async runJob(job) {
      begun.push(job.automation.id);
      if (job.organizationId === slow) await answered.promise;
      await database.pool.query("update job set status = 'completed' where id = $1", [job.id]);
    },
  });
  const of = (automationId: string): number => begun.filter((id) => id === automationId).length;
  const done = async (): Promise<number> => {
    const { rowCount } = await database.pool.query("select from job where status = 'completed'");
    return rowCount ?? 0;
  };
  await worker.start();
  try {
    await trigger(slow, first, 5);
    await waitFor(() => of(first) === 2, "two of the first automation wait for the forge");
    await trigger(slow, second, 5);
    await waitFor(() => of(second) === 2, "two of the second wait, too");
    await trigger(slow, third, 5);
    await trigger(other, elsewhere, 20);
    await waitFor(async () => (await done()) === 20, "all of the other organization are done");
    expect([first, second, third].map(of)).toEqual([2, 2, 0]);
    answered.resolve();
    await waitFor(async () => (await done()) === 35, "all are done");
    expect([first, second, third, elsewhere].map(of)).toEqual([5, 5, 5, 20]);
  } finally {
    answered.resolve();
    await worker.stop();
  }
});

test("an organization whose pending jobs are all held by others, or unwanted, is passed over for the next", async () => {
  const { database } = testDatabase;
  const [busy, other] = [await addOrganization(database), await addOrganization(database)];
  const [held, free] = [await addAutomation(database, busy, "held"), await addAutomation(database, other, "free")];
  await trigger(busy, held, 20);
  await trigger(other, free, 20);
  const claimed = async (without: string[] = []): Promise<string | undefined> =>
    (await claimJob(database, { worker: "w", leaseMs: 60_000, busy: without }))?.automation.id;
  await database.transaction(async (transaction) => {
    await transaction.query("select from job where automation_id = $1 for update", [held]);
    for (let time = 0; time < 10; time += 1) expect(await claimed()).toBe(free);
  });
  for (const without of [free, other]) expect(await claimed([without])).toBe(held);
  expect(await claimed([busy, other])).toBeUndefined();
});

test("a job that waits for a slow forge when the worker stops takes no time from the sessions that run", async () => {
  const { database } = testDatabase;
  const organizationId = await addOrganization(database);
  const answered = Promise.withResolvers<void>();
  const under = { job: false, session: false };
  let isDrained = false;
  const worker = createWorker({
    database,
    logger: createLogger("silent"),
    metrics: createMetrics(),
    id: "stopping",
    concurrency: 1,
    leaseMs: 60_000,
    drainMs: 60_000,
    maxRunningPerOrganization: 1,
    async runSession(_session, { draining }) {
      under.session = true;
      if (!draining.aborted) await once(draining, "abort");
      isDrained = true;
    },
    async runJob() {
      under.job = true;
      await answered.promise;
    },
  });
  await worker.start();
  let isStopped = false;
  let stopped: Promise<void> = Promise.resolve();
  try {
    await addSession(database, organizationId);
    await trigger(organizationId, await addAutomation(database, organizationId, "slow"), 1);
    await waitFor(() => under.job && under.session, "both are under way");
    stopped = worker.stop().then(() => void (isStopped = true));
    await waitFor(() => isDrained, "the session is asked to end");
    expect(isStopped).toBe(false);
  } finally {
    answered.resolve();
    await stopped;
    await worker.stop();
  }
});
