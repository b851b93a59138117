import { isConnectionError } from "../../database/connection-errors.ts";
import { LeaseLostError } from "../../store/queue/lease.ts";
import { BudgetUsedUp, ClaimLost, SessionCancelled, WorkerDraining } from "./stop-reasons.ts";

/**
 * Why an attempt ended before its work was done:
 * - `lost`: another worker may hold the session; nothing more may be written
 * - `draining`: the worker is shutting down; another continues
 * - `database`: the database could not be reached, which passes
 * - `cancelled`: its user cancelled the session
 * - `budget`: the budget does not cover the next model request
 * - `failed`: anything else; whether that passes by itself, the failure says
 */
export type AttemptEnd =
  | { readonly why: "lost" | "draining" | "database" | "cancelled" | "failed" }
  | { readonly why: "budget"; readonly shortage: BudgetUsedUp };

/**
 * Whether an error is a failure of what threw it. It is not if the attempt is being ended, or if the error says that the attempt
 * can't go on for a reason outside of it: a lost lease, an unreachable database, a used-up budget.
 * @param error what was thrown
 * @param signal the attempt's own
 */
export function isFailure(error: unknown, signal: AbortSignal): boolean {
  const { why } = endOf(error, signal);
  return !signal.aborted && why === "failed";
}

/**
 * Returns why an attempt ended. If several things happened at once, the first of the list counts.
 * @param error what a step threw
 * @param signal the attempt's own
 */
export function endOf(error: unknown, signal: AbortSignal): AttemptEnd {
  const { reason } = signal as { readonly reason: unknown };
  if (error instanceof LeaseLostError || reason instanceof ClaimLost) return { why: "lost" };
  if (reason instanceof WorkerDraining) return { why: "draining" };
  if (isConnectionError(error)) return { why: "database" };
  if (reason instanceof SessionCancelled) return { why: "cancelled" };
  if (error instanceof BudgetUsedUp) return { why: "budget", shortage: error };
  return { why: "failed" };
}
