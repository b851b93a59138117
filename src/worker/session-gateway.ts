import { join } from "node:path";
import { widenEgress } from "../domain/egress.ts";
import type { NewEvent } from "../domain/event.ts";
import { openGateway, type Gateway } from "../gateway/gateway.ts";
import { createRecorder, type Recorder } from "../gateway/recording.ts";
import type { BudgetUsedUp } from "./cancellation.ts";
import { createModelBudget, labelOf, usageEvent } from "./model-budget.ts";
import type { Run } from "./run.ts";

/** Hosts of which one gateway tells; a program that tries again and again is told of once. */
const refusalLimit = 50;

/** The way out of a sandbox that asks no model: while one repository is set up, by its own list of hosts. */
export function openSetupGateway(run: Run, repository: Run["session"]["repositories"][number]): Promise<Gateway> {
  return openGateway({ ...wayOut(run, [repository]), models: {} });
}

/**
 * The way out of an agent's sandbox: hosts by the lists, models by theirs and while there is something left to spend.
 * @param onUsedUp told once, when a request was refused because nothing is left
 */
export async function openSessionGateway(run: Run, onUsedUp: (reason: BudgetUsedUp) => void): Promise<Gateway> {
  const { models, recordingsDirectory } = run.dependencies;
  const recorder =
    recordingsDirectory === null
      ? null
      : createRecorder(recordingFile(recordingsDirectory, run.session.sessionId), run.mask.text);
  const { metrics } = run.dependencies;
  const { admit, stored } = createModelBudget(run, onUsedUp, (used) => tellUsage(run, usageEvent(...used)));
  const gateway = await openGateway({
    ...wayOut(run, run.session.repositories),
    models,
    admit,
    permits: run.dependencies.modelPermits,
    inspector: run.dependencies.inspector,
    onRequest: (provider, model, outcome) => metrics.modelRequested(provider, labelOf(run, model), outcome),
    recorder,
  });
  return {
    ...gateway,
    async close() {
      await gateway.close();
      await stored();
      await settleRecording(run, recorder);
    },
  };
}

/** Where a session's model traffic is kept. */
export function recordingFile(directory: string, sessionId: string): string {
  return join(directory, `${sessionId}.jsonl`);
}

/** A recording is for debugging: what can't be written is told of, and ends nothing. */
async function settleRecording(run: Run, recorder: Recorder | null): Promise<void> {
  try {
    await recorder?.settled();
  } catch (error) {
    run.dependencies.logger.warn({ err: error }, "could not record a session's models");
  }
}

/** Told beside the turn: where the lease was lost, the turn's own events find out. */
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

function wayOut(run: Run, repositories: Run["session"]["repositories"]) {
  const { egress, socketDirectory } = run.dependencies;
  const { organization } = run.session;
  const lists = [...organization.egress, ...repositories.flatMap(({ egress: allowed }) => allowed)];
  const told = new Set<string>();
  return {
    directory: socketDirectory,
    egress: widenEgress(egress, lists),
    onRefused(refusal: Extract<NewEvent, { type: "egress.refused" }>["data"]) {
      const place = `${refusal.host}:${refusal.port}`;
      if (told.has(place) || told.size >= refusalLimit) return;
      told.add(place);
      tell(run, { type: "egress.refused", data: refusal });
    },
  };
}
