import { join } from "node:path";
import { widenEgress } from "../../domain/egress.ts";
import { RunError } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { admitAll } from "../../gateway/models/admission.ts";
import type { GatewayLostError, GatewayServices } from "../../gateway/process/process.ts";
import type { BudgetUsedUp } from "./cancellation.ts";
import { createModelBudget, labelOf, namedModels, usageEvent } from "./model-budget.ts";
import type { Run } from "./run.ts";

/**
 * Opens the gateway of a sandbox in which one repository is set up: no models, and the hosts on the lists of the server, the
 * organization and that repository.
 * @param onLost called if the gateway's process ends unexpectedly
 */
export function openSetupGateway(
  run: Run,
  repository: Run["session"]["repositories"][number],
  onLost: (error: RunError) => void,
): Promise<Gateway> {
  const task = { ...taskOf(run, [repository]), models: {}, recording: null };
  return run.dependencies.gateways.open(task, { ...servicesOf(run, onLost), admit: admitAll });
}

/**
 * Opens the gateway of an agent's sandbox: hosts on the lists, and allowed models as long as the budgets last. Closing it waits
 * until all costs are stored.
 * @param onOver called with the reason why the turn can't go on: the budget is used up, or the gateway's process ended
 *   unexpectedly
 */
export async function openSessionGateway(
  run: Run,
  onOver: (reason: BudgetUsedUp | RunError) => void,
): Promise<Gateway> {
  const { models, recordingsDirectory, gateways } = run.dependencies;
  const { admit, stored } = createModelBudget(run, onOver, (used) => tellUsage(run, usageEvent(...used)));
  const recording =
    recordingsDirectory === null
      ? null
      : { file: recordingFile(recordingsDirectory, run.session.sessionId), secrets: run.mask.secrets };
  const task = { ...taskOf(run, run.session.repositories), models, recording };
  const gateway = await gateways.open(task, { ...servicesOf(run, onOver), admit });
  return {
    ...gateway,
    async close() {
      await gateway.close();
      await stored();
    },
  };
}

/** Path of the recording of a session's model traffic (JSON lines). */
export function recordingFile(directory: string, sessionId: string): string {
  return join(directory, `${sessionId}.jsonl`);
}

/** Emits without waiting. If the lease was lost, the turn's own events report that. */
function tell(run: Run, event: NewEvent): void {
  const { logger } = run.dependencies;
  run.emit(event).catch((error: unknown) => logger.debug({ err: error }, "could not tell what the gateway saw"));
}

function tellUsage(run: Run, event: ReturnType<typeof usageEvent>): void {
  const { metrics } = run.dependencies;
  const { provider, model, costUsd, ...tokens } = event.data;
  tell(run, event);
  const label = labelOf(run, model);
  metrics.modelUsed(provider, label, {
    input: tokens.inputTokens,
    output: tokens.outputTokens,
    cacheRead: tokens.cacheReadTokens,
    cacheWrite: tokens.cacheWriteTokens,
    reasoning: tokens.reasoningTokens,
  });
  if (costUsd !== null) metrics.modelCost(provider, label, costUsd);
}

function taskOf(run: Run, repositories: Run["session"]["repositories"]) {
  const { egress, socketDirectory, modelPermits, prices } = run.dependencies;
  const { organization } = run.session;
  const lists = [...organization.egress, ...repositories.flatMap(({ egress: allowed }) => allowed)];
  return {
    directory: socketDirectory,
    egress: widenEgress(egress, lists),
    permits: modelPermits,
    labels: { prices, models: namedModels(run) },
  };
}

function servicesOf(run: Run, onLost: (error: RunError) => void): Omit<GatewayServices, "admit"> {
  const { metrics, logger } = run.dependencies;
  return {
    onRequests(counts) {
      for (const { provider, model, outcome, count } of counts) metrics.modelRequested(provider, model, outcome, count);
    },
    onRefused: (refusal) => tell(run, { type: "egress.refused", data: refusal }),
    onLost(error) {
      logger.warn({ err: error }, "a session's gateway ended by itself");
      onLost(gatewayLost(error));
    },
    // A recording is for debugging: failing to write it is logged and ends nothing.
    onUnrecorded: (problem) => logger.warn({ problem }, "could not record a session's models"),
  };
}

function gatewayLost(error: GatewayLostError): RunError {
  return new RunError(
    {
      code: "agent_crashed",
      reason: "The gateway between the agent and its models ended in the middle of the turn.",
      retryable: true,
      mend: "Retry the session; the server's log says how it ended.",
    },
    { cause: error },
  );
}
