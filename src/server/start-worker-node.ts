import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import { readProgramTexts } from "../programs/program-text.ts";
import { hasFreeSpace } from "../database/free-space.ts";
import { checkConnection } from "../forges/check-connection.ts";
import type { ForgeConnection } from "../forges/organization-forges.ts";
import { createConnectionChecks } from "../worker/background/connection-checks.ts";
import { createRemovalOfDeleted } from "../worker/background/deleted-sessions.ts";
import { createEventDecisions } from "../worker/background/decide-events.ts";
import { createErasures } from "../worker/background/erasures.ts";
import { createHeartbeat } from "../worker/background/heartbeat.ts";
import { createHeldJobs } from "../worker/background/held-jobs.ts";
import { createHousekeeping } from "../worker/background/housekeeping.ts";
import { createPullRequestPolling } from "../worker/background/pull-request-polling.ts";
import { createScheduleTicks } from "../worker/background/schedule-ticks.ts";
import { createWebhookSender } from "../worker/background/webhook-sender.ts";
import { runAttempt } from "../worker/run-attempt.ts";
import { runJob } from "../worker/run-job.ts";
import { createWorker } from "../worker/worker.ts";
import { listAgents } from "./agent-list.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Shutdown } from "./shutdown.ts";
import {
  chooseDefaultAgent,
  createAttemptServices,
  environmentsDirectory,
  openConfiguredSigner,
  readWorkerId,
  recordingsDirectory,
  socketDirectory,
  writeAuthorities,
} from "./wiring.ts";

/**
 * Starts the worker: sessions, jobs, and the background tasks of every worker.
 * @param url address of the web app
 */
export async function startWorkerNode(dependencies: Dependencies, url: string, shutdown: Shutdown): Promise<void> {
  const { config, logger, metrics, traces, database, sandbox, providers, templates } = dependencies;
  // Removes the sockets that a killed server left behind.
  await Promise.all([
    rm(socketDirectory(config), { recursive: true, force: true }),
    readProgramTexts(),
    writeAuthorities(config),
  ]);
  const id = await readWorkerId(config.data);
  if (sandbox.sweeper !== undefined) await shutdown.start(sandbox.sweeper);
  const signer = await openConfiguredSigner(config);
  if (signer !== null) shutdown.add(() => signer.close());
  const services = createAttemptServices(config, { ...dependencies, publicUrl: () => url, workerId: id, signer });
  await services.folders.forgetIncoming();
  const worker = createWorker({
    database,
    logger,
    metrics,
    id,
    concurrency: config.concurrency,
    leaseMs: config.leaseMs,
    maxRunningPerOrganization: config.maxRunningPerOrganization,
    maxRunningPerRepository: config.maxRunningPerRepository,
    hasRoom: () => hasFreeSpace(config.data, config.minimumFreeBytes),
    drainMs: config.drainMs,
    runSession: (session, signals) => runAttempt(services, session, signals),
    runJob: (job) => runJob({ database, logger, traces, templates, sandboxed: sandbox.isolates }, job),
  });
  await shutdown.start(worker);
  const defaultAgent = () => chooseDefaultAgent(config, providers);
  const describe = async () => ({
    agents: await listAgents(providers, defaultAgent),
    defaultAgent: await defaultAgent(),
    concurrency: config.concurrency,
  });
  await shutdown.start(createHeartbeat({ database, logger, id, describe }));
  const { retention } = config;
  const { folders, mirrors, objects } = services;
  const house = {
    database,
    logger,
    objects,
    folders,
    mirrors,
    recordingsDirectory: recordingsDirectory(config),
    retention,
  };
  await shutdown.start(createHousekeeping(house));
  const { untilOver } = worker;
  await shutdown.start(createRemovalOfDeleted({ ...house, untilOver }));
  const erased = { environmentsDirectory: environmentsDirectory(config), markFile: join(config.data, "erased") };
  await shutdown.start(createErasures({ ...house, ...erased, untilOver }));
  const { vault, forges } = dependencies;
  await shutdown.start(createHeldJobs({ database, logger }));
  const keyOf = async (address: RepositoryAddress, organizationId: string) =>
    (await forges.of(organizationId)).keyOf(address);
  await shutdown.start(createEventDecisions({ database, logger, templates, worker: id, keyOf }));
  const publicUrl = () => url;
  await shutdown.start(
    createWebhookSender({
      database,
      vault,
      logger,
      metrics,
      publicUrl,
      privateHosts: config.webhookHosts,
      proxies: config.outbound.proxies,
    }),
  );
  const { pullRequestMinutes: minutes } = config;
  const forgeOf = async (address: RepositoryAddress, organizationId: string) =>
    (await forges.of(organizationId)).forgeOf(address);
  await shutdown.start(createPullRequestPolling({ database, logger, forgeOf, minutes }));
  const { forgeReach: reach } = dependencies;
  const check = (connection: ForgeConnection, signal: AbortSignal) =>
    checkConnection(connection, connection.credential, { reach, configured: config.forges, signal });
  await shutdown.start(createConnectionChecks({ database, vault, logger, check }));
  await shutdown.start(createScheduleTicks({ database, logger, templates }));
}
