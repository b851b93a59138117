/** Functions to call when the process stops. */
export interface Stops {
  /** Adds a function. Functions are called in reverse order, so what started last stops first. */
  add(stop: () => Promise<void> | void): void;
  /**
   * Calls each function once, even if an earlier one fails.
   * @throws the first failure
   */
  run(): Promise<void>;
}

/** Makes an empty list of functions. */
export function createStops(): Stops {
  const stops: (() => Promise<void> | void)[] = [];
  return {
    add: (stop) => void stops.push(stop),
    async run() {
      const failures: unknown[] = [];
      for (const stop of stops.splice(0).reverse()) {
        try {
          await stop();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
