import { setTimeout as pause } from "node:timers/promises";
import { SessionError, type FailureCode } from "../domain/errors/errors.ts";
import { holdsFailure } from "../domain/errors/refused-repositories.ts";
import type { AttemptOutcome } from "../metrics/metrics.ts";
import { finishSession, parkSession, releaseClaim, type ClaimedSession } from "../store/queue/claims.ts";
import { LeaseLostError, recordSurvival } from "../store/queue/lease.ts";
import { upcomingMessage } from "../store/queue/progress.ts";
import { failSession } from "../store/queue/retry.ts";
import { attemptLogger, beginAttempt, withSecrets, type Attempt, type AttemptServices } from "./attempt/attempt.ts";
import { failureOf } from "./attempt/failure.ts";
import { knownEnd } from "./attempt/known-end.ts";
import { closeFolders } from "./attempt/close-folders.ts";
import { namedSteps, type RunStep } from "./attempt/named-step.ts";
import { withOwnForges } from "./attempt/own-forges.ts";
import { untilStored } from "./attempt/until-stored.ts";
import { createSafePoints, type SafePoints } from "./attempt/safe-points.ts";
import { WorkerDraining } from "./attempt/stop-reasons.ts";
import { createCheckpointer } from "./checkpoints/checkpointer.ts";
import { restoreCheckpoint } from "./checkpoints/restore.ts";
import { salvage, type ClonedWork } from "./steps/commit/export-work.ts";
import { openPullRequests } from "./steps/open-pull-requests.ts";
import { passGate } from "./steps/pass-gate.ts";
import { prepareWorkspace, type Workspace } from "./steps/prepare.ts";
import { beginEarly, type EarlyStart } from "./harness/begin-early.ts";
import type { WarmPool } from "./harness/warm-pool.ts";
import { variablesOf } from "./steps/agent/turn.ts";
import { chooseAgent } from "./steps/agent/choose.ts";
import { publish } from "./steps/publish.ts";
import { setUp } from "./steps/set-up.ts";
import { takeTurns } from "./steps/take-turns.ts";
import type { AttemptSignals } from "./worker.ts";

/** How long saving the diff may take after the attempt is over, and from when on its worker shuts down. */
const salvageMs = 10 * 60_000;
const lastSalvageMs = 60_000;
/** How long a cancel waits for that before the session is cancelled; the rest of it follows. */
const cancelPatienceMs = 3_000;

/**
 * Runs one attempt at a claimed session. Each step first checks what is already done, so a later attempt can repeat all of them
 * after a crash at any point. Settles when no process of the attempt is left; the outcome is then recorded on the session, of a
 * cancel perhaps some time before.
 * @param pool sandboxes that are ready for sessions
 * @throws LeaseLostError if another worker holds the session when a failed attempt is recorded
 */
export async function runAttempt(
  services: AttemptServices,
  session: ClaimedSession,
  { signal: stopped, draining, atWork }: AttemptSignals,
  pool: WarmPool,
): Promise<void> {
  const { metrics, traces } = services;
  const handedOver = new AbortController();
  const signal = AbortSignal.any([stopped, handedOver.signal]);
  const safePoints = createSafePoints(draining, () => handedOver.abort(new WorkerDraining()));
  const attributes = {
    "offstage.session.id": session.sessionId,
    "offstage.organization.id": session.organizationId,
    "offstage.attempt": session.attempt,
  };
  await traces.span(
    "session.attempt",
    { traceParent: session.traceParent, kind: "consumer", attributes },
    async (span) => {
      const logger = attemptLogger(services.logger, session, span?.traceId);
      const startedAt = performance.now();
      logger.info("an attempt begins");
      try {
        const attempt = beginAttempt({ session, signal, logger }, services);
        const { outcome, code } = await runToEnd(attempt, services, { safePoints, draining, atWork, pool });
        metrics.attemptEnded(outcome, code);
        logger.info({ outcome, code, ms: Math.round(performance.now() - startedAt) }, "an attempt ended");
        span?.set({ "offstage.outcome": outcome });
        if (code !== undefined) span?.fail(code);
      } catch (error) {
        if (error instanceof LeaseLostError) metrics.attemptEnded("lost");
        throw error;
      } finally {
        safePoints.close();
        // For the next one, which waits for nothing as long as for its start. A worker that shuts down has no next one.
        if (!draining.aborted) services.gateways.prepare();
      }
    },
  );
}

interface Outcome {
  readonly outcome: AttemptOutcome;
  readonly code?: FailureCode;
}

/** An attempt with its secrets, and the worker's services with the forges of its organization. */
interface Opened {
  readonly attempt: Attempt;
  readonly services: AttemptServices;
}

/** What an attempt has of the worker that runs it. */
interface Surroundings extends Pick<AttemptSignals, "draining" | "atWork"> {
  readonly safePoints: SafePoints;
  readonly pool: WarmPool;
}

