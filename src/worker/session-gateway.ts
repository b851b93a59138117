import { join } from "node:path";
import { widenEgress } from "../domain/egress.ts";
import type { NewEvent } from "../domain/event.ts";
import { fitsModel } from "../domain/model.ts";
import { openGateway, type Gateway } from "../gateway/gateway.ts";
import type { ModelRefusal } from "../gateway/model-gateway.ts";
import { costOf, modelLabel, priceOf, priceOfAny } from "../gateway/prices.ts";
import { createRecorder, type Recorder } from "../gateway/recording.ts";
import { budgetLeft, budgetProblem, spend } from "../store/budgets.ts";
import { BudgetUsedUp } from "./cancellation.ts";
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
  const { admit, count, settled } = createBudget(run, onUsedUp);
  const gateway = await openGateway({
    ...wayOut(run, run.session.repositories),
    models,
    admit,
    onUsage: count,
    onRequest: (provider, model, outcome) => metrics.modelRequested(provider, labelOf(run, model), outcome),
    recorder,
  });
  return {
    ...gateway,
    async close() {
      await gateway.close();
      await settled();
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

/** What metrics call a model. */
function labelOf(run: Run, model: string | null): string {
  const { allowedModels, models, prices } = run.dependencies;
  return modelLabel(model, prices, [...allowedModels, models.compatible?.model ?? []].flat());
}

/** Told beside the turn: where the lease was lost, the turn's own events find out. */
function tell(run: Run, event: NewEvent): void {
  const { logger } = run.dependencies;
  run.emit(event).catch((error: unknown) => logger.debug({ err: error }, "could not tell what the gateway saw"));
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

type Usage = Parameters<NonNullable<Parameters<typeof openGateway>[0]["onUsage"]>>;

function createBudget(run: Run, onUsedUp: (reason: BudgetUsedUp) => void) {
  const { allowedModels, database, logger, metrics, prices } = run.dependencies;
  const { session } = run;
  let counted: Promise<void> = Promise.resolve();
  let refused = false;

  function count(...[provider, usage, asked]: Usage): void {
    const price = priceOfAny([usage.model, asked], prices);
    const costUsd = price === null ? null : costOf(usage, price);
    tell(run, { type: "model.usage", data: { provider, ...usage, costUsd } });
    const label = labelOf(run, usage.model);
    metrics.modelUsed(provider, label, {
      input: usage.inputTokens,
      output: usage.outputTokens,
      cacheRead: usage.cacheReadTokens,
      cacheWrite: usage.cacheWriteTokens,
      reasoning: usage.reasoningTokens,
    });
    if (costUsd !== null) metrics.modelCost(provider, label, costUsd);
    if (costUsd === null || costUsd === 0) return;
    counted = counted
      .then(() => spend(database, session, costUsd))
      .catch((error: unknown) => logger.error({ err: error }, "could not count a cost"));
  }

  async function admit(model: string): Promise<ModelRefusal | null> {
    if (!fitsModel(allowedModels, model) || !fitsModel(session.organization.models ?? ["*"], model)) {
      return { status: 403, message: `the model ${model} is not allowed by this server or organization` };
    }
    await counted;
    const left = await budgetLeft(database, session.sessionId);
    if (left.session === null && left.month === null) return null;
    const problem = budgetProblem(left);
    if (problem !== null) {
      if (!refused) onUsedUp(new BudgetUsedUp(problem));
      refused = true;
      return { status: 402, message: problem };
    }
    if (priceOf(model, prices) !== null) return null;
    return { status: 403, message: `the model ${model} has no price, which a budget needs: set OFFSTAGE_PRICES` };
  }

  return { admit, count, settled: () => counted };
}
