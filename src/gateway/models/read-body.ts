import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { BodyCheck, Understood } from "../bodies/check.ts";
import { RequestRefusedError } from "../refusal.ts";

/** Maximum bytes of a request: Anthropic accepts 32 MB; a conversation that fills a model's context has some five. */
export const requestLimit = 32 * 1024 * 1024;
/** Maximum bytes of all open requests of a session. */
const heldLimit = 2 * requestLimit;
const blockBytes = 64 * 1024;
/** Minimum average size of chunks: many tiny chunks cost more to read than to send. */
const leastPieceBytes = 256;
const freePieces = 256;

/** Bytes in memory, of all open requests of a session. */
export interface BufferedBytes {
  bytes: number;
}

/** A body to forward, and the facts found in it. */
export interface ReadBody {
  /** The body in blocks of one size. */
  readonly blocks: readonly Buffer[];
  readonly understood: Understood;
}

/**
 * Reads a body, and checks it while it arrives.
 * @param held grows by the bytes kept: give them back with `release`
 * @throws RequestRefusedError, after which no bytes are kept
 */
export async function readBody(request: IncomingMessage, check: BodyCheck, held: BufferedBytes): Promise<ReadBody> {
  const expected = Number(request.headers["content-length"] ?? Number.POSITIVE_INFINITY);
  if (Number.isFinite(expected) && expected > requestLimit) throw tooLarge();
  const blocks: Buffer[] = [];
  let block = Buffer.alloc(0);
  let filled = 0;
  let [bytes, pieces] = [0, 0];
  let refused: RequestRefusedError | null = null;

  function nextBlock(): void {
    const size = Math.min(blockBytes, expected - blocks.length * blockBytes);
    if (held.bytes + size > heldLimit) throw tooMuch();
    held.bytes += size;
    block = Buffer.alloc(size);
    blocks.push(block);
    filled = 0;
  }

  async function keep(piece: Buffer): Promise<void> {
    for (let from = 0; from < piece.length;) {
      if (filled === block.length) nextBlock();
      const copied = piece.copy(block, filled, from);
      filled += copied;
      from += copied;
      if (filled < block.length) continue;
      check.push(block);
      // Let the session's other requests run between two blocks.
      await nextTurn();
    }
  }

  try {
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      pieces += 1;
      bytes += piece.length;
      if (bytes > requestLimit) throw tooLarge();
      if (pieces > freePieces + bytes / leastPieceBytes) throw tooSmall();
      // Read the rest all the same: a client that still sends does not read the refusal.
      if (refused === null) refused = await keep(piece).then(() => null, refusalOf);
    }
    if (refused !== null) throw refused;
    if (blocks.length > 0) blocks[blocks.length - 1] = block.subarray(0, filled);
    if (filled < block.length) check.push(block.subarray(0, filled));
    return { blocks, understood: check.end() };
  } catch (error) {
    release(blocks, held);
    throw error;
  }
}

function refusalOf(error: unknown): RequestRefusedError {
  if (error instanceof RequestRefusedError) return error;
  throw error;
}

/** Gives back the bytes of a body. */
export function release(blocks: readonly Buffer[], held: BufferedBytes): void {
  held.bytes -= blocks.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
}

function tooSmall(): RequestRefusedError {
  return new RequestRefusedError(400, "the body arrives in chunks that are too small");
}

function tooLarge(): RequestRefusedError {
  return new RequestRefusedError(413, `a request can have at most ${requestLimit / 1024 ** 2} MiB`);
}

function tooMuch(): RequestRefusedError {
  return new RequestRefusedError(
    429,
    `the requests of a session that are under way can have at most ${heldLimit / 1024 ** 2} MiB: wait for their answers`,
  );
}
