import { rm } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { readProgramTexts } from "../programs/program-text.ts";
import { hasFreeSpace } from "../database/free-space.ts";
import { createRestingHosts } from "../worker/conversations/ask-forge.ts";
import { createHousekeeping } from "../worker/background/housekeeping.ts";
import { createWarmPool } from "../worker/harness/warm-pool.ts";
import { runAttempt } from "../worker/run-attempt.ts";
import { runJob } from "../worker/run-job.ts";
import { createWorker } from "../worker/worker.ts";
import { createAttemptServices, openConfiguredSigner, socketDirectory, writeAuthorities } from "./attempt-services.ts";
import { backgroundTasks, forgesByAddress } from "./background-tasks.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Shutdown } from "./shutdown.ts";
import { readWorkerId } from "./worker-id.ts";
import { recordingsDirectory } from "./open-stores.ts";

const gibibyte = 1024 ** 3;
/** The expected memory of a session, and the reserve in addition: on small machines agents are expected to be small. */
const sessionBytes = Math.min(gibibyte, totalmem() / 24);

/** Whether this machine has memory for another session, when `young` others have begun that do not hold yet what they will. */
function hasMemoryFor(young: number): boolean {
  return process.availableMemory() - young * sessionBytes >= 2 * sessionBytes;
}

/**
 * Agents that start at once. What starts them is work for a processor, some seconds of it: thirty that started at once on two processors
 * took five times as long as in pairs, and none was done before the others.
 */
const startsAtOnce = Math.max(2, availableParallelism());

/**
 * Starts the worker: sessions, jobs, and the background tasks of every worker.
 * @param url address of the web app
 */
export async function startWorkerNode(dependencies: Dependencies, url: string, shutdown: Shutdown): Promise<void> {
  const { config, logger, metrics, traces, database, sandbox, templates } = dependencies;
  // Removes the sockets that a killed server left behind.
  await Promise.all([
    rm(socketDirectory(config), { recursive: true, force: true }),
    readProgramTexts(),
    writeAuthorities(config),
  ]);
  const id = await readWorkerId(config.data);
  await shutdown.start(sandbox.sweeper);
  const signer = await openConfiguredSigner(config);
  if (signer !== null) shutdown.add(() => signer.close());
  const services = createAttemptServices(config, { ...dependencies, publicUrl: () => url, workerId: id, signer });
  await services.folders.forgetIncoming();
  await shutdown.start(services.mounts);
  const { keyOf, forgeOf } = forgesByAddress(dependencies.forges);
  const resting = createRestingHosts();
  const pool = createWarmPool(services, {
    most: config.warm,
    problem:
      config.sessionDisks === "image" ? "each session has a disk of its own (OFFSTAGE_SANDBOX_DISK=image)" : null,
    hasPlace: () => worker.hasPlace(),
  });
  const hasRoom = () => hasFreeSpace(config.data, config.minimumFreeBytes);
  const { folders, mirrors, checkouts, objects } = services;
  const house = {
    database,
    logger,
    objects,
    folders,
    mirrors,
    checkouts,
    recordingsDirectory: recordingsDirectory(config),
    retention: config.retention,
    hasRoom,
  };
  const housekeeping = createHousekeeping(house);
  const worker = createWorker({
    database,
    logger,
    metrics,
    id,
    concurrency: config.concurrency,
    leaseMs: config.leaseMs,
    maxRunningPerOrganization: config.maxRunningPerOrganization,
    maxRunningPerRepository: config.maxRunningPerRepository,
    hasRoom,
    onFull: () => housekeeping.now(),
    hasMemory: hasMemoryFor,
    startsAtOnce,
    drainMs: config.drainMs,
    runSession: (session, signals) => runAttempt(services, session, signals, pool),
    runJob: (job) =>
      runJob({ database, logger, traces, templates, keyOf, forgeOf, resting, sandboxed: sandbox.isolates }, job),
  });
  await shutdown.start(pool);
  await shutdown.start(worker);
  const { untilOver } = worker;
  const tasks = backgroundTasks(dependencies, { services, workerId: id, url, house, housekeeping, untilOver, resting });
  for (const task of tasks) await shutdown.start(task);
}
