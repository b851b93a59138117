import { join } from "node:path";
import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import { checkConnection } from "../forges/connections/check-connection.ts";
import type { ForgeConnection, OrganizationForges } from "../forges/connections/organization-forges.ts";
import type { Service } from "../lifecycle/service.ts";
import { createReplies } from "../replies/replies.ts";
import { openReplyToken } from "../store/automations/trigger-secrets.ts";
import { unsubscribeToken } from "../store/notices/unsubscribe.ts";
import { createAnswerSender } from "../worker/answers/answer-sender.ts";
import { createSessionReplies } from "../worker/answers/session-replies.ts";
import type { AttemptServices } from "../worker/attempt/attempt.ts";
import { createAccountChecks } from "../worker/background/account-checks.ts";
import { createConnectionChecks } from "../worker/background/connection-checks.ts";
import { createRemovalOfDeleted } from "../worker/background/deleted-sessions.ts";
import { createErasures } from "../worker/background/erasures.ts";
import { createHeartbeat } from "../worker/background/heartbeat.ts";
import { createHeldJobs } from "../worker/background/held-jobs.ts";
import type { Housekeeping } from "../worker/background/housekeeping.ts";
import { createInsightCount } from "../worker/background/insight.ts";
import { createNotices } from "../worker/background/notices.ts";
import { createPullRequestPolling } from "../worker/background/pull-request-polling.ts";
import { createScheduleTicks } from "../worker/background/schedule-ticks.ts";
import { createSilenceWatch } from "../worker/background/silence-watch.ts";
import { createFileSyncs } from "../worker/background/sync-automation-files.ts";
import { createWebhookSender } from "../worker/background/webhook-sender.ts";
import type { RestingHosts } from "../worker/conversations/ask-forge.ts";
import { createConversationSweep } from "../worker/conversations/conversation-sweep.ts";
import { createSectionSweep } from "../worker/conversations/section-sweep.ts";
import { createEventDecisions } from "../worker/events/event-decisions.ts";
import { createFileAnswers } from "../worker/files/file-answers.ts";
import { listAgents } from "./agent-list.ts";
import { chooseDefaultAgent } from "./agent-registry.ts";
import { environmentsDirectory } from "./attempt-services.ts";
import type { Dependencies } from "./dependencies.ts";
import { forgeAccounts } from "./forge-accounts.ts";
import { pushKeysOf } from "./push-keys.ts";
import { describeMachine } from "./worker-machine.ts";

/** The worker's dependencies of background tasks. */
interface OfWorker {
  readonly services: AttemptServices;
  readonly workerId: string;
  /** Address of the web app. */
  readonly url: string;
  readonly house: Housekeeping;
  readonly housekeeping: Service;
  readonly untilOver: (sessionId: string) => Promise<void>;
  readonly resting: RestingHosts;
}

/** Forges by the address of a repository, and of which organization it is. */
export function forgesByAddress(forges: OrganizationForges) {
  return {
    keyOf: async (address: RepositoryAddress, organizationId: string) =>
      (await forges.of(organizationId)).keyOf(address),
    forgeOf: async (address: RepositoryAddress, organizationId: string) =>
      (await forges.of(organizationId)).forgeOf(address),
  };
}

/** Every worker's tasks beside sessions and jobs, in the order of their start. */
export function backgroundTasks(dependencies: Dependencies, ofWorker: OfWorker): Service[] {
  const { database, logger } = dependencies;
  const { house, housekeeping, untilOver, services, workerId } = ofWorker;
  const erased = {
    environmentsDirectory: environmentsDirectory(dependencies.config),
    markFile: join(dependencies.config.data, "erased"),
  };
  return [
    heartbeat(dependencies, ofWorker),
    housekeeping,
    createRemovalOfDeleted({ ...house, untilOver }),
    createErasures({ ...house, ...erased, untilOver }),
    createHeldJobs({ database, logger }),
    createFileAnswers({ ...services, workerId }),
    ...conversationTasks(dependencies, ofWorker),
    ...outgoingTasks(dependencies, ofWorker),
    ...forgeTasks(dependencies),
    createInsightCount({ database, logger }),
    createScheduleTicks({ database, logger, templates: dependencies.templates }),
    createSilenceWatch({ database, logger }),
    automationFileSyncs(dependencies, ofWorker),
  ];
}

