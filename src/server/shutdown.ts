import { stopAll, type Service } from "../lifecycle/service.ts";

/** The services that stop when the process stops. */
export interface Shutdown {
  /** Adds a function. Functions are called in reverse order, so what started last stops first. */
  add(stop: () => Promise<void> | void): void;
  /**
   * Starts a service, which stops in its turn, even if its start fails halfway.
   * @throws what its start throws
   */
  start(service: Service): Promise<void>;
  /**
   * Calls each function once, even if an earlier one fails.
   * @throws the first failure
   */
  run(): Promise<void>;
}

/** Makes an empty list. */
export function createShutdown(): Shutdown {
  const stops: (() => Promise<void> | void)[] = [];
  return {
    add: (stop) => void stops.push(stop),
    async start(service) {
      stops.push(() => service.stop());
      await service.start();
    },
    run: () => stopAll(stops.splice(0)),
  };
}
