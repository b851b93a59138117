import type { TurnResult } from "../agents/harness.ts";
import { isConnectionError } from "../database/connection-errors.ts";
import { ObjectStoreError, type FailureCode } from "../domain/errors.ts";
import type { StepName } from "../domain/step.ts";
import type { RunOutcome, StepOutcome } from "../metrics/metrics.ts";
import {
  finishSession,
  mayBeTriedAgain,
  parkSession,
  releaseClaim,
  type ClaimedSession,
} from "../store/queue/claims.ts";
import { LeaseLostError } from "../store/queue/lease.ts";
import { BudgetUsedUp, ClaimLost, RunCancelled, WorkerDraining } from "./attempt/cancellation.ts";
import { failureOf } from "./attempt/failure.ts";
import { leaveFolders } from "./attempt/leave-folders.ts";
import { beginRun, runLogger, secretsOf, type Run, type RunDependencies } from "./attempt/run.ts";
import { createSafePoints, type SafePoints } from "./attempt/safe-points.ts";
import { createCheckpointer } from "./checkpoints/checkpoint.ts";
import { readEnvironments } from "./setup/repository-environment.ts";
import { agentStep, type AgentStep } from "./steps/agent.ts";
import { commitStep, salvage } from "./steps/commit.ts";
import { prepareStep, settleWorkspace, type Prepared } from "./steps/prepare.ts";
import { pullRequestStep } from "./steps/pull-request.ts";
import { pushStep } from "./steps/push.ts";
import { setupStep, withoutSetup } from "./steps/setup.ts";
import type { RunSignals } from "./worker.ts";

/** How long saving the diff may take after the attempt is over. Short after a cancel, which it must not delay. */
const salvageAfterCancelMs = 1_000;
const salvageAfterFailureMs = 60_000;

/**
 * Runs one attempt at a claimed session: prepare → setup → agent → commit → push → pull request.
 * Each step first checks what is already done, so a later attempt can repeat all of them after a crash at any point.
 * Settles when no process of the attempt is left; the outcome is then recorded on the session.
 * @throws LeaseLostError if another worker holds the session when a failed attempt is recorded
 */
export async function runSession(
  dependencies: RunDependencies,
  session: ClaimedSession,
  { signal: stopped, draining }: RunSignals,
): Promise<void> {
  const { metrics, traces } = dependencies;
  const handedOver = new AbortController();
  const signal = AbortSignal.any([stopped, handedOver.signal]);
  const safePoints = createSafePoints(draining, () => handedOver.abort(new WorkerDraining()));
  const attributes = {
    "offstage.session.id": session.sessionId,
    "offstage.organization.id": session.organizationId,
    "offstage.attempt": session.attempt,
  };
  await traces.span("session.run", { traceParent: session.traceParent, kind: "consumer", attributes }, async (span) => {
    const logger = runLogger(dependencies.logger, session, span?.traceId);
    const startedAt = performance.now();
    logger.info("a run begins");
    try {
      const { outcome, code } = await runToEnd({ ...dependencies, logger }, session, signal, safePoints);
      metrics.runEnded(outcome, code);
      logger.info({ outcome, code, ms: Math.round(performance.now() - startedAt) }, "a run ended");
      span?.set({ "offstage.outcome": outcome });
      if (code !== undefined) span?.fail(code);
    } catch (error) {
      if (error instanceof LeaseLostError) metrics.runEnded("lost");
      throw error;
    } finally {
      safePoints.close();
    }
  });
}

async function runToEnd(
  dependencies: RunDependencies,
  session: ClaimedSession,
  signal: AbortSignal,
  safePoints: SafePoints,
): Promise<{ readonly outcome: RunOutcome; readonly code?: FailureCode }> {
  const { database, logger, metrics } = dependencies;
  const claimedAt = performance.now();
  let run = beginRun(dependencies, session, signal, []);
  try {
    run = beginRun(dependencies, session, signal, await secretsOf(dependencies, session));
    metrics.runStarted((performance.now() - claimedAt) / 1_000);
    const summary = await carryOut(run, safePoints);
    await leaveFolders(run);
    await finishSession(database, session, { status: "completed", summary: run.mask.text(summary), failure: null });
    return { outcome: "completed" };
  } catch (error) {
    if (error instanceof LeaseLostError || signal.reason instanceof ClaimLost) {
      logger.warn("lost the lease; another worker goes on");
      return { outcome: "lost" };
    } else if (signal.reason instanceof WorkerDraining) {
      await releaseClaim(database, session);
      return { outcome: "released" };
    } else if (isConnectionError(error)) {
      // The session did not cause this, and it passes soon: requeue it, so that any worker continues from where it is.
      logger.warn({ err: error }, "the database could not be reached; the session is handed back");
      await releaseClaim(database, session, "no database");
      return { outcome: "released" };
    } else if (await isWorthAnotherClaim(dependencies, session, error)) {
      logger.warn({ err: error }, "the object store could not be reached; the session is handed back");
      await releaseClaim(database, session, "no object store");
      return { outcome: "released" };
    } else if (error instanceof BudgetUsedUp) {
      await salvage(run);
      await leaveFolders(run);
      await parkSession(database, session, error.message, error.neededUsd);
      return { outcome: "waiting" };
    } else if (signal.reason instanceof RunCancelled) {
      await salvage({ ...run, signal: AbortSignal.timeout(salvageAfterCancelMs) });
      await leaveFolders(run);
      await finishSession(database, session, { status: "cancelled", summary: null, failure: null });
      return { outcome: "cancelled" };
    } else {
      const failure = await failureOf(error, run);
      // Without its secrets the diff can't be masked. After token_in_work the diff is stored already, with the finding masked.
      if (failure.code !== "secret_unavailable" && failure.code !== "token_in_work")
        await salvage({ ...run, signal: AbortSignal.timeout(salvageAfterFailureMs) });
      await leaveFolders(run);
      await finishSession(database, session, { status: "failed", summary: null, failure });
      return { outcome: "failed", code: failure.code };
    }
  }
}

