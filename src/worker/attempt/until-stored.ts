import { setTimeout as pause } from "node:timers/promises";
import { isConflictOfTransactions, isConnectionError } from "../../database/connection-errors.ts";
import { backoffMs } from "../../domain/time/backoff.ts";
import type { Attempt } from "./attempt.ts";
import { ClaimLost } from "./stop-reasons.ts";

const retrying = { fromMs: 250, toMs: 2_000, jitter: 0.5 };
/**
 * Bound for an attempt that is being ended, whose lease is no longer watched, and for conflicts, which waiting may not
 * solve.
 */
const limitMs = 10_000;

/**
 * Writes how a turn or an attempt ended, again and again if the database can't be reached, or rolled it back because of others'
 * transactions: else a finished turn would be taken once more, and the session would wait for its lease to expire, and count as one
 * whose worker died, or fail although its work is pushed.
 * @param attempt.signal says when the lease has run out: afterwards another worker may have the session, and the database refuses the
 *   write
 * @param write is atomic and can be repeated
 * @throws that error when the lease has run out, or after ten seconds; any other error at once
 */
export async function untilStored<T>(
  { logger, signal }: Pick<Attempt, "logger"> & Partial<Pick<Attempt, "signal">>,
  write: () => Promise<T>,
): Promise<T> {
  const begunAt = performance.now();
  for (let failures = 1; ; failures += 1) {
    try {
      return await write();
    } catch (error) {
      const isAway = isConnectionError(error);
      const { reason } = (signal ?? {}) as { readonly reason?: unknown };
      if (reason instanceof ClaimLost || !(isAway || isConflictOfTransactions(error))) throw error;
      const isBounded = !isAway || signal?.aborted !== false;
      if (isBounded && performance.now() - begunAt > limitMs) throw error;
      logger.warn({ err: error }, "could not store how a turn or an attempt ended; will retry");
      await pause(backoffMs(failures, retrying));
    }
  }
}

/**
 * Repeats a query while the database can't be reached, until the attempt ends or the caller gives up.
 * @throws the last error; any other at once
 */
export async function untilReached<T>(
  { signal, logger }: Pick<Attempt, "signal" | "logger">,
  waits: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      if (!isConnectionError(error) || signal.aborted || waits.aborted) throw error;
      logger.debug({ err: error }, "could not ask the database; will retry");
      await pause(backoffMs(failures, retrying));
    }
  }
}
