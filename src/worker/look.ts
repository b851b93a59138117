/** A poller that runs at most one look at a time; `createLook` makes it. */
export interface Look {
  /** Starts a look now, or one more after the look that is under way. */
  look(): void;
  /** Settles when no look is under way. To be awaited after `stopping` has aborted. */
  settled(): Promise<void>;
}

/**
 * Polls for work. A call during a look causes exactly one more look after it, so no notification is lost.
 * @param take claims and starts what is there; one look
 * @param until.stopping when it aborts, no further look begins
 * @param until.onFailure receives the error of a failed look; later looks still run
 */
export function createLook(
  take: () => Promise<void>,
  { stopping, onFailure }: { readonly stopping: AbortSignal; readonly onFailure: (error: unknown) => void },
): Look {
  let looking: Promise<void> | null = null;
  let again = false;
  function look(): void {
    again = true;
    looking ??= (async () => {
      while (again && !stopping.aborted) {
        again = false;
        await take();
      }
    })()
      .catch(onFailure)
      .finally(() => {
        looking = null;
        // `look()` may have been called between the loop's last test and this line.
        if (again && !stopping.aborted) look();
      });
  }
  return { look, settled: () => looking ?? Promise.resolve() };
}
