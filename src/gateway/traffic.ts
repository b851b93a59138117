/** The gateway's record of a turn's requests to models: the Agent Client Protocol can't report a model's errors. */
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
  /** Whether that error passes by itself: the same request may succeed later. */
  readonly lastErrorPasses: boolean;
  /** How long, in ms, the provider asked with that error to wait; null if it did not say. */
  readonly retryAfterMs: number | null;
  /** Requests that a model has and that it has not answered to the end. */
  readonly unanswered: number;
}

/** The outlook for later requests after an error. */
export type ErrorOutlook = Pick<ModelTraffic, "lastErrorPasses" | "retryAfterMs">;

/** Of an error that later requests meet again. */
export const finalError: ErrorOutlook = { lastErrorPasses: false, retryAfterMs: null };
/** Of a passing error without a time to retry. */
export const passingError: ErrorOutlook = { lastErrorPasses: true, retryAfterMs: null };

/** Counts the traffic of one turn. */
export interface TrafficCounter {
  read(): ModelTraffic;
  /** Records activity. */
  touch(): void;
  /** Records that nothing will be sent for so long. */
  waits(delayMs: number): void;
  /** Records that a model has a request. @returns to be called when it is answered, or the client has gone */
  asked(): () => void;
  /** An answer that is not an error begins. */
  answered(): void;
  /** An answer that had begun became an error. */
  broke(message: string, outlook: ErrorOutlook): void;
  failed(message: string, outlook: ErrorOutlook): void;
  /** Sets the message of the error that was counted last. */
  says(message: string): void;
}

/** The traffic of a turn that begins now. */
export function idleTraffic(): ModelTraffic {
  const now = performance.now();
  return { lastActivity: now, lastAnswer: now, answered: 0, failed: 0, unanswered: 0, lastError: null, ...finalError };
}

/** Creates a counter that begins now. */
export function createTrafficCounter(): TrafficCounter {
  let traffic = idleTraffic();
  const change = (changes: Partial<ModelTraffic>): void => void (traffic = { ...traffic, ...changes });
  return {
    read: () => traffic,
    touch: () => change({ lastActivity: performance.now() }),
    waits: (delayMs) => change({ lastActivity: performance.now() + delayMs }),
    asked() {
      change({ unanswered: traffic.unanswered + 1 });
      let isOver = false;
      return () => {
        if (!isOver) change({ unanswered: traffic.unanswered - 1 });
        isOver = true;
      };
    },
    broke: (message, outlook) =>
      change({ answered: traffic.answered - 1, failed: traffic.failed + 1, lastError: message, ...outlook }),
    answered: () =>
      change({ answered: traffic.answered + 1, lastAnswer: performance.now(), lastError: null, ...finalError }),
    failed: (message, outlook) => change({ failed: traffic.failed + 1, lastError: message, ...outlook }),
    says: (message) => change({ lastError: message }),
  };
}
