import { onReaderMove } from "../elements/reader-moves.ts";

/**
 * Frames in a row in which the page must be at its beginning: after the first, the renderer of the page knows of it.
 */
const framesInRow = 3;
const mostFrames = 120;

/**
 * Scrolls to the beginning of the page, and stays there. A long list that is measured while it is left moves the page by what it measured,
 * which would bring it back; a reader who scrolls ends this.
 */
export function goToTop(): void {
  let [frames, atTop] = [0, 0];
  const keep = (reading: AbortController): void => {
    if (reading.signal.aborted) return;
    atTop = window.scrollY === 0 ? atTop + 1 : 0;
    frames += 1;
    if (atTop >= framesInRow || frames > mostFrames) {
      reading.abort();
      return;
    }
    toTop();
    requestAnimationFrame(() => keep(reading));
  };
  toTop();
  // The key that asked for it is not the reader's next one.
  requestAnimationFrame(() => keep(untilScrolled()));
}

/** Is aborted as soon as the reader moves the page. */
function untilScrolled(): AbortController {
  const reading = new AbortController();
  onReaderMove(() => reading.abort(), reading.signal);
  return reading;
}

function toTop(): void {
  window.scrollTo({ top: 0, behavior: "instant" });
}
