import { PassThrough, Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { expect, test } from "vitest";
import { forwardOutput } from "./forward-output.ts";

test("hands on all that a stream brings, in order, in pieces of a bounded size", async () => {
  const given = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
  const pieces: Buffer[] = [];
  const stream = Readable.from([given.subarray(0, 1), given.subarray(1, 200_000), given.subarray(200_000)], {
    objectMode: false,
  });
  await forwardOutput(stream, (piece) => void pieces.push(Buffer.from(piece)), new AbortController().signal);
  expect(Buffer.concat(pieces).equals(given)).toBe(true);
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(64 * 1024);
});

test("once it is stopped the rest is dropped, so that the writing program ends", async () => {
  const stream = new PassThrough();
  const stopped = new AbortController();
  const handed = forwardOutput(
    stream,
    () =>
      new Promise((resolve) => {
        stopped.signal.addEventListener("abort", () => resolve());
      }),
    stopped.signal,
  );
  stream.end(Buffer.alloc(1_000_000));
  stopped.abort();
  await handed;
  await finished(stream);
});
