import { UnavailableError } from "../../domain/errors/errors.ts";

/** Limits on one kind of an engine's concurrent work. */
export interface WorkLimits {
  readonly atOnce: number;
  /** How many more may wait. */
  readonly waiting: number;
  /** How long each may wait, in ms. */
  readonly waitMs: number;
}

/** Limits concurrent work of one kind; the rest waits in order of arrival. */
export interface WorkLimiter {
  /**
   * Runs the work as soon as it may start.
   * @param signal ends the wait, not the work
   * @throws UnavailableError, before the work started, if too many wait or the wait is too long; the signal's reason if
   * it aborts during the wait; errors of the work
   */
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/** @param action the action, for the errors' messages: "make a container" */
export function createWorkLimiter(action: string, { atOnce, waiting, waitMs }: WorkLimits): WorkLimiter {
  let underWay = 0;
  /** In order of arrival; each is called when its work may start. */
  const queue = new Set<() => void>();

  function next(): void {
    underWay -= 1;
    const [first] = queue;
    first?.();
  }

  async function turn(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (underWay < atOnce) {
      underWay += 1;
      return;
    }
    if (queue.size >= waiting) {
      throw new UnavailableError(
        `${waiting} others wait already for the container engine to ${action}: check whether it hangs or the machine is overloaded, and try again`,
      );
    }
    await new Promise<void>((resolve, reject) => {
      const settle = (): void => {
        queue.delete(begin);
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
      };
      const begin = (): void => {
        settle();
        underWay += 1;
        resolve();
      };
      const stop = (): void => {
        settle();
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        settle();
        reject(
          new UnavailableError(
            `the container engine was too busy to ${action} within ${waitMs} ms: check whether it hangs or the machine is overloaded, and try again`,
          ),
        );
      }, waitMs);
      signal?.addEventListener("abort", stop, { once: true });
      queue.add(begin);
    });
  }

  return {
    async run(work, signal) {
      await turn(signal);
      try {
        return await work();
      } finally {
        next();
      }
    },
  };
}
