import { setTimeout as pause } from "node:timers/promises";
import { isConflictOfTransactions, isConnectionError } from "../../database/connection-errors.ts";
import { backoffMs } from "../../domain/time/backoff.ts";
import type { Attempt } from "./attempt.ts";

const retrying = { fromMs: 250, toMs: 2_000, jitter: 0.5 };
/** About as long as a lease: afterwards another worker may have the session, and the database refuses the write. */
const limitMs = 10_000;

/**
 * Writes how a turn or an attempt ended, again and again if the database can't be reached, or rolled it back because of others'
 * transactions: else a finished turn would be taken once more, and the session would wait for its lease to expire, and count as one
 * whose worker died, or fail although its work is pushed.
 * @param write is atomic and can be repeated
 * @throws that error after ten seconds; any other error at once
 */
export async function untilStored<T>({ logger }: Pick<Attempt, "logger">, write: () => Promise<T>): Promise<T> {
  const begunAt = performance.now();
  for (let failures = 1; ; failures += 1) {
    try {
      return await write();
    } catch (error) {
      const mayPass = isConnectionError(error) || isConflictOfTransactions(error);
      if (!mayPass || performance.now() - begunAt > limitMs) throw error;
      logger.warn({ err: error }, "could not store how a turn or an attempt ended; will retry for ten seconds");
      await pause(backoffMs(failures, retrying));
    }
  }
}
