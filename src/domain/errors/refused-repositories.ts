import { SessionError, type FailureCode } from "./errors.ts";

/** A repository of a session that did not take the session's work, and why. */
export interface RefusedRepository {
  readonly name: string;
  readonly error: SessionError;
}

/** Most characters of a failure's reason. */
const longestReason = 2_000;

/**
 * The failure of a session on several repositories of which some refused its work. It has the code of a passing
 * refusal, if there is one: a retry then repeats all refused work, so the session fails with the others' code if that
 * does not help.
 * @param refused not empty
 * @param others the outcomes of the other repositories, in sentences
 */
export function failureOfRefused(refused: readonly RefusedRepository[], others: string): SessionError {
  const leading =
    refused.find(({ error }) => error.passing) ?? refused.find(({ error }) => error.retryable) ?? refused[0];
  if (leading === undefined) throw new Error("no repository refused anything");
  const { code, retryable, passing } = leading.error;
  const room = Math.floor((longestReason - others.length) / refused.length) - 1;
  const reasons = refused.map(({ name, error }) => `${name}: ${error.message}`.slice(0, room).toWellFormed());
  const waits = refused.flatMap(({ error: { retryAfterMs } }) => (retryAfterMs === undefined ? [] : [retryAfterMs]));
  const remedies = new Set(refused.map(({ error }) => error.remedy));
  return new SessionError(
    {
      code,
      reason: [...reasons, others].join(" "),
      retryable,
      passing,
      remedy:
        remedies.size === 1
          ? leading.error.remedy
          : refused.map(({ name, error }) => `${name}: ${error.remedy}`).join(" "),
      retryAfterMs: waits.length === 0 ? undefined : Math.max(...waits),
    },
    {
      cause:
        refused.length === 1
          ? leading.error
          : new AggregateError(
              refused.map(({ error }) => error),
              "refused",
            ),
    },
  );
}

/** Whether an error is a failure of this code, or one of several repositories' of which one is. */
export function holdsFailure(error: unknown, code: FailureCode): boolean {
  if (error instanceof AggregateError) return error.errors.some((each) => holdsFailure(each, code));
  return error instanceof SessionError && (error.code === code || holdsFailure(error.cause, code));
}
