/**
 * Something that runs alongside the rest of the process from its start until it is stopped. A resource that is open
 * from its creation on, such as a pool, a file or a subscription, has `close` instead, which can be called twice, too.
 */
export interface Service {
  /**
   * Starts it, and settles when it has started. A second call returns the promise of the first. After `stop` it does
   * nothing: a stopped service stays stopped.
   * @throws whatever keeps it from starting; it must be stopped even then
   */
  start(): Promise<void>;
  /**
   * Stops it, and settles when all its work has ended. Safe if it never started, if its start failed halfway, and if
   * it was stopped before: a second call returns the promise of the first.
   */
  stop(): Promise<void>;
}

/**
 * Makes a service of two functions, each of which is called at most once.
 * @param parts.start starts it
 * @param parts.stop called after `start` has settled, even if it failed; not called if it was never called
 */
export function createService(parts: Service): Service {
  let started: Promise<void> | null = null;
  let stopped: Promise<void> | null = null;
  async function stop(): Promise<void> {
    if (started === null) return;
    // The caller of start has the error.
    await started.catch(() => undefined);
    await parts.stop();
  }
  return {
    start: () => {
      if (stopped !== null) return started ?? Promise.resolve();
      return (started ??= parts.start());
    },
    stop: () => (stopped ??= stop()),
  };
}

/** One service of several: they start in the order given, and stop in the reverse order, each even if another fails. */
export function joinServices(services: readonly Service[]): Service {
  return createService({
    async start() {
      for (const service of services) await service.start();
    },
    async stop() {
      await stopAll(services.map((service) => () => service.stop()));
    },
  });
}

/**
 * Calls each function in the reverse order, one after another, even if one fails.
 * @throws the first failure
 */
export async function stopAll(stops: readonly (() => Promise<void> | void)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const stop of stops.toReversed()) {
    try {
      await stop();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
