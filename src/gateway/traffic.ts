/** What the gateway saw of a turn's requests: the protocol has no word for a model's errors. */
export interface ModelTraffic {
  /** When something last went to a model or came from one, as `performance.now()`; later than now while it waits to try again. */
  readonly lastActivity: number;
  /** When a model last answered something else than an error; the beginning, if none did. */
  readonly lastAnswer: number;
  readonly answered: number;
  readonly failed: number;
  /** What the model's server said in its last error, if nothing was answered since. */
  readonly lastError: string | null;
}

/** Counts the traffic of one turn. */
export interface TrafficCounter {
  read(): ModelTraffic;
  /** Something passed. */
  touch(): void;
  /** Nothing will pass for so long. */
  waits(delayMs: number): void;
  answered(): void;
  failed(message: string): void;
  /** The words of the error that was counted last. */
  says(message: string): void;
}

export function createTrafficCounter(): TrafficCounter {
  const now = performance.now();
  let traffic: ModelTraffic = { lastActivity: now, lastAnswer: now, answered: 0, failed: 0, lastError: null };
  const change = (changes: Partial<ModelTraffic>): void => void (traffic = { ...traffic, ...changes });
  return {
    read: () => traffic,
    touch: () => change({ lastActivity: performance.now() }),
    waits: (delayMs) => change({ lastActivity: performance.now() + delayMs }),
    answered: () => change({ answered: traffic.answered + 1, lastAnswer: performance.now(), lastError: null }),
    failed: (message) => change({ failed: traffic.failed + 1, lastError: message }),
    says: (message) => change({ lastError: message }),
  };
}
