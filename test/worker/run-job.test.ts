import { afterAll, beforeAll, expect, test } from "vitest";
import { createLogger } from "../../src/observability.ts";
import { updateAutomation } from "../../src/store/automations/automations.ts";
import {
  claimJob,
  createJobs,
  getJob,
  recoverJobs,
  type ClaimedJob,
  type JobRecord,
} from "../../src/store/automations/jobs.ts";
import { createRepository, deleteRepository } from "../../src/store/repositories/repositories.ts";
import { UnavailableError } from "../../src/domain/errors/errors.ts";
import { createTemplates, type Templates } from "../../src/templates/templates.ts";
import { noTraces } from "../../src/traces.ts";
import { runJob } from "../../src/worker/run-job.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, longLeaseMs } from "../store/fixtures.ts";
import { noForge } from "../no-forge.ts";

let testDatabase: TestDatabase;
const templates = createTemplates();

beforeAll(async () => {
  testDatabase = await createTestDatabase();
});

afterAll(async () => {
  await templates.close();
  await testDatabase?.close();
});

test("an automation's run does not work on a repository that was disconnected, and says so", async () => {
  const { database } = testDatabase;
  const organizationId = await addOrganization(database);
  const automationId = await addAutomation(database, organizationId, "work");
  const address = { url: "https://example.com/acme/one", key: "example.com/acme/one", name: "acme/one" };
  const { id } = await createRepository(database, organizationId, { ...address, branch: null, description: null });
  await updateAutomation(database, organizationId, automationId, { repositoryIds: [id] });

  async function trigger(): Promise<JobRecord | null> {
    const jobId = crypto.randomUUID();
    await createJobs(database, [{ id: jobId, organizationId, automationId, priority: 5, payload: {} }]);
    const job = await claimJob(database, { worker: "worker", leaseMs: longLeaseMs });
    if (job === null) throw new Error("there was no job");
    await runJob(
      { database, logger: createLogger("silent"), traces: noTraces, templates, ...noForge, sandboxed: true },
      job,
    );
    return getJob(database, organizationId, jobId);
  }

  expect(await trigger()).toMatchObject({ status: "completed", error: null });
  await deleteRepository(database, organizationId, id);
  expect(await trigger()).toMatchObject({
    status: "failed",
    sessionId: null,
    error: "https://example.com/acme/one was disconnected: set the automation's repositories again",
  });
});

test("a run's session opens pull requests as its automation says, and those of a changed one otherwise", async () => {
  const { database } = testDatabase;
  const organizationId = await addOrganization(database);
  const automationId = await addAutomation(database, organizationId, "settings");
  const settings = { draft: true, labels: ["bug"], reviewers: [], assignees: ["ada"] };

  async function run(): Promise<unknown> {
    const jobId = crypto.randomUUID();
    await createJobs(database, [{ id: jobId, organizationId, automationId, priority: 5, payload: {} }]);
    const job = await claimJob(database, { worker: "worker", leaseMs: longLeaseMs });
    if (job === null) throw new Error("there was no job");
    await runJob(
      { database, logger: createLogger("silent"), traces: noTraces, templates, sandboxed: true, ...noForge },
      job,
    );
    const { rows } = await database.pool.query("select pull_request from session where job_id = $1", [jobId]);
    return rows[0]?.pull_request;
  }

  expect(await run()).toBeNull();
  await updateAutomation(database, organizationId, automationId, { pullRequest: settings });
  expect(await run()).toEqual(settings);
  await updateAutomation(database, organizationId, automationId, { paused: false });
  expect(await run()).toEqual(settings);
  const { automation } = await updateAutomation(database, organizationId, automationId, { pullRequest: null });
  expect(automation.pullRequest).toBeNull();
  expect(await run()).toBeNull();
});

test("a run outlasts a forge that does not answer for half an hour, and does not count as failed meanwhile", async () => {
  const { database } = testDatabase;
  const organizationId = await addOrganization(database);
  const automationId = await addAutomation(database, organizationId, "outage");
  const jobId = crypto.randomUUID();
  await createJobs(database, [{ id: jobId, organizationId, automationId, priority: 5, payload: {} }]);
  const claimed = async (): Promise<ClaimedJob> => {
    const job = await claimJob(database, { worker: "worker", leaseMs: 1 });
    if (job === null) throw new Error("there was no job");
    return job;
  };
  const run = async (job: ClaimedJob, of: Templates = templates) =>
    runJob(
      { database, logger: createLogger("silent"), traces: noTraces, templates: of, ...noForge, sandboxed: true },
      job,
    );
  const silent: Templates = { ...templates, render: () => Promise.reject(new UnavailableError("no answer")) };
  /** As if the time had passed. */
  const pass = async (): Promise<number> => {
    const { rows } = await database.pool.query<{ seconds: number }>(
      `update job set lease_until = now() - interval '1 second' from job before
       where before.id = job.id and job.id = $1
       returning extract(epoch from before.lease_until - now())::float8 as seconds`,
      [jobId],
    );
    return rows[0]?.seconds ?? 0;
  };
  let seconds = 0;
  for (let attempts = 0; attempts < 8; attempts += 1) {
    await run(await claimed(), silent);
    expect(await recoverJobs(database, {})).toBe(0);
    seconds += await pass();
    expect(await recoverJobs(database, {})).toBe(1);
  }
  expect(seconds).toBeGreaterThan(1_800);
  expect(await getJob(database, organizationId, jobId)).toMatchObject({ status: "pending", error: null });
  await run(await claimed());
  expect(await getJob(database, organizationId, jobId)).toMatchObject({ status: "completed", error: null });
});
