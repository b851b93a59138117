import { join } from "node:path";
import { widenEgress } from "../../domain/environments/egress.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import { recordingName } from "../../domain/sessions/recording.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { CallTool, ToolDescription } from "../../gateway/tools.ts";
import { admitAll } from "../../gateway/models/admission.ts";
import type { GatewayTask } from "../../gateway/process/messages.ts";
import type { GatewayLostError, GatewayServices, WarmGateway } from "../../gateway/process/process.ts";
import { fileAddressesOf, registryFolder } from "../../domain/environments/registry.ts";
import type { OpenedRegistry } from "../../store/secrets/registries.ts";
import type { SessionRepository } from "../clones/clone.ts";
import type { Attempt, AttemptServices } from "./attempt.ts";
import { createModelBudget, labelOf, namedModels, usageEvent, type BudgetServices } from "./model-budget.ts";
import { untilReached } from "./until-stored.ts";
import type { BudgetUsedUp } from "./stop-reasons.ts";

/** Services of the worker for opening a gateway. */
export type GatewayServicesOfAttempt = BudgetServices &
  Pick<
    AttemptServices,
    | "gateways"
    | "egress"
    | "registryHosts"
    | "sandboxAuthorities"
    | "socketDirectory"
    | "modelPermits"
    | "recordingsDirectory"
    | "metrics"
  >;

type Emitting = Pick<Attempt, "session" | "registries" | "mask" | "logger" | "emit">;

/**
 * Opens the gateway of a sandbox in which repositories are set up, or a gate decides: no models, and the hosts on the lists of the
 * server, the organization and those repositories.
 * @param onLost called if the gateway's process ends unexpectedly
 */
export async function openSetupGateway(
  attempt: Emitting,
  services: Omit<GatewayServicesOfAttempt, "database" | "recordingsDirectory">,
  repositories: readonly SessionRepository[],
  onLost: (error: SessionError) => void,
): Promise<Gateway> {
  const task = { ...taskOf(attempt, services, repositories), models: {}, recording: null };
  const gateway = await services.gateways.open(task, { ...listenersOf(attempt, services, onLost), admit: admitAll });
  // It took the process that was started ahead for the agent.
  services.gateways.prepare();
  return gateway;
}

/** The gateway of an agent's sandbox. */
export interface SessionGateway extends Gateway {
  /** Settles when all costs that were reported are stored. To be called when it is closed. */
  stored(): Promise<void>;
}

/**
 * Opens the gateway of an agent's sandbox: hosts on the lists, and allowed models as long as the budgets last.
 * @param tools of the service that the agent may call
 * @param onOver called with the reason why the turn can't go on: the budget is used up, or the gateway's process ended
 *   unexpectedly
 * @param waiting the gateway of a harness that was started early, which becomes the session's; null: one is opened
 */
export async function openSessionGateway(
  attempt: Emitting & Pick<Attempt, "signal">,
  services: GatewayServicesOfAttempt,
  tools: { readonly list: readonly ToolDescription[]; readonly call: CallTool },
  onOver: (reason: BudgetUsedUp | SessionError) => void,
  waiting: Pick<WarmGateway, "adopt"> | null = null,
): Promise<SessionGateway> {
  const { models, recordingsDirectory, gateways } = services;
  const { session, mask } = attempt;
  const { admit, stored } = createModelBudget(attempt, services, onOver, (used) =>
    reportUsage(attempt, services, usageEvent(...used)),
  );
  const recording =
    recordingsDirectory === null
      ? null
      : { file: join(recordingsDirectory, recordingName(session.sessionId)), secrets: mask.secrets };
  const task = { ...taskOf(attempt, services, session.repositories), models, recording, tools: tools.list };
  const heard: GatewayServices = {
    ...listenersOf(attempt, services, onOver),
    // A request that is refused because the database is away for a moment would end the turn.
    admit: (request) => untilReached(attempt, request.signal, () => admit(request)),
    callTool: tools.call,
  };
  const gateway = await (waiting === null ? gateways.open(task, heard) : waiting.adopt(task, heard));
  return { ...gateway, stored };
}

