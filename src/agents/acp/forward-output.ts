import type { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";

/** Limit of one stream: no ordinary program writes this much protocol or log. */
const bytesPerSecond = 16 * 1024 * 1024;
const chunkBytes = 64 * 1024;

/**
 * Passes on a program's output chunk by chunk: the next when the last was taken, and at most 16 MiB a second. So a
 * program that writes without pause waits, and takes a small share of the event loop. After the signal aborts, the rest
 * is dropped, so that the stream reaches its end.
 * @param take gets chunks of at most 64 KiB
 */
export async function forwardOutput(
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
      if (chunk !== null) await takeInChunks(chunk, take, signal);
      else if (isOver()) return;
      else await changed;
    }
  } finally {
    signal.removeEventListener("abort", onChange);
    // The error listener stays; the program's exit reports the reason.
    for (const event of ["readable", "end", "close"]) stream.off(event, onChange);
    stream.on("data", () => undefined).resume();
  }
}

async function takeInChunks(
  chunk: Buffer,
  take: (piece: Buffer) => Promise<void> | void,
  signal: AbortSignal,
): Promise<void> {
  for (let from = 0; from < chunk.length && !signal.aborted; from += chunkBytes) {
    const piece = chunk.subarray(from, from + chunkBytes);
    await take(piece);
    await pause(Math.ceil((piece.length / bytesPerSecond) * 1_000));
  }
}
