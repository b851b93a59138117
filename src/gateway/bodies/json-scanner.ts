/**
 * Scans a JSON document (RFC 8259) byte by byte as it arrives, without keeping it: an agent or a model's server may send
 * tens of megabytes, deep or wide, for which `JSON.parse` takes sixty times the memory and blocks the event loop.
 * Streaming parsers create a value for each string and number (@streamparser/json 0.0.26: 6 to 50 MB a second, with
 * pauses of up to 330 ms in a chunk of 64 KiB).
 */

/** The text is not JSON, or not parsed alike by all programs. The message is the end of a sentence: `… is not JSON`. */
export class MalformedJsonError extends Error {
  override readonly name = "MalformedJsonError";
}

/** A string, number or literal (`true`, `false`, `null`) in a followed container. */
export interface Scalar {
  readonly kind: "string" | "number" | "literal";
  /** Decoded; null if it is longer than `longestKept`. */
  readonly text: string | null;
  /** Its first bytes as they are written, without the quotation mark. */
  readonly start: string;
  /** Offsets in the document of its first byte, and of the byte after it. */
  readonly from: number;
  readonly to: number;
  /** Its weight, as `weight()` counts it. */
  readonly weight: number;
}

/** Gets the parts of a document as they are read. Its errors end the scan. */
export interface ScanListener {
  /** A key of a followed object. @param name null if it is longer than `longestKept` */
  key(name: string | null): void;
  /**
   * An object or list begins.
   * @param at its offset in the document
   * @returns whether to follow it: of others, neither contents nor end are reported
   */
  open(kind: "object" | "list", at: number): boolean;
  /** The innermost followed object or list ends. */
  close(): void;
  scalar(value: Scalar): void;
}

/** Scans one document. */
export interface JsonScanner {
  /** Scans the next bytes. @throws MalformedJsonError, and the listener's errors */
  push(chunk: Uint8Array): void;
  /** @throws MalformedJsonError if the document is incomplete */
  end(): void;
  /**
   * Maximum number of tokens of the text so far, in halves of a token: letters, digits and spaces make at least two
   * bytes a token even in random text, and any other byte can be a token.
   */
  weight(): number;
}

/** Maximum levels of nesting: tools' schemas have ten or twenty. */
const deepest = 64;
/** Bytes kept of a key or scalar: names, types, the beginning of an address. */
const longestKept = 600;
/** Programs differ in how they read longer numbers. */
const longestNumber = 64;

