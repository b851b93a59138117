/**
 * How many times were of which length, so that days can be added up: each time is counted in a bucket, eight of which double the length.
 * A quantile of it is within 5 % of that of the times themselves.
 */
export interface Histogram {
  /** Numbers of buckets, ascending. The bucket of a time is that of `floor(8 · log2(ms))`. */
  readonly buckets: readonly number[];
  /** How many times each has. */
  readonly counts: readonly number[];
}

/** Buckets within which a length doubles. */
export const bucketsOfDoubling = 8;

/**
 * The time below which a share of the times is.
 * @param share from 0 to 1
 * @returns milliseconds, the middle of a bucket; null if there are no times
 */
export function quantileMs({ buckets, counts }: Histogram, share: number): number | null {
  const wanted = share * counts.reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (const [index, bucket] of buckets.entries()) {
    seen += counts[index] ?? 0;
    if (seen >= wanted && seen > 0) return Math.round(2 ** ((bucket + 0.5) / bucketsOfDoubling));
  }
  return null;
}
