export interface Look {
  /** Looks now, or once more after the look that is under way. */
  look(): void;
  /** Settles once none is under way; for when `stopping` is aborted. */
  settled(): Promise<void>;
}

/**
 * Looks for work, one look at a time.
 * @param take takes what is there
 * @param until.stopping begins no more looks
 * @param until.onFailure hears why a look failed; the next is tried all the same
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
        // Called after the last time round, and before this.
        if (again && !stopping.aborted) look();
      });
  }
  return { look, settled: () => looking ?? Promise.resolve() };
}
