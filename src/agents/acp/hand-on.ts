import type { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";

/** Of one stream: no program that means well writes so much of its protocol or its log, in bytes. */
const bytesPerSecond = 16 * 1024 * 1024;
const pieceBytes = 64 * 1024;

/**
 * Hands on what a program writes, one piece at a time: the next when that was taken, and no faster than 16 MiB a second. So a
 * program that writes as fast as it can waits, and takes a small share of the event loop that serves all others.
 * Once the signal aborts the rest is dropped, so that the stream comes to its end.
 * @param take a piece of at most 64 KiB
 */
export async function handOn(
  stream: Readable,
  take: (piece: Buffer) => Promise<void> | void,
  signal: AbortSignal,
): Promise<void> {
  let wake = (): void => undefined;
  const onChange = (): void => wake();
  const isOver = (): boolean => signal.aborted || stream.readableEnded || stream.destroyed;
  for (const event of ["readable", "end", "close", "error"]) stream.on(event, onChange);
  signal.addEventListener("abort", onChange);
  try {
    for (;;) {
      const changed = new Promise<void>((resolve) => (wake = resolve));
      const chunk = signal.aborted ? null : (stream.read() as Buffer | null);
      if (chunk !== null) await takeInPieces(chunk, take, signal);
      else if (isOver()) return;
      else await changed;
    }
  } finally {
    signal.removeEventListener("abort", onChange);
    // An error of the stream's is still heard, and the program's end tells of it.
    for (const event of ["readable", "end", "close"]) stream.off(event, onChange);
    stream.on("data", () => undefined).resume();
  }
}

async function takeInPieces(
  chunk: Buffer,
  take: (piece: Buffer) => Promise<void> | void,
  signal: AbortSignal,
): Promise<void> {
  for (let from = 0; from < chunk.length && !signal.aborted; from += pieceBytes) {
    const piece = chunk.subarray(from, from + pieceBytes);
    await take(piece);
    await pause(Math.ceil((piece.length / bytesPerSecond) * 1_000));
  }
}
