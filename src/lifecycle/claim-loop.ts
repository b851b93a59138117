import { createPeriodic, type Periodic } from "./periodic.ts";
import { createService } from "./service.ts";

/** The functions that claim work and do it. */
export interface ClaimLoopOptions<Claimed> {
  /** No more is claimed while so many claims are worked on. */
  readonly atOnce: number;
  /**
   * Milliseconds between two polls for something to claim, if neither `now` nor the end of some work starts one
   * earlier.
   */
  readonly everyMs: number;
  /**
   * Claims what may be worked on in addition to what is worked on now.
   * @returns nothing if there is nothing to claim: else it is called again at once
   */
  readonly claim: (underWay: readonly Claimed[]) => Promise<readonly Claimed[]>;
  /**
   * Works on one claim.
   * @param hurry aborts once the work's time after a stop is over
   */
  readonly work: (claimed: Claimed, hurry: AbortSignal) => Promise<void>;
  /** How long the work under way goes on after a stop before its `hurry` aborts, in ms; omitted: until it has ended. */
  readonly graceMs?: number;
  /** Gets the error of a failed claim, to log it; it is tried again. */
  readonly onClaimFailure: (error: unknown) => void;
  /** Gets the error of failed work, to log it. */
  readonly onWorkFailure: (error: unknown, claimed: Claimed) => void;
}

/**
 * Makes a background task that claims work and does several pieces of it at a time: what ends makes room for the next. A pass waits for
 * no work, so slow work holds up only its own place. `stop` claims nothing more, and settles when the work under way has ended.
 */
export function createClaimLoop<Claimed>(options: ClaimLoopOptions<Claimed>): Periodic {
  const { atOnce, everyMs, claim, work, graceMs, onClaimFailure, onWorkFailure } = options;
  const underWay = new Map<Promise<void>, Claimed>();
  const hurry = new AbortController();
  const looks = createPeriodic({
    everyMs,
    pass: async (stopping) => {
      while (!stopping.aborted && underWay.size < atOnce) {
        const claimed = await claim([...underWay.values()]);
        if (claimed.length === 0) return;
        for (const each of claimed) begin(each);
      }
    },
    onFailure: onClaimFailure,
  });

  function begin(claimed: Claimed): void {
    // A separate async function, so that work that throws synchronously rejects too.
    const done: Promise<void> = (async () => work(claimed, hurry.signal))()
      .catch((error: unknown) => onWorkFailure(error, claimed))
      .finally(() => {
        underWay.delete(done);
        looks.now();
      });
    underWay.set(done, claimed);
  }

  const service = createService({
    start: () => looks.start(),
    async stop() {
      if (graceMs === 0) hurry.abort();
      const grace = graceMs === undefined ? undefined : setTimeout(() => hurry.abort(), graceMs);
      await looks.stop();
      await Promise.all(underWay.keys());
      clearTimeout(grace);
    },
  });
  return { ...service, now: () => looks.now() };
}
