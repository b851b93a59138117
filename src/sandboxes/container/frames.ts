import { Writable } from "node:stream";

const headerBytes = 8;
/** Output of a frame, by its first byte; 0 is an echo of the input, 3 the engine's own errors. */
const kinds = { 0: "stderr", 1: "stdout", 2: "stderr", 3: "stderr" } as const;

/** The destinations of a command's two outputs. */
export interface Outputs {
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/**
 * Splits the stream in which an engine combines a command's two outputs. Each frame has a byte for its kind, three zero
 * bytes, the length in four bytes, and the content
 * (https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach).
 * It waits while the reader of either output is behind, and buffers only headers. Data for a destroyed output are
 * dropped. It ends neither output: their owner does.
 * @returns the stream to pipe into; destroyed with an error if the data are not frames
 */
export function createDemultiplexer(outputs: Outputs): Writable {
  const header = Buffer.alloc(headerBytes);
  let inHeader = 0;
  let left = 0;
  let output: Writable = outputs.stdout;

  /** Reads a header, or a part of it. @returns number of bytes read */
  function takeHeader(chunk: Buffer, from: number): number {
    const taken = chunk.copy(header, inHeader, from, from + headerBytes - inHeader);
    inHeader += taken;
    if (inHeader < headerBytes) return taken;
    const kind = kinds[header.readUInt8(0) as keyof typeof kinds] as (typeof kinds)[keyof typeof kinds] | undefined;
    if (kind === undefined)
      throw new Error(`the engine sent output that is not in frames (kind ${header.readUInt8(0)})`);
    output = outputs[kind];
    left = header.readUInt32BE(4);
    inHeader = 0;
    return taken;
  }

  async function pass(chunk: Buffer): Promise<void> {
    for (let from = 0; from < chunk.length;) {
      if (left === 0) {
        from += takeHeader(chunk, from);
        continue;
      }
      const part = chunk.subarray(from, from + left);
      from += part.length;
      left -= part.length;
      // An output that was ended has no reader.
      if (!output.destroyed && !output.writableEnded && !output.write(part)) await drained(output);
    }
  }

  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      void (async () => {
        try {
          await pass(chunk);
        } catch (error) {
          done(error as Error);
          return;
        }
        done();
      })();
    },
  });
}

function drained(output: Writable): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      output.off("drain", settle).off("close", settle);
      resolve();
    };
    output.once("drain", settle).once("close", settle);
  });
}
