import { UnavailableError } from "../../domain/errors.ts";

/** How much of one kind of work an engine is given at once. */
export interface TurnLimits {
  readonly atOnce: number;
  /** How many more may wait for their turn. */
  readonly waiting: number;
  /** How long each of them may, in ms. */
  readonly waitMs: number;
}

/** Work of one kind, of which only so much is under way at once; the rest waits in the order of its coming. */
export interface Turns {
  /**
   * @param signal ends the wait for the turn, not the work
   * @throws UnavailableError, before the work began, if too many wait already or the wait takes too long; the signal's
   *   reason if it aborts during the wait; whatever the work throws
   */
  take<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/**
 * @param toDo stands in the errors: "make a container"
 */
export function createTurns(toDo: string, { atOnce, waiting, waitMs }: TurnLimits): Turns {
  let underWay = 0;
  /** In the order of their coming; each is called when its turn has come. */
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
        `${waiting} others wait already for the container engine to ${toDo}: check whether it hangs or the machine is overloaded, and try again`,
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
            `the container engine was too busy to ${toDo} within ${waitMs} ms: check whether it hangs or the machine is overloaded, and try again`,
          ),
        );
      }, waitMs);
      signal?.addEventListener("abort", stop, { once: true });
      queue.add(begin);
    });
  }

  return {
    async take(work, signal) {
      await turn(signal);
      try {
        return await work();
      } finally {
        next();
      }
    },
  };
}
