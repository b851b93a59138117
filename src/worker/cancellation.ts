/**
 * Why a run is stopped from outside. One signal carries it, the only source of cancellation;
 * its reason is one of these, and says what is to be written afterwards.
 */
export class RunCancelled extends Error {
  override readonly name = "RunCancelled";
}

/** The worker is shutting down: the session goes back to the queue, and its workspace stays. */
export class WorkerDraining extends Error {
  override readonly name = "WorkerDraining";
}

/** There is nothing left to spend: the session waits until its budget is raised. The message says of whose budget. */
export class BudgetUsedUp extends Error {
  override readonly name = "BudgetUsedUp";
}

/** Another worker may hold the session by now: nothing more may be written. */
export class ClaimLost extends Error {
  override readonly name = "ClaimLost";
}
