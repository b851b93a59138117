import { rm } from "node:fs/promises";
import { hasRoom } from "../database/room.ts";
import { removeWorker, reportWorker } from "../store/queue/worker-nodes.ts";
import { followPullRequests } from "../worker/background/follow-pull-requests.ts";
import { startHousekeeping } from "../worker/background/housekeeping.ts";
import { startRelay } from "../worker/background/relay.ts";
import { runAttempt } from "../worker/run-attempt.ts";
import { runJob } from "../worker/run-job.ts";
import { startWorker } from "../worker/worker.ts";
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

const reportEveryMs = 15_000;

/**
 * Starts the worker: sessions, jobs, and the background tasks of every worker.
 * @param url address of the web app
 */
export async function startWork(parts: Parts, url: string, stops: Stops): Promise<void> {
  const { config, logger, metrics, traces, database, sandbox, providers, templates } = parts;
  // Removes the sockets that a killed server left behind.
  await rm(socketDirectory(config), { recursive: true, force: true });
  const id = await readWorkerId(config.data);
  const stopTending = sandbox.tend?.();
  if (stopTending !== undefined) stops.add(stopTending);
  const services = createAttemptServices(config, { ...parts, publicUrl: () => url, workerId: id });
  await services.folders.forgetIncoming();
  const worker = await startWorker({
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
  stops.add(() => worker.stop());
  const defaultAgent = () => chooseDefaultAgent(config, providers);
  const report = async (): Promise<void> =>
    reportWorker(database, {
      id,
      agents: await listAgents(providers, defaultAgent),
      defaultAgent: await defaultAgent(),
      concurrency: config.concurrency,
    });
  await report();
  const reporting = setInterval(() => {
    report().catch((error: unknown) => logger.warn({ err: error }, "could not say that this worker is there"));
  }, reportEveryMs);
  stops.add(() => (clearInterval(reporting), removeWorker(database, id)));
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
  stops.add(startHousekeeping(house));
  const { vault, forges } = parts;
  const publicUrl = () => url;
  stops.add(startRelay({ database, vault, logger, metrics, publicUrl, privateHosts: config.webhookHosts }));
  const stopFollowing = followPullRequests({
    database,
    logger,
    forgeOf: forges.forgeOf,
    minutes: config.pullRequestMinutes,
  });
  stops.add(stopFollowing);
}
