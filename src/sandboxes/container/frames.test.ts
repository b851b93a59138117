import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createDemultiplexer } from "./frames.ts";

interface Frame {
  readonly kind: number;
  readonly bytes: Uint8Array;
}

function encode({ kind, bytes }: Frame): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(kind, 0);
  header.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([header, bytes]);
}

/** Cut at these places. */
function pieces(whole: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (whole.length + 1)).toSorted((a, b) => a - b), whole.length];
  return at.slice(1).map((end, index) => whole.subarray(at[index], end));
}

describe("the engine's one stream", () => {
  it("becomes the two outputs again, however it is cut", async () => {
    const frame = fc.record({ kind: fc.constantFrom(1, 2), bytes: fc.uint8Array({ maxLength: 300 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(frame, { maxLength: 30 }),
        fc.array(fc.nat(10_000), { maxLength: 60 }),
        // Readers that are behind at once, and such as never are.
        fc.constantFrom(1, 100, 16_384),
        async (frames, cuts, highWaterMark) => {
          const [stdout, stderr] = [new PassThrough({ highWaterMark }), new PassThrough({ highWaterMark })];
          const both = Promise.all([buffer(stdout), buffer(stderr)]);
          const source = Readable.from(pieces(Buffer.concat(frames.map(encode)), cuts), { objectMode: false });
          await pipeline(source, createDemultiplexer({ stdout, stderr }));
          stdout.end();
          stderr.end();
          const wanted = [1, 2].map((kind) =>
            Buffer.concat(frames.filter((one) => one.kind === kind).map(({ bytes }) => bytes)),
          );
          expect(await both).toEqual(wanted);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("takes thousands of frames in one piece", async () => {
    const frames = Buffer.concat(Array.from({ length: 20_000 }, () => encode({ kind: 1, bytes: Buffer.from("a") })));
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const read = buffer(stdout);
    await pipeline(Readable.from([frames]), createDemultiplexer({ stdout, stderr }));
    stdout.end();
    expect((await read).length).toBe(20_000);
  });

  it("is read no faster than its consumer reads, and gathers no frame", async () => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    let given = 0;
    // One frame of a gigabyte, of which a piece is made when it is asked for.
    const header = Buffer.alloc(8);
    header.writeUInt8(1, 0);
    header.writeUInt32BE(2 ** 30, 4);
    const piece = Buffer.alloc(65_536, "x");
    const source = new Readable({
      read() {
        this.push(given === 0 ? header : piece);
        given += piece.length;
      },
    });
    const frames = createDemultiplexer({ stdout, stderr });
    source.pipe(frames);
    for (let read = 0; read < 16;) {
      // Everything that can move without a reader has moved once the event loop went round so often without a piece given.
      for (let before = -1; before !== given;) {
        before = given;
        for (let round = 0; round < 20; round += 1) await new Promise(setImmediate);
      }
      expect(given - read * piece.length).toBeLessThanOrEqual(8 * piece.length);
      if (stdout.read(piece.length) !== null) read += 1;
    }
    source.destroy();
    frames.destroy();
  });

  it("goes on for the other output if one was destroyed", async () => {
    const [stdout, stderr] = [new PassThrough({ highWaterMark: 1 }), new PassThrough()];
    const source = new PassThrough();
    const done = pipeline(source, createDemultiplexer({ stdout, stderr }));
    source.write(encode({ kind: 1, bytes: Buffer.from("unread") }));
    source.write(encode({ kind: 2, bytes: Buffer.from("heard") }));
    await new Promise(setImmediate);
    expect(stderr.readableLength).toBe(0);
    stdout.destroy();
    source.end();
    await done;
    stderr.end();
    expect(String(await buffer(stderr))).toBe("heard");
  });

  it("is refused if it is none of frames", async () => {
    const outputs = { stdout: new PassThrough(), stderr: new PassThrough() };
    await expect(pipeline(Readable.from([Buffer.from("plain text")]), createDemultiplexer(outputs))).rejects.toThrow(
      /not in frames/u,
    );
  });
});