/** Whether the checkpoint could not be fetched for a reason that may pass, and this did not happen too often. */
async function isWorthAnotherClaim(
  { database }: RunDependencies,
  session: ClaimedSession,
  error: unknown,
): Promise<boolean> {
  return error instanceof ObjectStoreError && error.passing && (await mayBeTriedAgain(database, session));
}

async function carryOut(run: Run, safePoints: SafePoints): Promise<string> {
  // Starting the gateway's process takes about as long as the steps before the agent, so it starts first.
  run.dependencies.gateways.prepare();
  const prepared = await step(run, "prepare", () => prepareStep(run));
  const environments = await readEnvironments(run, prepared.repositories);
  const missing = await withoutSetup(run, environments);
  if (missing.length > 0) await step(run, "setup", () => setupStep(run, missing));
  const from = await settleWorkspace(run, prepared);
  // Not earlier: until here the folders may hold less than the last checkpoint.
  const checkpointer = createCheckpointer(run, prepared.repositories);
  try {
    const summary = await doWork(run, { prepared, environments, from, checkpointer, safePoints });
    await checkpointer.stop();
    return summary;
  } catch (error) {
    await checkpointer.takeLast(error);
    throw error;
  }
}

/** Runs the agent, then commits, pushes and opens the pull requests. @returns the session's summary */
async function doWork(
  run: Run,
  { prepared, safePoints, ...agent }: AgentStep & { prepared: Prepared },
): Promise<string> {
  const { checkpointer } = agent;
  safePoints.enter();
  const turn = await step(run, "agent", () => agentStep(run, { ...agent, safePoints }));
  // The remaining steps are short: finishing them here costs less than handing the session over.
  safePoints.leave();
  const said = lastWords(run, turn);
  const collected = await step(run, "commit", () => commitStep(run, prepared.repositories));
  // With this checkpoint another worker that takes over pushes the same commits.
  await checkpointer.take();
  const changed = collected.filter((repository) => repository.changed);
  if (changed.length === 0) {
    const wasPushed = collected.some((repository) => repository.wasPushed);
    const text = `The agent changed nothing${wasPushed ? " more" : ": there is no pull request"}.`;
    await run.emit({ type: "notice", data: { level: "info", text } });
    return said ?? "The agent changed nothing.";
  }
  await step(run, "push", () => pushStep(run, changed));
  await step(run, "pullRequest", () => pullRequestStep(run, changed, said ?? ""));
  return said ?? "Done.";
}

/** The agent's final message: of this attempt, or of an earlier one if no message was left to answer. Null if there is none. */
function lastWords(run: Run, turn: TurnResult | null): string | null {
  return (turn === null ? run.session.summary : turn.finalMessage) || null;
}

/** Runs one named step; emits its start and its end, and measures its duration. */
async function step<T>(run: Run, name: StepName, work: () => Promise<T>): Promise<T> {
  run.signal.throwIfAborted();
  const { traces } = run.dependencies;
  return traces.span(`step.${name}`, {}, () => timedStep(run, name, work));
}

async function timedStep<T>(run: Run, name: StepName, work: () => Promise<T>): Promise<T> {
  const { metrics } = run.dependencies;
  await run.emit({ type: "step.started", data: { step: name, attempt: run.session.attempt } });
  const startedAt = performance.now();
  const durationMs = () => Math.round(performance.now() - startedAt);
  let outcome: StepOutcome = "stopped";
  try {
    const result = await work();
    run.signal.throwIfAborted();
    await run.emit({ type: "step.completed", data: { step: name, durationMs: durationMs() } });
    outcome = "completed";
    return result;
  } catch (error) {
    const goesOn = error instanceof LeaseLostError || error instanceof BudgetUsedUp || isConnectionError(error);
    if (!run.signal.aborted && !goesOn) {
      outcome = "failed";
      await run.emit({
        type: "step.failed",
        data: { step: name, durationMs: durationMs(), failure: await failureOf(error, run) },
      });
    }
    throw error;
  } finally {
    metrics.stepEnded(name, outcome, (performance.now() - startedAt) / 1_000);
  }
}
