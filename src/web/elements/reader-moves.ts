/** Events of a reader who moves on their own: the page must not scroll them any more. */
const moves = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

/** Calls `run` each time that the reader moves the page, until the signal is aborted. */
export function onReaderMove(run: () => void, signal: AbortSignal): void {
  for (const move of moves) addEventListener(move, run, { passive: true, signal });
}
