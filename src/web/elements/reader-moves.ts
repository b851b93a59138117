/** What somebody does who goes on by themselves, and would not be moved by the page. */
const moves = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

/** Calls `run` each time that the reader moves the page, until the signal is aborted. */
export function onReaderMove(run: () => void, signal: AbortSignal): void {
  for (const move of moves) addEventListener(move, run, { passive: true, signal });
}