const weights = new Uint8Array(256).fill(2);
for (const byte of Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ")) weights[byte] = 1;
/** Weights inside strings; 0 for bytes that end a string or need handling. */
const plain = weights.map((weight, byte) =>
  byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c ? 0 : weight,
);

/** The tokens that may come next. */
const [VALUE, VALUE_OR_END, KEY, KEY_OR_END, COLON, COMMA_OR_END, END] = [0, 1, 2, 3, 4, 5, 6] as const;
/** The token that the next byte is part of. */
const [STRING, ESCAPE, HEX, UTF8, NUMBER, LITERAL] = [7, 8, 9, 10, 11, 12] as const;
const quote = 0x22;
const backslash = 0x5c;

/** Creates a scanner. @param listener gets what is followed: the outermost value always is */
export function createJsonScanner(listener: ScanListener): JsonScanner {
  let state: number = VALUE;
  /** 1 for each level that is an object. */
  const objects = new Uint8Array(deepest);
  let depth = 0;
  /** Number of followed levels, from the outermost. */
  let followed = 0;
  /** Bytes in earlier chunks. */
  let before = 0;
  let weight = 0;
  // Of the string, number or literal that is being read.
  let kept = "";
  let from = 0;
  let weightBefore = 0;
  let isKey = false;
  let rest = 0;
  let lowest = 0x80;
  let highest = 0xbf;
  let literal = "";
  let number = 0;

  function malformed(at: number): never {
    throw new MalformedJsonError(`byte ${at + 1}`);
  }

  function open(isObject: boolean, at: number): void {
    if (depth === deepest) throw new MalformedJsonError(`more than ${deepest} levels deep`);
    const isTold = depth === followed;
    objects[depth] = isObject ? 1 : 0;
    depth += 1;
    if (isTold && listener.open(isObject ? "object" : "list", at)) followed += 1;
    state = isObject ? KEY_OR_END : VALUE_OR_END;
  }

  function close(): void {
    if (depth === followed) {
      followed -= 1;
      listener.close();
    }
    depth -= 1;
    state = depth === 0 ? END : COMMA_OR_END;
  }

  function begin(next: number, at: number, lead: string): void {
    state = next;
    kept = lead;
    from = at;
    weightBefore = weight;
    isKey = false;
  }

  /** @param to offset after the value's last byte */
  function endScalar(kind: Scalar["kind"], to: number): void {
    state = isKey ? COLON : depth === 0 ? END : COMMA_OR_END;
    if (depth !== followed) return;
    const text = kept.length > longestKept ? null : kind === "string" ? decode(kept) : kept;
    if (isKey) listener.key(text);
    else listener.scalar({ kind, text, start: kept, from, to, weight: weight - weightBefore });
  }

  function structural(byte: number, at: number): void {
    if (state === VALUE || state === VALUE_OR_END) {
      if (byte === quote) return begin(STRING, at, "");
      if (byte === 0x7b) return open(true, at);
      if (byte === 0x5b) return open(false, at);
      if (byte === 0x5d && state === VALUE_OR_END) return close();
      const first = numberStep(0, byte);
      if (first !== 0) {
        begin(NUMBER, at, String.fromCharCode(byte));
        number = first;
        return undefined;
      }
      literal = byte === 0x74 ? "true" : byte === 0x66 ? "false" : byte === 0x6e ? "null" : malformed(at);
      return begin(LITERAL, at, literal[0] ?? "");
    }
    if (state === KEY || state === KEY_OR_END) {
      if (byte === 0x7d && state === KEY_OR_END) return close();
      if (byte !== quote) return malformed(at);
      begin(STRING, at, "");
      isKey = true;
      return undefined;
    }
    if (state === COLON && byte === 0x3a) {
      state = VALUE;
      return undefined;
    }
    if (state !== COMMA_OR_END) return malformed(at);
    const isObject = objects[depth - 1] === 1;
    if (byte === 0x2c) state = isObject ? KEY : VALUE;
    else if (byte === (isObject ? 0x7d : 0x5d)) close();
    else malformed(at);
    return undefined;
  }

  /** Skips bytes of a string that need no handling. @returns index of the first other byte */
  function plainText(chunk: Uint8Array, start: number): number {
    let at = start;
    let sum = 0;
    for (; at < chunk.length; at += 1) {
      const one = plain[chunk[at] ?? 0] ?? 0;
      if (one === 0) break;
      sum += one;
    }
    weight += sum;
    keep(chunk, start, at);
    return at;
  }

  function keep(chunk: Uint8Array, start: number, to: number): void {
    // One byte more than the limit shows that there was more.
    if (depth !== followed || kept.length > longestKept) return;
    const last = Math.min(to, start + longestKept + 1 - kept.length);
    for (let at = start; at < last; at += 1) kept += String.fromCharCode(chunk[at] ?? 0);
  }

  function inString(byte: number, at: number): void {
    if (byte === quote) return endScalar("string", before + at + 1);
    if (byte === backslash) state = ESCAPE;
    else if (byte < 0x20) malformed(before + at);
    else if (byte > 0x7f) {
      state = UTF8;
      rest = sequences.rest[byte] ?? 0;
      if (rest === 0) malformed(before + at);
      lowest = sequences.lowest[byte] ?? 0;
      highest = sequences.highest[byte] ?? 0;
    }
    return undefined;
  }

  /** A byte in the middle of an escape or of a multi-byte character. */
  function continued(byte: number, at: number): void {
    if (state === UTF8) {
      if (byte < lowest || byte > highest) malformed(before + at);
      lowest = 0x80;
      highest = 0xbf;
      rest -= 1;
      if (rest === 0) state = STRING;
    } else if (state === ESCAPE) {
      if (byte === 0x75) {
        state = HEX;
        rest = 4;
      } else if (escapes[byte] === 1) state = STRING;
      else malformed(before + at);
    } else {
      if (hexadecimal[byte] !== 1) malformed(before + at);
      rest -= 1;
      if (rest === 0) state = STRING;
    }
  }

  /** @returns whether the byte belongs to the value: if not, the value has ended, and the byte is read again */
  function inNumber(byte: number, at: number): boolean {
    const next = numberStep(number, byte);
    if (next === 0) {
      endNumber(before + at);
      return false;
    }
    number = next;
    kept += String.fromCharCode(byte);
    if (kept.length > longestNumber) throw new MalformedJsonError(`a number of more than ${longestNumber} characters`);
    return true;
  }

  function endNumber(to: number): void {
    if (!numberEnds.has(number)) malformed(to);
    endScalar("number", to);
  }

  function inLiteral(byte: number, at: number): void {
    if (literal.charCodeAt(kept.length) !== byte) malformed(before + at);
    kept += String.fromCharCode(byte);
    if (kept.length === literal.length) endScalar("literal", before + at + 1);
  }

  return {
    weight: () => weight,
    push(chunk) {
      for (let at = 0; at < chunk.length; at += 1) {
        if (state === STRING) {
          at = plainText(chunk, at);
          if (at === chunk.length) break;
        }
        const byte = chunk[at] ?? 0;
        if (state === NUMBER && inNumber(byte, at)) weight += 1;
        else if (state < STRING) {
          if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) weight += 1;
          else {
            weight += 2;
            structural(byte, before + at);
          }
        } else {
          weight += weights[byte] ?? 2;
          if (state === LITERAL) inLiteral(byte, at);
          else {
            keep(chunk, at, byte === quote && state === STRING ? at : at + 1);
            if (state === STRING) inString(byte, at);
            else continued(byte, at);
          }
        }
      }
      before += chunk.length;
    },
    end() {
      // Only the document's end can end an outermost number.
      if (state === NUMBER && depth === 0) endNumber(before);
      if (state !== END) throw new MalformedJsonError("its end is missing");
    },
  };
}

