/** What the gateway saw of a turn's requests to models: the Agent Client Protocol can't report a model's errors. */
export interface ModelTraffic {
  /**
   * Time of the last byte to or from a model, as `performance.now()`; in the future while the gateway waits to retry.
   */
  readonly lastActivity: number;
  /** Time of a model's last answer that was not an error; the turn's beginning if there was none. */
  readonly lastAnswer: number;
  readonly answered: number;
  readonly failed: number;
  /** Message of the model's last error, if no answer came since. */
  readonly lastError: string | null;
}

/** Counts the traffic of one turn. */
export interface TrafficCounter {
  read(): ModelTraffic;
  /** Records activity. */
  touch(): void;
  /** Records that nothing will be sent for so long. */
  waits(delayMs: number): void;
  answered(): void;
  failed(message: string): void;
  /** Sets the message of the error that was counted last. */
  says(message: string): void;
}

/** Creates a counter that begins now. */
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
