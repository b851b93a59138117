import type { ModelUsage } from "./usage.ts";

/** About what text of most languages has. */
const bytesPerToken = 4;
/** Shorter lines of a stream say that it goes on or is over, and no word of the answer. */
const shortestPiece = 40;
const lineFeed = 10;

/** Measures an answer as it passes, for where its provider does not tell what it used. */
export function createMeasure(): { read(chunk: Buffer): void; tokens(): number } {
  let bytes = 0;
  let start = "";
  let length = 0;
  let pieces = 0;
  let bytesOfPieces = 0;
  let shortest = Number.POSITIVE_INFINITY;

  function endLine(): void {
    if (start.startsWith("data:") && length >= shortestPiece) {
      pieces += 1;
      bytesOfPieces += length;
      shortest = Math.min(shortest, length);
    }
    start = "";
    length = 0;
  }

  return {
    read(chunk) {
      bytes += chunk.length;
      for (let from = 0; from < chunk.length;) {
        const found = chunk.indexOf(lineFeed, from);
        const to = found === -1 ? chunk.length : found;
        if (start.length < 5) start += chunk.toString("latin1", from, Math.min(to, from + 5));
        length += to - from;
        if (found !== -1) endLine();
        from = to + 1;
      }
    },
    tokens() {
      endLine();
      if (pieces === 0) return Math.ceil(bytes / bytesPerToken);
      // What every piece has around its words is as long as the shortest of them.
      return Math.max(pieces, Math.ceil((bytesOfPieces - pieces * shortest) / bytesPerToken));
    },
  };
}

/**
 * What an answer used of which its provider did not tell all: who asked hung up before, or it does not count. A budget could
 * be passed by else.
 * @param told what it told so far
 * @param answered tokens of the answer by its length
 */
export function estimateUsage(
  told: ModelUsage | null,
  { path, body }: { readonly path: string; readonly body: Buffer },
  answered: number,
): ModelUsage | null {
  // Counting and listing cost nothing, and the answer of an embedding is no text.
  if (/count_?tokens|\/models(?:\/[^:]*)?$/iu.test(path)) return told;
  const outputTokens = /embed/iu.test(path) ? 0 : answered;
  if (told !== null) return { ...told, outputTokens: Math.max(told.outputTokens, outputTokens) };
  return {
    model: null,
    inputTokens: Math.ceil(bytesOfText(body) / bytesPerToken),
    outputTokens,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}

/** An image is thousands of tokens at most, however many bytes in base64. */
const longestRun = 8_000;
const isOfRun = new Uint8Array(256);
for (const byte of Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"))
  isOfRun[byte] = 1;

/** By hand: an expression that matches runs of megabytes overflows the stack. */
function bytesOfText(body: Buffer): number {
  let bytes = 0;
  let run = 0;
  for (const byte of body) {
    run = isOfRun[byte] === 1 ? run + 1 : 0;
    if (run <= longestRun) bytes += 1;
  }
  return bytes;
}