const escapes = marked('"\\/bfnrt');
const hexadecimal = marked("0123456789abcdefABCDEF");

function marked(characters: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of Buffer.from(characters)) table[byte] = 1;
  return table;
}

/**
 * By the first byte of a UTF-8 character: number of bytes that follow, and the range of the next (RFC 3629, section 4).
 */
const sequences = {
  rest: Uint8Array.from({ length: 256 }, (_, first) =>
    first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3,
  ),
  lowest: new Uint8Array(256).fill(0x80).with(0xe0, 0xa0).with(0xf0, 0x90),
  highest: new Uint8Array(256).fill(0xbf).with(0xed, 0x9f).with(0xf4, 0x8f),
};

/** States in which a number may end: after a zero, integer digits, decimals, digits of the exponent. */
const numberEnds = new Set([2, 3, 5, 8]);

/**
 * State of the number's grammar after one more byte, 0 if it does not belong to the number.
 * @param place 0 at the beginning
 */
function numberStep(place: number, byte: number): number {
  const isDigit = byte >= 0x30 && byte <= 0x39;
  const isExponent = byte === 0x65 || byte === 0x45;
  switch (place) {
    case 0:
      return byte === 0x2d ? 1 : byte === 0x30 ? 2 : isDigit ? 3 : 0;
    case 1:
      return byte === 0x30 ? 2 : isDigit ? 3 : 0;
    case 2:
      return byte === 0x2e ? 4 : isExponent ? 6 : 0;
    case 3:
      return isDigit ? 3 : byte === 0x2e ? 4 : isExponent ? 6 : 0;
    case 4:
      return isDigit ? 5 : 0;
    case 5:
      return isDigit ? 5 : isExponent ? 6 : 0;
    case 6:
      return isDigit ? 8 : byte === 0x2b || byte === 0x2d ? 7 : 0;
    default:
      return isDigit ? 8 : 0;
  }
}

/** Decodes a string's escapes: it is short and known to be well-formed. */
function decode(bytes: string): string {
  return JSON.parse(`"${Buffer.from(bytes, "latin1").toString("utf8")}"`) as string;
}