function heartbeat({ config, logger, database, providers }: Dependencies, { services, workerId }: OfWorker): Service {
  const defaultAgent = () => chooseDefaultAgent(config, providers);
  const places = { data: config.data, mirrors: services.mirrors.directory };
  const describe = async () => ({
    agents: await listAgents(providers, defaultAgent),
    defaultAgent: await defaultAgent(),
    concurrency: config.concurrency,
    machine: await describeMachine(places, config.minimumFreeBytes, logger),
  });
  return createHeartbeat({ database, logger, id: workerId, describe });
}

/** Tasks for events, and for conversations on forges. */
function conversationTasks(
  { config, database, logger, templates, sandbox, forges }: Dependencies,
  { workerId, url, resting }: OfWorker,
): Service[] {
  const { keyOf, forgeOf } = forgesByAddress(forges);
  const conversations = {
    database,
    logger,
    templates,
    forgeOf,
    resting,
    limits: config.conversations,
    publicUrl: () => url,
    sandboxed: sandbox.isolates,
  };
  return [
    createEventDecisions({ database, logger, templates, worker: workerId, keyOf, conversations }),
    createConversationSweep(conversations),
    createSectionSweep(conversations),
  ];
}

/** Tasks that send: to webhooks, people, forges and services. */
function outgoingTasks(dependencies: Dependencies, { services, url }: OfWorker): Service[] {
  const { config, database, vault, logger, metrics, forges } = dependencies;
  const publicUrl = () => url;
  const outside = { privateHosts: config.webhookHosts, proxies: config.outbound.proxies };
  return [
    createWebhookSender({ database, vault, logger, metrics, publicUrl, ...outside }),
    createNotices({
      database,
      vault,
      logger,
      publicUrl,
      mail: config.mail,
      pushKeys: pushKeysOf(dependencies),
      unsubscribeUrl: async (userId, kind) =>
        `${url}/notice/unsubscribe?${new URLSearchParams({ token: await unsubscribeToken(vault, userId, kind) }).toString()}`,
      ...outside,
    }),
    createAnswerSender({
      database,
      logger,
      metrics,
      mask: services.mask,
      forgesOf: forges.of,
      replies: createReplies(config.replyUrls),
      replyToken: (organizationId, triggerId) => openReplyToken(database, vault, organizationId, triggerId),
    }),
    createSessionReplies({ database, logger, publicUrl }),
  ];
}

/** Periodic requests to forges: pull requests, and checks of credentials. */
function forgeTasks(dependencies: Dependencies): Service[] {
  const { config, database, vault, logger, forges, forgeReach: reach } = dependencies;
  const { forgeOf } = forgesByAddress(forges);
  const check = (connection: ForgeConnection, signal: AbortSignal) =>
    checkConnection(connection, connection.credential, { reach, configured: config.forges, signal });
  return [
    createPullRequestPolling({ database, logger, forgeOf, minutes: config.pullRequestMinutes }),
    createConnectionChecks({ database, vault, logger, check }),
    createAccountChecks({ database, vault, logger, accounts: forgeAccounts(dependencies) }),
  ];
}

function automationFileSyncs(
  { config, database, vault, logger, templates, providers, forges }: Dependencies,
  { services: { mirrors }, url }: OfWorker,
): Service {
  const { allowLocalRepositories } = config;
  const { forgeOf } = forgesByAddress(forges);
  const files = { database, vault, logger, templates, mirrors, forgeOf, allowLocalRepositories, publicUrl: () => url };
  return createFileSyncs({ ...files, providers: providers.map((provider) => provider.id) });
}
