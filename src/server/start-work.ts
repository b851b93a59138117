import { rm } from "node:fs/promises";
import { hasRoom } from "../database/room.ts";
import { followPullRequests } from "../worker/background/follow-pull-requests.ts";
import { createHeartbeat } from "../worker/background/heartbeat.ts";
import { createHousekeeping } from "../worker/background/housekeeping.ts";
import { createRelay } from "../worker/background/relay.ts";
import { runAttempt } from "../worker/run-attempt.ts";
import { runJob } from "../worker/run-job.ts";
import { createWorker } from "../worker/worker.ts";
import { listAgents } from "./agent-list.ts";
import type { Parts } from "./parts.ts";
import type { Stops } from "./stops.ts";
import {
  chooseDefaultAgent,
  createAttemptServices,
  readWorkerId,
  recordingsDirectory,
  socketDirectory,
} from "./wiring.ts";

/**
 * Starts the worker: sessions, jobs, and the background tasks of every worker.
 * @param url address of the web app
 */
export async function startWork(parts: Parts, url: string, stops: Stops): Promise<void> {
  const { config, logger, metrics, traces, database, sandbox, providers, templates } = parts;
  // Removes the sockets that a killed server left behind.
  await rm(socketDirectory(config), { recursive: true, force: true });
  const id = await readWorkerId(config.data);
  if (sandbox.upkeep !== undefined) await stops.start(sandbox.upkeep);
  const services = createAttemptServices(config, { ...parts, publicUrl: () => url, workerId: id });
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
    hasRoom: () => hasRoom(config.data, config.minimumFreeBytes),
    drainMs: config.drainMs,
    runSession: (session, signals) => runAttempt(services, session, signals),
    runJob: (job) => runJob({ database, logger, traces, templates, sandboxed: sandbox.isolates }, job),
  });
  await stops.start(worker);
  const defaultAgent = () => chooseDefaultAgent(config, providers);
  const describe = async () => ({
    agents: await listAgents(providers, defaultAgent),
    defaultAgent: await defaultAgent(),
    concurrency: config.concurrency,
  });
  await stops.start(createHeartbeat({ database, logger, id, describe }));
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
  await stops.start(createHousekeeping(house));
  const { vault, forges } = parts;
  const publicUrl = () => url;
  await stops.start(createRelay({ database, vault, logger, metrics, publicUrl, privateHosts: config.webhookHosts }));
  const { pullRequestMinutes: minutes } = config;
  await stops.start(followPullRequests({ database, logger, forgeOf: forges.forgeOf, minutes }));
}
