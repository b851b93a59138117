import { backoffMs } from "../../domain/time/backoff.ts";
import type { TellingOutcome } from "../../store/telling-outcome.ts";

/** Milliseconds between two polls for notices that are due, if no notification starts one earlier. */
export const pollEveryMs = 1_000;
/** Longer than an attempt can take: if the lease has expired, the sender died, and another may take what it was to send. */
export const leaseMs = 120_000;
const retrying = { fromMs: 10_000, toMs: 3_600_000, jitter: 0.2 };
/** A delivery that could not be sent by then is given up. */
const notifiedWithinMs = 24 * 3_600_000;

/** When something that could not be sent is tried again, or that it is too late for that. @param askedMs pause that the receiver asked for */
export function tellAgain(
  { attempts, createdAt }: { readonly attempts: number; readonly createdAt: Date },
  problem: string,
  askedMs: number | null,
): TellingOutcome {
  const retryMs = Math.max(askedMs ?? 0, backoffMs(attempts, retrying));
  const isTooLate = Date.now() + retryMs - createdAt.getTime() > notifiedWithinMs;
  return isTooLate ? { status: "dead", problem } : { status: "pending", problem, retryMs };
}
