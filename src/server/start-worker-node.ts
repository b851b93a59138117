import { rm } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import { readProgramTexts } from "../programs/program-text.ts";
import { hasFreeSpace } from "../database/free-space.ts";
import { checkConnection } from "../forges/check-connection.ts";
import type { ForgeConnection } from "../forges/organization-forges.ts";
import { createReplies } from "../replies/replies.ts";
import { unsubscribeToken } from "../store/notices/unsubscribe.ts";
import { openReplyToken } from "../store/automations/trigger-secrets.ts";
import { createAccountChecks } from "../worker/background/account-checks.ts";
import { createAnswerSender } from "../worker/answers/answer-sender.ts";
import { createConnectionChecks } from "../worker/background/connection-checks.ts";
import { createRemovalOfDeleted } from "../worker/background/deleted-sessions.ts";
import { createConversationSweep } from "../worker/conversations/conversation-sweep.ts";
import { createSectionSweep } from "../worker/conversations/section-sweep.ts";
import { createRestingHosts } from "../worker/conversations/ask-forge.ts";
import { createEventDecisions } from "../worker/events/event-decisions.ts";
import { createErasures } from "../worker/background/erasures.ts";
import { createHeartbeat } from "../worker/background/heartbeat.ts";
import { createHeldJobs } from "../worker/background/held-jobs.ts";
import { createHousekeeping } from "../worker/background/housekeeping.ts";
import { createInsightCount } from "../worker/background/insight.ts";
import { createNotices } from "../worker/background/notices.ts";
import { createPullRequestPolling } from "../worker/background/pull-request-polling.ts";
import { createScheduleTicks } from "../worker/background/schedule-ticks.ts";
import { createSessionReplies } from "../worker/answers/session-replies.ts";
import { createSilenceWatch } from "../worker/background/silence-watch.ts";
import { createFileSyncs } from "../worker/background/sync-automation-files.ts";
import { createWebhookSender } from "../worker/background/webhook-sender.ts";
import { createWarmPool } from "../worker/harness/warm-pool.ts";
import { runAttempt } from "../worker/run-attempt.ts";
import { runJob } from "../worker/run-job.ts";
import { createWorker } from "../worker/worker.ts";
import { listAgents } from "./agent-list.ts";
import {
  createAttemptServices,
  environmentsDirectory,
  openConfiguredSigner,
  socketDirectory,
  writeAuthorities,
} from "./attempt-services.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Shutdown } from "./shutdown.ts";
import { forgeAccounts } from "./forge-accounts.ts";
import { chooseDefaultAgent } from "./agent-registry.ts";
import { pushKeysOf } from "./push-keys.ts";
import { readWorkerId } from "./worker-id.ts";
import { describeMachine } from "./worker-machine.ts";
import { recordingsDirectory } from "./open-stores.ts";

const gibibyte = 1024 ** 3;
/** What a session is expected to take, and what has to be free in addition: on small machines agents are expected to be small. */
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
  const { config, logger, metrics, traces, database, sandbox, providers, templates } = dependencies;
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
  const { vault, forges } = dependencies;
  const keyOf = async (address: RepositoryAddress, organizationId: string) =>
    (await forges.of(organizationId)).keyOf(address);
  const forgeOf = async (address: RepositoryAddress, organizationId: string) =>
    (await forges.of(organizationId)).forgeOf(address);
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
  const defaultAgent = () => chooseDefaultAgent(config, providers);
  const describe = async () => ({
    agents: await listAgents(providers, defaultAgent),
    defaultAgent: await defaultAgent(),
    concurrency: config.concurrency,
    machine: await describeMachine({ data: config.data, mirrors: mirrors.directory }, config.minimumFreeBytes, logger),
  });
  await shutdown.start(createHeartbeat({ database, logger, id, describe }));
  await shutdown.start(housekeeping);
  const { untilOver } = worker;
  await shutdown.start(createRemovalOfDeleted({ ...house, untilOver }));
  const erased = { environmentsDirectory: environmentsDirectory(config), markFile: join(config.data, "erased") };
  await shutdown.start(createErasures({ ...house, ...erased, untilOver }));
  await shutdown.start(createHeldJobs({ database, logger }));
  const publicUrl = () => url;
  const { conversations: limits } = config;
  const conversations = {
    database,
    logger,
    templates,
    forgeOf,
    resting,
    limits,
    publicUrl,
    sandboxed: sandbox.isolates,
  };
  await shutdown.start(createEventDecisions({ database, logger, templates, worker: id, keyOf, conversations }));
  await shutdown.start(createConversationSweep(conversations));
  await shutdown.start(createSectionSweep(conversations));
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
  await shutdown.start(
    createNotices({
      database,
      vault,
      logger,
      publicUrl,
      mail: config.mail,
      pushKeys: pushKeysOf(dependencies),
      unsubscribeUrl: async (userId, kind) =>
        `${url}/notice/unsubscribe?${new URLSearchParams({ token: await unsubscribeToken(vault, userId, kind) }).toString()}`,
      privateHosts: config.webhookHosts,
      proxies: config.outbound.proxies,
    }),
  );
  await shutdown.start(
    createAnswerSender({
      database,
      logger,
      metrics,
      mask: services.mask,
      forgesOf: forges.of,
      replies: createReplies(config.replyUrls),
      replyToken: (organizationId, triggerId) => openReplyToken(database, vault, organizationId, triggerId),
    }),
  );
  await shutdown.start(createSessionReplies({ database, logger, publicUrl }));
  const { pullRequestMinutes: minutes } = config;
  await shutdown.start(createPullRequestPolling({ database, logger, forgeOf, minutes }));
  const { forgeReach: reach } = dependencies;
  const check = (connection: ForgeConnection, signal: AbortSignal) =>
    checkConnection(connection, connection.credential, { reach, configured: config.forges, signal });
  await shutdown.start(createConnectionChecks({ database, vault, logger, check }));
  await shutdown.start(createAccountChecks({ database, vault, logger, accounts: forgeAccounts(dependencies) }));
  await shutdown.start(createInsightCount({ database, logger }));
  await shutdown.start(createScheduleTicks({ database, logger, templates }));
  await shutdown.start(createSilenceWatch({ database, logger }));
  const { allowLocalRepositories } = config;
  const files = { database, vault, logger, templates, mirrors, forgeOf, allowLocalRepositories, publicUrl };
  await shutdown.start(createFileSyncs({ ...files, providers: providers.map((provider) => provider.id) }));
}
