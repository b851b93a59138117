import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../src/lifecycle/service.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { createAutomation } from "../../src/store/automations/automations.ts";
import { claimJob, createJobs, getJob, recoverJobs, type JobRecord } from "../../src/store/automations/jobs.ts";
import { createTemplates } from "../../src/templates/templates.ts";
import { noTraces } from "../../src/traces.ts";
import { runJob } from "../../src/worker/run-job.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { noForge } from "../no-forge.ts";

let testDatabase: TestDatabase;
const templates = createTemplates({ processes: 1 });

beforeAll(async () => {
  testDatabase = await createTestDatabase();
});
afterAll(async () => {
  await templates.close();
  await testDatabase?.close();
});

const loops = "{% for i in (1..99999) %}{% for j in (1..99999) %}{% endfor %}{% endfor %}x";
const memory = "{% for i in (1..99999999) %}{% endfor %}x";
const leaseMs = 3_000;

async function addAutomation(organizationId: string, macro: string, instructions: string): Promise<string> {
  const { automation } = await createAutomation(testDatabase.database, organizationId, {
    id: crypto.randomUUID(),
    name: macro,
    macro,
    instructions,
    agent: null,
    targetBranch: null,
    priority: 5,
    paused: false,
    budgetUsd: null,
    title: null,
    repositoryIds: [],
  });
  return automation.id;
}

async function trigger(organizationId: string, automationId: string): Promise<string> {
  const id = crypto.randomUUID();
  await createJobs(testDatabase.database, [{ id, organizationId, automationId, priority: 5, payload: {} }]);
  return id;
}

/** A worker whose sessions run until they are ended. */
async function work(running: Set<string>): Promise<Service> {
  const { database } = testDatabase;
  const logger = createLogger("silent");
  const worker = createWorker({
    database,
    logger,
    metrics: createMetrics(),
    id: "worker",
    concurrency: 100,
    leaseMs,
    maxRunningPerOrganization: 100,
    runSession: (session, { signal, draining }) => {
      running.add(`${session.sessionId} ${session.attempt}`);
      const over = AbortSignal.any([signal, draining]);
      return new Promise((resolve) => over.addEventListener("abort", () => resolve(), { once: true }));
    },
    runJob: (job) => runJob({ database, logger, traces: noTraces, templates, ...noForge, sandboxed: true }, job),
  });
  await worker.start();
  return worker;
}

test("jobs whose templates are poison fail once with the limit, and other jobs and sessions of the worker go on", async () => {
  const { database } = testDatabase;
  const organizationId = await addOrganization(database);
  const good = await addAutomation(organizationId, "good", "Fix {{ event.x | default: 'it' }}");
  const poisons = [
    await addAutomation(organizationId, "loops", loops),
    await addAutomation(organizationId, "memory", memory),
  ];
  const running = new Set<string>();
  const worker = await work(running);
  const ofPoison: string[] = [];
  const before = await trigger(organizationId, good);
  const settled = (id: string): Promise<JobRecord | null> =>
    waitFor(async () => {
      const job = await getJob(database, organizationId, id);
      return job?.status === "completed" || job?.status === "failed" ? job : null;
    }, "the job was over");
  await settled(before);
  await waitFor(() => running.size === 1, "its session ran");
  const began = Date.now();
  // For longer than a lease lasts.
  while (Date.now() - began < 2 * leaseMs) {
    const round = await Promise.all(poisons.map((automationId) => trigger(organizationId, automationId)));
    for (const id of round) await settled(id);
    ofPoison.push(...round);
  }
  const after = await trigger(organizationId, good);
  expect(await settled(after)).toMatchObject({ status: "completed" });
  await waitFor(() => running.size === 2, "the second session ran");
  for (const [index, id] of ofPoison.entries()) {
    const limit = index % 2 === 0 ? /100 ms of processor time/u : /64 MiB of memory|100 ms of processor time/u;
    expect(await settled(id)).toMatchObject({ status: "failed", error: expect.stringMatching(limit) as string });
  }
  const { rows } = await database.pool.query("select attempt from job where id = any($1)", [ofPoison]);
  expect(new Set(rows.map(({ attempt }) => attempt))).toEqual(new Set([1]));
  // Each session is still held by its first claim: no lease was lost meanwhile.
  const sessions = await database.pool.query("select id, attempt, status from session where organization_id = $1", [
    organizationId,
  ]);
  expect(sessions.rows).toHaveLength(2);
  for (const { id, attempt, status } of sessions.rows) {
    expect({ id, attempt, status }).toEqual({ id, attempt: 1, status: "running" });
    expect(running).toContain(`${id} 1`);
  }
  await worker.stop();
});

test("what a machine has no time for now is no failure of the job: it is tried again", async () => {
  const { database } = testDatabase;
  const organizationId = await addOrganization(database);
  const automationId = await addAutomation(organizationId, "busy", "Fix it");
  const id = await trigger(organizationId, automationId);
  const closed = createTemplates();
  await closed.close();
  const claim = async () => {
    const job = await claimJob(database, { worker: "another", leaseMs });
    if (job === null) throw new Error("there was no job");
    return job;
  };
  const dependencies = { database, logger: createLogger("silent"), traces: noTraces, ...noForge, sandboxed: true };
  await runJob({ ...dependencies, templates: closed }, await claim());
  expect(await getJob(database, organizationId, id)).toMatchObject({ status: "running", error: null });
  await recoverJobs(database, { worker: "another" });
  await runJob({ ...dependencies, templates }, await claim());
  expect(await getJob(database, organizationId, id)).toMatchObject({ status: "completed" });
});