/** Emits without waiting. If the lease was lost, the turn's own events report that. */
function emitSoon({ emit, logger }: Pick<Attempt, "emit" | "logger">, event: NewEvent): void {
  emit(event).catch((error: unknown) => logger.debug({ err: error }, "could not emit what the gateway reported"));
}

function reportUsage(
  attempt: Emitting,
  services: Pick<AttemptServices, "metrics"> & BudgetServices,
  event: ReturnType<typeof usageEvent>,
): void {
  const { metrics } = services;
  const { provider, model, costUsd, ...tokens } = event.data;
  emitSoon(attempt, event);
  const label = labelOf(services, model);
  metrics.modelUsed(provider, label, {
    input: tokens.inputTokens,
    output: tokens.outputTokens,
    cacheRead: tokens.cacheReadTokens,
    cacheWrite: tokens.cacheWriteTokens,
    reasoning: tokens.reasoningTokens,
  });
  if (costUsd !== null) metrics.modelCost(provider, label, costUsd);
}

function taskOf(
  { session: { organization }, registries }: Pick<Attempt, "session" | "registries">,
  services: Pick<
    AttemptServices,
    | "egress"
    | "registryHosts"
    | "sandboxAuthorities"
    | "socketDirectory"
    | "modelPermits"
    | "prices"
    | "allowedModels"
    | "models"
  >,
  repositories: readonly SessionRepository[],
) {
  const { egress, registryHosts, sandboxAuthorities, socketDirectory, modelPermits, prices } = services;
  const lists = [...organization.egress, ...repositories.flatMap(({ egress: allowed }) => allowed)];
  return {
    directory: socketDirectory,
    egress: widenEgress(egress, lists),
    registries: registries.map((registry) => routeOf(registry, registryHosts)),
    authorities: sandboxAuthorities,
    permits: modelPermits,
    labels: { prices, models: namedModels(services) },
  };
}

function routeOf(
  { id, kind, url, scope, username, token }: OpenedRegistry,
  registryHosts: readonly string[],
): GatewayTask["registries"][number] {
  const basic = `Basic ${Buffer.from(`${username}:${token}`).toString("base64")}`;
  // Cargo's registries take the token as it is (https://doc.rust-lang.org/cargo/reference/registry-web-api.html).
  const alone = kind === "cargo" ? token : `Bearer ${token}`;
  const mayBePrivate = registryHosts.includes(new URL(url).hostname);
  const authorization = username === null ? alone : basic;
  return {
    id,
    url: registryFolder(url),
    also: fileAddressesOf(kind, url),
    namesFiles: kind === "cargo" || kind === "nuget",
    scope: kind === "npm" ? scope : null,
    authorization,
    mayBePrivate,
  };
}

function listenersOf(
  attempt: Emitting,
  { metrics }: Pick<AttemptServices, "metrics">,
  onLost: (error: SessionError) => void,
): Omit<GatewayServices, "admit" | "callTool"> {
  const { logger } = attempt;
  return {
    onRequests(counts) {
      for (const { provider, model, outcome, count } of counts) metrics.modelRequested(provider, model, outcome, count);
    },
    onRefused: (refusal) => emitSoon(attempt, { type: "egress.refused", data: refusal }),
    onLost(error) {
      logger.warn({ err: error }, "a session's gateway ended by itself");
      onLost(gatewayLost(error));
    },
    // A recording is for debugging: failing to write it is logged and ends nothing.
    onUnrecorded: (problem) => logger.warn({ problem }, "could not record a session's models"),
  };
}

function gatewayLost(error: GatewayLostError): SessionError {
  return new SessionError(
    {
      code: "agent_crashed",
      reason: "The gateway between the agent and its models ended in the middle of the turn.",
      retryable: true,
      remedy: "Retry the session; the server's log says how it ended.",
    },
    { cause: error },
  );
}
