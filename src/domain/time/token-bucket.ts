/** A token bucket: limits how often something may happen. */
export interface TokenBucket {
  /** Counts one use. @returns how long the caller must wait before it continues, in ms; 0: not at all */
  take(): number;
}

/**
 * Creates a full token bucket.
 * @param burst uses that need not wait after a pause
 * @param perSecond further uses in each second
 * @param now a clock in ms that never goes back
 */
export function createTokenBucket(
  burst: number,
  perSecond: number,
  now: () => number = () => performance.now(),
): TokenBucket {
  let free = burst;
  let freedAt = now();
  return {
    take() {
      const at = now();
      free = Math.min(burst, free + ((at - freedAt) / 1_000) * perSecond) - 1;
      freedAt = at;
      return Math.max(0, (-free / perSecond) * 1_000);
    },
  };
}