async function runToEnd(
  begun: Attempt,
  shared: AttemptServices,
  { safePoints, draining, atWork, pool }: Surroundings,
): Promise<Outcome> {
  const claimedAt = performance.now();
  let opened: Opened = { attempt: begun, services: shared };
  let early: EarlyStart | null = null;
  const step = namedSteps(() => opened.attempt, shared);
  try {
    const workspace = await step("prepare", async () => {
      const services = await withOwnForges(shared, begun.session);
      const attempt = await withSecrets(begun, services);
      opened = { attempt, services };
      services.metrics.attemptStarted((performance.now() - claimedAt) / 1_000);
      early = await startAgentEarly(attempt, services, pool);
      return prepareWorkspace(attempt, services, early?.begin);
    });
    const { attempt, services } = opened;
    const summary = await runSteps(attempt, services, step, { workspace, safePoints, early, atWork });
    await closeFolders(attempt, services);
    const completed = { status: "completed", summary: attempt.mask.text(summary), failure: null } as const;
    await untilStored(attempt, () => finishSession(services.database, attempt.session, completed));
    return { outcome: "completed" };
  } catch (error) {
    await (early as EarlyStart | null)?.end();
    return endAttempt(opened.attempt, opened.services, error, draining);
  }
}

/** An attempt whose workspace is ready. */
interface Prepared extends Pick<Surroundings, "safePoints" | "atWork"> {
  readonly workspace: Workspace;
  readonly early: EarlyStart | null;
}

/** The steps of an attempt from its workspace on. @returns the session's summary */
async function runSteps(
  attempt: Attempt,
  services: AttemptServices,
  step: RunStep,
  { workspace, safePoints, early, atWork }: Prepared,
): Promise<string> {
  const checkpointer = createCheckpointer(attempt, services);
  const { clones, missingSetups, checkpoint } = workspace;
  try {
    if (missingSetups.length > 0) await step("setup", () => setUp(attempt, services, missingSetups));
    if (attempt.session.setupTrial === true) return trialWords(workspace.environments.length, missingSetups.length);
    const origin =
      checkpoint === null
        ? workspace.origin
        : await step("restore", () => restoreCheckpoint(attempt, services, clones, checkpoint));
    const gated = await withGate(attempt, services, step, workspace);
    if (gated === null) return attempt.session.summary ?? "The automation's gate filtered this run: no agent began.";
    // Not earlier: until here the folders may hold less than the last checkpoint.
    checkpointer.start(clones);
    const turns = { ...workspace, origin, checkpointer, safePoints, early, atWork };
    const taken = await step("agent", () => takeTurns(gated, services, turns));
    const { finalMessage } = taken;
    const { works, pushed, refused } = await publish(attempt, services, step, turns, taken);
    if (pushed === null) return await reportNoChange(attempt, works, finalMessage);
    await step("pullRequest", () => openPullRequests(attempt, services, pushed, finalMessage ?? "", refused));
    return finalMessage ?? "Done.";
  } catch (error) {
    await early?.end();
    await checkpointer.takeLast(error);
    throw error;
  } finally {
    await early?.end();
    await checkpointer.stop();
  }
}

/** The summary of a trial whose setups ran. @param made how many ran, of so many repositories */
function trialWords(repositories: number, made: number): string {
  if (made === 0)
    return "There is no setup to run: the repository's environment has no script, and its files name none.";
  return made === repositories
    ? "The setup works."
    : `${made} of ${repositories} repositories have a setup, which works.`;
}

/**
 * Starts the agent's harness, or takes one that is ready, while the session's folders are made. What only the repositories' files say
 * of it is not known yet: if they say anything, the turn starts another. A trial of a setup has no agent.
 */
async function startAgentEarly(
  attempt: Attempt,
  services: AttemptServices,
  pool: WarmPool,
): Promise<EarlyStart | null> {
  const { session, registries } = attempt;
  if (session.setupTrial === true) return null;
  const agent = await chooseAgent(attempt, services).catch((error: unknown) => {
    // The agent's step says so.
    if (error instanceof SessionError) return null;
    throw error;
  });
  if (agent === null) return null;
  const settings = session.repositories.map((repository) => ({
    clone: { repository },
    variables: repository.variables,
  }));
  const variables = variablesOf(attempt, settings);
  return beginEarly(attempt, services, pool, { ...agent, variables, registries, image: null });
}

/**
 * Runs the gate of the session's automation, if there is one that has not decided yet. What a person asks of a session after its gate
 * has filtered it, the agent gets.
 * @returns the attempt with the gate's decision; null if the run is filtered and there is nothing more to do
 */
