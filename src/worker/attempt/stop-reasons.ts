/**
 * The user cancelled the session.
 * This and the other classes of this file are the reasons for which an attempt is ended from outside. One AbortSignal carries
 * the reason to every step; it decides what is recorded on the session.
 */
export class SessionCancelled extends Error {
  override readonly name = "SessionCancelled";
}

/** The worker is shutting down: the session returns to the queue, and its folders stay. */
export class WorkerDraining extends Error {
  override readonly name = "WorkerDraining";
}

/**
 * The budget that is left does not cover the next request: the session waits until it is raised. The message names the budget.
 */
export class BudgetUsedUp extends Error {
  override readonly name = "BudgetUsedUp";
  /** The least that the request can cost, in US dollars. */
  readonly neededUsd: number;

  constructor(message: string, neededUsd: number) {
    super(message);
    this.neededUsd = neededUsd;
  }
}

/** The lease is lost, or could not be renewed in time: another worker may hold the session, so nothing more may be written. */
export class ClaimLost extends Error {
  override readonly name = "ClaimLost";
}
