import { setTimeout as pause } from "node:timers/promises";
import { isConnectionError } from "../../../database/connection-errors.ts";
import type { NewEvent } from "../../../domain/sessions/event.ts";
import { backoffMs } from "../../../domain/time/backoff.ts";
import { hasEvent } from "../../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";

/** How long a turn waits until an event is stored, in ms: then it goes on, and so it does with the next ones until all are stored. */
const patienceMs = 500;
/** Most events that are held while a turn goes on. */
const mostHeld = 200;
const retrying = { fromMs: 100, toMs: 2_000, jitter: 0.5 };

/** Events of one turn on their way to the database, which may be away. */
export interface HeldEvents {
  /**
   * Stores an event after those before it. Settles when it is stored, or after a moment.
   * @throws LeaseLostError if the lease has run out meanwhile; whatever else than the database's absence keeps an event from being stored
   */
  emit(event: NewEvent): Promise<void>;
  /** Those of which it is not known that they are stored, in their order. */
  held(): readonly NewEvent[];
  /** Settles when all are stored. @throws as `emit` */
  stored(): Promise<void>;
  /** Settles when all are stored, or nothing more will be, or after a moment; never rejects. */
  settled(): Promise<void>;
}

/**
 * Holds a turn's events while the database is away, for as long as the lease lasts: the turn goes on meanwhile, and may end. Otherwise a
 * turn that has cost money would be taken once more for its last words.
 */
export function createHeldEvents(
  { session, emit, signal, logger }: Pick<Attempt, "session" | "emit" | "signal" | "logger">,
  { database }: Pick<AttemptServices, "database">,
): HeldEvents {
  const waiting: { readonly event: NewEvent; readonly stored: PromiseWithResolvers<void> }[] = [];
  let sending: Promise<void> | null = null;
  let failure: { readonly error: unknown } | null = null;
  let isBehind = false;

  async function within(settling: Promise<void>): Promise<void> {
    const patience = new AbortController();
    const over = pause(patienceMs, undefined, { signal: patience.signal }).then(
      () => void (isBehind = true),
      () => undefined,
    );
    await Promise.race([settling, over]).finally(() => patience.abort());
  }

  async function send(): Promise<void> {
    let failures = 0;
    for (let [next] = waiting; next !== undefined; [next] = waiting) {
      const { event, stored: own } = next;
      try {
        // It may have been stored before the connection was lost.
        if (failures === 0 || !(await hasEvent(database, session, event))) await emit(event);
        failures = 0;
        waiting.shift();
        own.resolve();
      } catch (error) {
        if (!isConnectionError(error) || signal.aborted) {
          failure = { error };
          break;
        }
        failures += 1;
        if (failures === 1) logger.warn({ err: error }, "could not store an event of a turn; will retry");
        await pause(backoffMs(failures, retrying));
      }
    }
    sending = null;
    isBehind = false;
    if (failure !== null) for (const { stored: own } of waiting) own.reject(failure.error);
  }

  async function stored(): Promise<void> {
    while (sending !== null) await sending;
    if (failure !== null) throw failure.error;
  }

  return {
    async emit(event) {
      if (failure !== null) throw failure.error;
      const own = Promise.withResolvers<void>();
      // The caller that waits for it, or for all, handles the error.
      own.promise.catch(() => undefined);
      waiting.push({ event, stored: own });
      sending ??= send();
      if (waiting.length > mostHeld) await own.promise;
      else if (!isBehind) await within(own.promise);
    },
    held: () => waiting.map(({ event }) => event),
    stored,
    settled: () => within(stored().catch(() => undefined)),
  };
}
