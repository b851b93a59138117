/** A lock by key: one piece of work for a key runs at a time, and the others wait. */
export interface KeyedLock {
  /** @throws whatever `work` throws, and the signal's reason */
  run<Result>(key: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result>;
}

/** Makes one; it drops a key once there is no waiter. */
export function createKeyedLock(): KeyedLock {
  const last = new Map<string, Promise<void>>();
  return {
    async run(key, signal, work) {
      const before = last.get(key);
      const done = Promise.withResolvers<void>();
      const all = Promise.all([before, done.promise]).then(() => undefined);
      last.set(key, all);
      try {
        if (before !== undefined) await untilAborted(before, signal);
        signal.throwIfAborted();
        return await work();
      } finally {
        done.resolve();
        if (last.get(key) === all) last.delete(key);
      }
    },
  };
}

async function untilAborted(waited: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    await Promise.race([waited, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
