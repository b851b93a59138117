/**
 * Every error that Offstage means to raise. The class says what kind it is, `code` is stable
 * for machines, the message is one sentence for a person: what is wrong, with which field, and the mend.
 * They become `{error}` in one place, `api/http/errors.ts`; anything else is an internal error there.
 */
export abstract class OffstageError extends Error {
  abstract readonly code: string;
  override get name(): string {
    return this.constructor.name;
  }
}

/** The request itself is wrong; sending it again unchanged can't help. */
export class InvalidInputError extends OffstageError {
  readonly code = "invalid_input";
}

/** No key, or one that is wrong, revoked or expired. */
export class UnauthenticatedError extends OffstageError {
  readonly code = "unauthenticated";
}

/** The key is good but lacks the scope. */
export class ForbiddenError extends OffstageError {
  readonly code = "forbidden";
}

/** It does not exist, or it is another organization's. */
export class NotFoundError extends OffstageError {
  readonly code = "not_found";
}

/** The state does not allow it now. */
export class ConflictError extends OffstageError {
  readonly code = "conflict";
  /** Seconds after which trying again makes sense, where known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, retryAfterSeconds?: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Whoever asks asked for too much at once; later it may work. */
export class TooManyRequestsError extends OffstageError {
  readonly code = "too_many_requests";
  /** Seconds after which trying again makes sense, where known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, retryAfterSeconds?: number) {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The service can't take it now, and will later. */
export class UnavailableError extends OffstageError {
  readonly code = "unavailable";
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds = 5, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The store of large artifacts did not do what it was asked; the message has the mend. */
export class ObjectStoreError extends OffstageError {
  readonly code = "object_store_unavailable";
  /** Whether it may pass by itself: no answer, a fault of the store's own, too much at once. */
  readonly passing: boolean;

  constructor(message: string, passing: boolean, options?: ErrorOptions) {
    super(message, options);
    this.passing = passing;
  }
}

/** Stable codes of why a session ended `failed`. */
export const failureCodes = [
  "agent_unavailable",
  "agent_crashed",
  "agent_stalled",
  "turn_too_long",
  "agent_refused",
  "model_error",
  "sandbox_unavailable",
  "resources_exhausted",
  "disk_full",
  "secret_unavailable",
  "secret_in_work",
  "token_in_work",
  "setup_failed",
  "workspace_broken",
  "repository_not_allowed",
  "repository_not_found",
  "repository_access_denied",
  "repository_unreachable",
  "target_branch_not_found",
  "branch_protected",
  "branch_diverged",
  "push_rejected",
  "pull_request_refused",
  "forge_unavailable",
  "invalid_template",
  "object_store_unavailable",
  "too_many_attempts",
  "internal",
] as const;
export type FailureCode = (typeof failureCodes)[number];

/** What a user is told of a failed session: what happened, whether a retry can help, what to do. */
export interface Failure {
  readonly code: FailureCode;
  readonly reason: string;
  readonly retryable: boolean;
  readonly mend: string;
}

/** A step of a run failed for a reason that the user can understand. */
export class RunError extends OffstageError {
  readonly code: FailureCode;
  readonly retryable: boolean;
  readonly mend: string;

  constructor(failure: Failure, options?: ErrorOptions) {
    super(failure.reason, options);
    this.code = failure.code;
    this.retryable = failure.retryable;
    this.mend = failure.mend;
  }

  get failure(): Failure {
    return { code: this.code, reason: this.message, retryable: this.retryable, mend: this.mend };
  }
}
