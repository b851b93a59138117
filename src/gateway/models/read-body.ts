import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { BodyCheck, Understood } from "../bodies/check.ts";
import { RequestRefusedError } from "../refusal.ts";

/** What one request can have: Anthropic takes 32 MB, and a conversation that fills a model's memory has some five. */
export const requestLimit = 32 * 1024 * 1024;
/** Of all requests of a session that are under way. */
const heldLimit = 2 * requestLimit;
const blockBytes = 64 * 1024;
/** Whoever sends a few bytes at a time makes more work than whoever reads them. */
const leastPieceBytes = 256;
const freePieces = 256;

/** Bytes that wait in memory, of all requests of a session. */
export interface Held {
  bytes: number;
}

/** A body as it is forwarded, and what it says. */
export interface ReadBody {
  /** In blocks of one size. */
  readonly blocks: readonly Buffer[];
  readonly understood: Understood;
}

/**
 * Reads a body and has it checked as it comes.
 * @param held grows by what is held: give it back with `release`
 * @throws RequestRefusedError, after which nothing is held
 */
export async function readBody(request: IncomingMessage, check: BodyCheck, held: Held): Promise<ReadBody> {
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
      // Others of the session have their turn between two blocks.
      await nextTurn();
    }
  }

  try {
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      pieces += 1;
      bytes += piece.length;
      if (bytes > requestLimit) throw tooLarge();
      if (pieces > freePieces + bytes / leastPieceBytes) throw tooSmall();
      // The rest is read all the same: who still sends does not hear why it was refused.
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

/** Gives back what a body held. */
export function release(blocks: readonly Buffer[], held: Held): void {
  held.bytes -= blocks.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
}

function tooSmall(): RequestRefusedError {
  return new RequestRefusedError(400, "the body comes in pieces that are too small");
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