async function withGate(
  attempt: Attempt,
  services: AttemptServices,
  step: RunStep,
  workspace: Workspace,
): Promise<Attempt | null> {
  const { session } = attempt;
  const { gate } = session;
  if (gate === null) return attempt;
  const decided = gate.outcome === null ? await step("gate", () => passGate(attempt, services, gate, workspace)) : gate;
  if (decided.outcome === "filtered" && (await upcomingMessage(services.database, session)) === null) return null;
  return { ...attempt, session: { ...session, gate: decided } };
}

/** Adds a notice to the session: there is nothing to push. @returns the session's summary */
async function reportNoChange(
  { emit }: Pick<Attempt, "emit">,
  works: readonly ClonedWork[],
  finalMessage: string | null,
): Promise<string> {
  const wasPushed = works.some(({ recorded }) => recorded.pushedSha !== null);
  const text = `The agent changed nothing${wasPushed ? " more" : ": there is no pull request"}.`;
  await emit({ type: "notice", data: { level: "info", text } });
  return finalMessage ?? "The agent changed nothing.";
}

/** Records how an attempt ended that did not complete. @throws LeaseLostError */
async function endAttempt(
  attempt: Attempt,
  services: AttemptServices,
  error: unknown,
  draining: AbortSignal,
): Promise<Outcome> {
  const { session, signal, logger } = attempt;
  const { database } = services;
  const end = await knownEnd(error, attempt, database);
  switch (end.why) {
    case "lost":
      logger.warn("the lease was lost; another worker continues");
      await recordSurvival(database, session).catch((problem: unknown) =>
        logger.warn({ err: problem }, "could not record that this worker outlived an attempt"),
      );
      return { outcome: "lost" };
    case "draining":
      await untilStored(attempt, () => releaseClaim(database, session));
      return { outcome: "released" };
    case "database":
      // The session did not cause this, and it passes soon: requeue it, so that any worker continues from where it is.
      logger.warn({ err: error }, "the database could not be reached; the session returns to the queue");
      await untilStored(attempt, () => releaseClaim(database, session, "no database"));
      return { outcome: "released" };
    case "cancelled":
      return cancelAttempt(attempt, services, draining);
    case "budget":
      await salvage(attempt, services, signal);
      await closeFolders(attempt, services);
      await untilStored(attempt, () => parkSession(database, session, end.shortage.message, end.shortage.neededUsd));
      return { outcome: "waiting" };
    case "failed":
      return failAttempt(attempt, services, error, draining);
  }
}

/**
 * Cancels the session, and saves its diff. A large repository's takes longer than a cancel may: the session is then cancelled
 * first. A follow-up that arrives meanwhile is safe: this worker begins no attempt at a session while an earlier one has not
 * settled, and what is saved is refused once another worker has claimed the session.
 */
async function cancelAttempt(attempt: Attempt, services: AttemptServices, draining: AbortSignal): Promise<Outcome> {
  const saved = saveDiff(attempt, services, draining).then(() => closeFolders(attempt, services));
  const patience = new AbortController();
  const over = pause(cancelPatienceMs, undefined, { signal: patience.signal }).catch(() => undefined);
  await Promise.race([saved, over]);
  patience.abort();
  try {
    const cancelled = { status: "cancelled", summary: null, failure: null } as const;
    await untilStored(attempt, () => finishSession(services.database, attempt.session, cancelled));
  } finally {
    await saved;
  }
  return { outcome: "cancelled" };
}

/** Saves the diff of what there is, within bounds that the attempt's own end does not move. */
async function saveDiff(attempt: Attempt, services: AttemptServices, draining: AbortSignal): Promise<void> {
  const over = new AbortController();
  const timers = [setTimeout(() => over.abort(), salvageMs)];
  const hurry = (): void => void timers.push(setTimeout(() => over.abort(), lastSalvageMs));
  if (draining.aborted) hurry();
  else draining.addEventListener("abort", hurry, { once: true });
  try {
    await salvage(attempt, services, over.signal);
  } finally {
    draining.removeEventListener("abort", hurry);
    for (const timer of timers) clearTimeout(timer);
  }
}

/** Ends a failed attempt: the session is tried again if the failure passes by itself. */
async function failAttempt(
  attempt: Attempt,
  services: AttemptServices,
  error: unknown,
  draining: AbortSignal,
): Promise<Outcome> {
  const failure = await failureOf(error, attempt, services);
  // Without its secrets the diff can't be masked. After token_in_work the diff is stored already, with the finding masked.
  if (failure.code !== "secret_unavailable" && !holdsFailure(error, "token_in_work"))
    await saveDiff(attempt, services, draining);
  await closeFolders(attempt, services);
  const { database, retryForMs } = services;
  const retryAfterMs = error instanceof SessionError ? error.retryAfterMs : undefined;
  const status = await untilStored(attempt, () =>
    failSession(database, attempt.session, failure, { forMs: retryForMs, retryAfterMs }),
  );
  if (status === "cancelled") return { outcome: "cancelled" };
  return { outcome: status === "queued" ? "retried" : "failed", code: failure.code };
}
