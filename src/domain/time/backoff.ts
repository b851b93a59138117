/** Between which times the pauses before retries grow. */
export interface Backoff {
  /** Longest pause after the first failure, in ms. It doubles with each further failure. */
  readonly fromMs: number;
  /** Longest pause of all, in ms. */
  readonly toMs: number;
  /**
   * Which share of a pause is left to chance, 0 to 1. Default 1, full jitter: anything from no pause to the longest, which
   * spreads the retries of many that failed together best, and costs the server that recovers least.
   */
  readonly jitter?: number;
}

/**
 * How long to wait before a retry: exponential back-off with jitter
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 * @param failures failures in a row, from 1
 * @param random from 0 inclusive to 1 exclusive
 * @returns ms
 */
export function backoffMs(
  failures: number,
  { fromMs, toMs, jitter = 1 }: Backoff,
  random: () => number = Math.random,
): number {
  return shortened(Math.min(toMs, fromMs * 2 ** (failures - 1)), jitter, random);
}

/**
 * Leaves a share of a pause to chance, so that many that failed together do not try again together.
 * @param jitter that share, 0 to 1
 * @param random from 0 inclusive to 1 exclusive
 * @returns ms, at most `pauseMs`
 */
export function shortened(pauseMs: number, jitter: number, random: () => number = Math.random): number {
  return pauseMs * (1 - jitter * random());
}
