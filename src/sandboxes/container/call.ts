import { UnavailableError } from "../../domain/errors/errors.ts";

/** Time limits of an engine's calls, in ms. */
export interface CallLimits {
  /** To create, start or remove a container. */
  readonly workMs: number;
  /** For any other call. */
  readonly answerMs: number;
  /** To finish a call after the caller's signal aborted, and to end a container. */
  readonly endMs: number;
}

/** Default time limits. */
export const defaultCallLimits: CallLimits = { workMs: 60_000, answerMs: 15_000, endMs: 5_000 };

/** A caller that may stop, and the milliseconds that it still waits then. */
export interface Until {
  readonly signal: AbortSignal;
  readonly endMs: number;
}

/** @returns what lets a call of background work end soon after that is stopped; undefined if nothing stops it */
export function untilStopped(stopping: AbortSignal | undefined, { endMs }: CallLimits): Until | undefined {
  return stopping === undefined ? undefined : { signal: stopping, endMs };
}

/** Description of one call. */
export interface Call {
  /** The action, for the error's message: "make a container". */
  readonly action: string;
  readonly limitMs: number;
  /** After this signal aborts, the call has at most `endMs` left. */
  readonly until?: Until | undefined;
}

/**
 * Runs one call of an engine with a time limit. After it, the engine may have done the work or not.
 * @param work gets a signal that aborts the request
 * @throws UnavailableError if the limit is reached; the signal's reason if the caller aborted
 */
export async function callEngine<T>(call: Call, work: (abortSignal: AbortSignal) => Promise<T>): Promise<T> {
  const given = new AbortController();
  const { promise: over, reject } = Promise.withResolvers<never>();
  const giveUp = (reason: unknown): void => {
    reject(reason);
    given.abort();
  };
  const tooLong = (): void =>
    giveUp(
      new UnavailableError(
        `the container engine did not ${call.action} within ${call.limitMs} ms: check whether it hangs, restart it, and try again`,
      ),
    );
  const timers = [setTimeout(tooLong, call.limitMs)];
  const { until } = call;
  const hurry = (): void => {
    if (until !== undefined) timers.push(setTimeout(() => giveUp(until.signal.reason), until.endMs));
  };
  if (until?.signal.aborted === true) hurry();
  else until?.signal.addEventListener("abort", hurry, { once: true });
  try {
    return await Promise.race([work(given.signal), over]);
  } finally {
    for (const timer of timers) clearTimeout(timer);
    until?.signal.removeEventListener("abort", hurry);
  }
}
