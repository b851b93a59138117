/** Work of which one run is under way at most. */
export interface OneAtATime<T> {
  /**
   * Runs the work: now, or, while a run is under way, once more after it for all calls during it. So whatever a caller
   * changed before the call is seen by the run that it waits for.
   * @returns what that run returned; null if it was stopped before the run began
   * @throws what that run threw; later runs take place nevertheless
   */
  run(): Promise<T | null>;
  /** Begins no further run, and settles when none is under way. Can be called twice. */
  stop(): Promise<void>;
}

/** Makes `work` run one at a time, and once more if it was asked for meanwhile. */
export function createOneAtATime<T>(work: () => Promise<T>): OneAtATime<T> {
  /** Settles with the run under way, and never rejects; null if there is none. */
  let underWay: Promise<void> | null = null;
  /** The next run, which all calls during the one under way share. */
  let next: Promise<T | null> | null = null;
  let stopped = false;

  function begin(): Promise<T | null> {
    next = null;
    if (stopped) return Promise.resolve(null);
    // A separate async function, so that work that throws synchronously rejects too.
    const run = (async () => work())();
    const over = run.then(
      () => undefined,
      () => undefined,
    );
    underWay = over;
    void over.then(() => {
      if (underWay === over) underWay = null;
    });
    return run;
  }

  return {
    run() {
      if (next !== null) return next;
      if (underWay === null) return begin();
      return (next = underWay.then(begin));
    },
    async stop() {
      stopped = true;
      await underWay;
    },
  };
}
