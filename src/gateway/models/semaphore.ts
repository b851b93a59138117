/** Limits concurrency; waiting callers continue in order of arrival. */
export interface Semaphore {
  /**
   * Waits for a turn.
   * @returns a function that ends the turn, which may be called twice
   * @throws the signal's reason if it aborts
   */
  acquire(signal: AbortSignal): Promise<() => void>;
}

/** @param atOnce number of concurrent turns */
export function createSemaphore(atOnce: number): Semaphore {
  let free = atOnce;
  const queue: (() => void)[] = [];

  function begun(): () => void {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const next = queue.shift();
      if (next === undefined) free += 1;
      else next();
    };
  }

  return {
    async acquire(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return begun();
      }
      return new Promise((resolve, reject) => {
        const start = (): void => {
          signal.removeEventListener("abort", leave);
          resolve(begun());
        };
        const leave = (): void => {
          queue.splice(queue.indexOf(start), 1);
          reject(signal.reason as Error);
        };
        queue.push(start);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
  };
}
