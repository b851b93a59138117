const lineFeed = 0x0a;
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const isOpening = (byte: number): boolean => byte === 0x5b || byte === 0x7b;
const isClosing = (byte: number): boolean => byte === 0x5d || byte === 0x7d;

/** Limits of one message: parsing takes many times its bytes in memory, for each value and level of nesting. */
export const messageLimits = { bytes: 4 * 1024 * 1024, depth: 100, values: 100_000 } as const;
/** See `messageLimits`. */
export type MessageLimits = { readonly [limit in keyof typeof messageLimits]: number };

/** A harness exceeded a limit of the protocol; the message is the end of a sentence. */
export class ProtocolViolation extends Error {}

/**
 * Splits a stream of bytes at line feeds, and buffers at most one line of the maximum length.
 * @returns a function that takes the next bytes, and yields each line that they complete
 */
export function createLines(limits: MessageLimits = messageLimits) {
  let pieces: Uint8Array[] = [];
  let length = 0;

  /** @throws ProtocolViolation if the line is too long */
  function keep(piece: Uint8Array): void {
    length += piece.length;
    if (length > limits.bytes)
      throw new ProtocolViolation(
        `a line of more than ${limits.bytes / 1024 / 1024} MiB, which is not a message of the protocol`,
      );
    if (piece.length > 0) pieces.push(piece);
  }

  return function* linesOf(bytes: Uint8Array): Generator<Uint8Array> {
    for (let from = 0; from < bytes.length;) {
      const end = bytes.indexOf(lineFeed, from);
      keep(bytes.subarray(from, end === -1 ? bytes.length : end));
      if (end === -1) return;
      const line = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, length);
      pieces = [];
      length = 0;
      from = end + 1;
      if (line !== undefined && line.length > 0) yield line;
    }
  };
}

/**
 * Checks JSON's nesting and number of values without parsing it. Accepts invalid JSON: the parser rejects it.
 * @throws ProtocolViolation beyond a limit
 */
export function requireShape(json: Uint8Array, limits: MessageLimits = messageLimits): void {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at] ?? 0;
    if (byte === quote) at = endOfString(json, at);
    else if (byte === comma) values += 1;
    else if (isOpening(byte)) {
      depth += 1;
      values += 1;
    } else if (isClosing(byte)) depth -= 1;
    if (depth > limits.depth) throw new ProtocolViolation(`a message nested more than ${limits.depth} levels deep`);
    if (values > limits.values)
      throw new ProtocolViolation(`a message of more than ${limits.values.toLocaleString("en")} values`);
  }
}

/** @returns index of the string's closing quote, or the text's length if there is none */
function endOfString(json: Uint8Array, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === quote) return at;
    if (byte === backslash) at += 1;
  }
  return json.length;
}
