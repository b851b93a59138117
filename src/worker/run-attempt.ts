import { setTimeout as pause } from "node:timers/promises";
import { SessionError, type FailureCode } from "../domain/errors/errors.ts";
import { holdsFailure } from "../domain/errors/refused-repositories.ts";
import type { AttemptOutcome } from "../metrics/metrics.ts";
import { finishSession, parkSession, releaseClaim, type ClaimedSession } from "../store/queue/claims.ts";
import { LeaseLostError, recordSurvival } from "../store/queue/lease.ts";
import { failSession } from "../store/queue/retry.ts";
import { attemptLogger, beginAttempt, type Attempt, type AttemptServices } from "./attempt/attempt.ts";
import { failureOf } from "./attempt/failure.ts";
import { knownEnd } from "./attempt/known-end.ts";
import { markDamagedMirrors } from "./attempt/damaged-mirrors.ts";
import { closeFolders } from "./attempt/close-folders.ts";
import { untilStored } from "./attempt/until-stored.ts";
import { createSafePoints } from "./attempt/safe-points.ts";
import { WorkerDraining } from "./attempt/stop-reasons.ts";
import { salvage } from "./steps/commit/export-work.ts";
import type { WarmPool } from "./harness/warm-pool.ts";
import { beginRun, runSteps, type Run } from "./run-steps.ts";
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
        const run = beginRun(attempt, services, { safePoints, atWork, pool });
        const { outcome, code } = await runToEnd(run, draining);
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

async function runToEnd(run: Run, draining: AbortSignal): Promise<Outcome> {
  try {
    const summary = await runSteps(run);
    const { attempt, services } = run;
    await closeFolders(attempt, services);
    const completed = { status: "completed", summary: attempt.mask.text(summary), failure: null } as const;
    await untilStored(attempt, () => finishSession(services.database, attempt.session, completed));
    return { outcome: "completed" };
  } catch (error) {
    return endAttempt(run.attempt, run.services, error, draining);
  }
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
  thrown: unknown,
  draining: AbortSignal,
): Promise<Outcome> {
  const error = await markDamagedMirrors(attempt, services, thrown);
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
