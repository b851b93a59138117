import { Writable } from "node:stream";

const headerBytes = 8;
/** Where the bytes of a frame go, by its first byte; 0 is an echo of the input, 3 the engine's own errors. */
const kinds = { 0: "stderr", 1: "stdout", 2: "stderr", 3: "stderr" } as const;

export interface Outputs {
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/**
 * Takes apart the one stream that an engine makes of a command's two outputs: frames of a kind, three bytes of nothing, the
 * length in four, and as many bytes (https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach).
 * It takes no more while a reader of either output is behind, and gathers nothing but headers: a frame goes on as it comes in.
 * An output that was destroyed loses what is for it, and holds nothing up. Neither output is ended: whoever made them does.
 * @returns what the stream is piped into; destroyed with an error where the stream is none of frames
 */
export function createDemultiplexer(outputs: Outputs): Writable {
  const header = Buffer.alloc(headerBytes);
  let inHeader = 0;
  let left = 0;
  let output: Writable = outputs.stdout;

  /** Reads one header, or as much of it as there is. @returns how many bytes that took */
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
      // One that was ended before has nobody left to hear it.
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
