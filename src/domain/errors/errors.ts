/**
 * Base of every error that Offstage raises on purpose. The class says the kind, `code` is stable for machines, and the
 * message is one sentence for a person: the field, the problem and the remedy.
 * `api/http/errors.ts` turns them into `{error}`, and any other error into an internal error.
 */
export abstract class OffstageError extends Error {
  abstract readonly code: string;
  override get name(): string {
    return this.constructor.name;
  }
}

/** The request itself is wrong: sending it again unchanged can't succeed. */
export class InvalidInputError extends OffstageError {
  readonly code = "invalid_input";
}

/** The request has no key, or a wrong, revoked or expired one. */
export class UnauthenticatedError extends OffstageError {
  readonly code = "unauthenticated";
}

/** The key is valid, but the caller may not do this: a scope is missing, or a policy refuses. */
export class ForbiddenError extends OffstageError {
  readonly code = "forbidden";
}

/** The object does not exist, or belongs to another organization. */
export class NotFoundError extends OffstageError {
  readonly code = "not_found";
}

/** The object's present state does not allow the request. */
export class ConflictError extends OffstageError {
  readonly code = "conflict";
  /** Milliseconds after which a retry may succeed; undefined if unknown. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterSeconds?: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = inMs(retryAfterSeconds);
  }
}

/** The caller sends too many requests; a later one may succeed. */
export class TooManyRequestsError extends OffstageError {
  readonly code = "too_many_requests";
  /** Milliseconds after which a retry may succeed; undefined if unknown. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterSeconds?: number) {
    super(message);
    this.retryAfterMs = inMs(retryAfterSeconds);
  }
}

/** The service, or one that it needs, can't do this now; a later request may succeed. */
export class UnavailableError extends OffstageError {
  readonly code = "unavailable";
  /** Milliseconds after which a retry may succeed. */
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterSeconds = 5, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = retryAfterSeconds * 1_000;
  }
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1_000;
}

/** The object store failed; the message has the remedy. */
export class ObjectStoreError extends OffstageError {
  readonly code = "object_store_unavailable";
  /** Whether a retry may succeed: no answer, an internal error of the object store, or too many requests. */
  readonly transient: boolean;

  constructor(message: string, transient: boolean, options?: ErrorOptions) {
    super(message, options);
    this.transient = transient;
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
  "gate_failed",
  "signing_failed",
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
  "object_store_unavailable",
  "worker_lost",
  "too_many_attempts",
  "internal",
] as const;
/** See `failureCodes`. */
export type FailureCode = (typeof failureCodes)[number];

/** Why a session failed, for its user: what happened, whether a retry can help, and the remedy. */
export interface Failure {
  readonly code: FailureCode;
  readonly reason: string;
  /** Whether a person's retry may help. */
  readonly retryable: boolean;
  /** Whether it passes by itself, so that Offstage tries again without being asked; false if omitted. */
  readonly passing?: boolean;
  readonly remedy: string;
}

/** Codes whose failures pass by themselves if they are retryable, unless the failure itself says otherwise. */
const passingCodes: ReadonlySet<FailureCode> = new Set([
  "agent_crashed",
  "disk_full",
  "repository_unreachable",
  "branch_diverged",
  "push_rejected",
  "pull_request_refused",
  "forge_unavailable",
  "object_store_unavailable",
]);

/** A step of an attempt failed for a reason that the user can understand. */
export class SessionError extends OffstageError {
  readonly code: FailureCode;
  readonly retryable: boolean;
  readonly passing: boolean;
  readonly remedy: string;
  /** How long, in ms, the service that failed asks to wait; undefined if it does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(failure: Failure & { readonly retryAfterMs?: number | undefined }, options?: ErrorOptions) {
    super(failure.reason, options);
    this.code = failure.code;
    this.retryable = failure.retryable;
    this.passing = failure.passing ?? (failure.retryable && passingCodes.has(failure.code));
    this.remedy = failure.remedy;
    this.retryAfterMs = failure.retryAfterMs;
  }

  get failure(): Failure {
    const { code, message: reason, retryable, passing, remedy } = this;
    return { code, reason, retryable, passing, remedy };
  }
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
