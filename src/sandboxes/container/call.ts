import { UnavailableError } from "../../domain/errors.ts";

/** How long an engine may take, in ms. */
export interface Patience {
  /** To make, start or remove a container. */
  readonly workMs: number;
  /** To answer anything else. */
  readonly answerMs: number;
  /** To go on with what it is at once the caller has stopped, and to end what it was told to end. */
  readonly endMs: number;
}

export const usualPatience: Patience = { workMs: 60_000, answerMs: 15_000, endMs: 5_000 };

export interface Call {
  /** Stands in the error: "make a container". */
  readonly toDo: string;
  readonly limitMs: number;
  /** Once it aborts, the call has no more than `endMs`. */
  readonly until?: { readonly signal: AbortSignal; readonly endMs: number };
}

/**
 * One call of an engine, given up after its limit. Whether the engine did it all the same is not known then.
 * @param work is given a signal that aborts the request itself
 * @throws UnavailableError where it took too long; the signal's reason where the caller had stopped
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
        `the container engine did not ${call.toDo} within ${call.limitMs} ms: check whether it hangs, restart it, and try again`,
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
