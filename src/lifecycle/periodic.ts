import { createOneAtATime } from "./one-at-a-time.ts";
import { createService, type Service } from "./service.ts";

/** A background task that comes round again and again. */
export interface Periodic extends Service {
  /** Begins a pass now, or once more after the pass under way. Does nothing before `start` and after `stop`. */
  now(): void;
}

/** A periodic task's work and times. */
export interface PeriodicOptions {
  /**
   * One pass. There is one at a time, and `stop` waits for the one under way.
   * @param stopping aborts when the task is stopped: a long pass should end soon after
   */
  readonly pass: (stopping: AbortSignal) => Promise<void>;
  /** Milliseconds from the beginning of one pass to the next. Passes for which a longer one leaves no time are left out. */
  readonly everyMs: number;
  /** Milliseconds from the start to the first pass; default 0: `start` begins it, and does not wait for it. */
  readonly firstAfterMs?: number;
  /**
   * Gets the error of a failed pass, to log it; the next pass takes place nevertheless. A pass that throws the reason of
   * `stopping` has not failed.
   */
  readonly onFailure: (error: unknown) => void;
}

/** Makes a background task that makes one pass after another. */
export function createPeriodic({ pass, everyMs, firstAfterMs = 0, onFailure }: PeriodicOptions): Periodic {
  const stopping = new AbortController();
  let isRunning = false;
  let isInPass = false;
  let timer: NodeJS.Timeout | null = null;
  const passes = createOneAtATime(async () => {
    isInPass = true;
    try {
      await pass(stopping.signal);
    } catch (error) {
      if (error !== stopping.signal.reason) onFailure(error);
    } finally {
      isInPass = false;
    }
  });

  function tick(): void {
    timer = setTimeout(tick, everyMs);
    if (!isInPass) void passes.run();
  }

  const service = createService({
    start() {
      isRunning = true;
      if (firstAfterMs > 0) timer = setTimeout(tick, firstAfterMs);
      else tick();
      return Promise.resolve();
    },
    async stop() {
      isRunning = false;
      if (timer !== null) clearTimeout(timer);
      stopping.abort();
      await passes.stop();
    },
  });
  return {
    ...service,
    now() {
      if (isRunning) void passes.run();
    },
  };
}

/**
 * Makes a service of a background task that also makes a pass at once when a notification arrives.
 * @param listen begins to listen, and calls `now` for what concerns the task; what it returns ends that
 */
export function withListener(
  task: Periodic,
  listen: (now: () => void) => Promise<{ close(): Promise<void> }>,
): Service {
  let listening: { close(): Promise<void> } | null = null;
  return createService({
    async start() {
      listening = await listen(() => task.now());
      await task.start();
    },
    async stop() {
      await listening?.close();
      await task.stop();
    },
  });
}
