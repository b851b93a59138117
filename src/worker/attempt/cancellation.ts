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

/** What is left does not cover the next request: the session waits until its budget is raised. The message says of whose budget. */
export class BudgetUsedUp extends Error {
  override readonly name = "BudgetUsedUp";
  /** US dollars that the request can cost at least. */
  readonly neededUsd: number;

  constructor(message: string, neededUsd: number) {
    super(message);
    this.neededUsd = neededUsd;
  }
}

/** Another worker may hold the session by now: nothing more may be written. */
export class ClaimLost extends Error {
  override readonly name = "ClaimLost";
}
