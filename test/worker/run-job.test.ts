import { afterAll, beforeAll, expect, test } from "vitest";
import { createLogger } from "../../src/observability.ts";
import { updateAutomation } from "../../src/store/automations/automations.ts";
import { claimJob, createJobs, getJob, type JobRecord } from "../../src/store/automations/jobs.ts";
import { createRepository, deleteRepository } from "../../src/store/repositories/repositories.ts";
import { createTemplates } from "../../src/templates/templates.ts";
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
