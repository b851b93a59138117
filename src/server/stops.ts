export interface Stops {
  /** To be done when the process stops, before all that was added earlier. */
  add(stop: () => Promise<void> | void): void;
  /** Does each once, also where one before it failed. @throws the first failure */
  run(): Promise<void>;
}

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
