/** Lets so many through at once, and so many in each second after that. */
export interface Pace {
  /** Counts one. @returns ms for which it waits before it goes on */
  next(): number;
}

/**
 * @param burst how many go on at once after a pause
 * @param perSecond how many more in each second
 * @param now a clock in ms that never goes back
 */
export function createPace(burst: number, perSecond: number, now: () => number = () => performance.now()): Pace {
  let free = burst;
  let freedAt = now();
  return {
    next() {
      const at = now();
      free = Math.min(burst, free + ((at - freedAt) / 1_000) * perSecond) - 1;
      freedAt = at;
      return Math.max(0, (-free / perSecond) * 1_000);
    },
  };
}
