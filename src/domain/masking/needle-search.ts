/** A byte sequence to search for. */
export interface Needle<Owner> {
  readonly bytes: Uint8Array;
  /** The caller's value for this needle, passed to `OnMatch`. */
  readonly owner: Owner;
}

/**
 * Called with a match from `start` up to, and not including, `end`, of a needle of `length` bytes. The match is shorter
 * than the needle if a long needle and the text differ after `comparedLength` bytes, or the text ends.
 */
export type OnMatch<Owner> = (start: number, end: number, owner: Owner, length: number) => void;

/** A search for a fixed set of needles. */
export interface NeedleSearch<Owner> {
  /**
   * Calls `onMatch` for all bytes of the text that needles cover, in order, but not for a match that lies within an
   * earlier one.
   * @returns start of the earliest match that the text's end cuts off; the text's length if there is none
   */
  find(text: Uint8Array, onMatch: OnMatch<Owner>): number;
}

/** Bytes at the beginning of each needle that the search skips by; no needle may be shorter. */
export const windowLength = 8;
/** Bytes at the end of the window whose hash says how far the search may skip. */
const blockLength = 4;
/**
 * A longer needle counts as found after this many equal bytes, for as long as the text equals it. This bounds the time
 * per byte.
 */
const comparedLength = 1_024;

interface Index<Owner> {
  /** By the hash of a block: how far the window may move if it ends with the block. */
  readonly shifts: Uint8Array;
  readonly shiftMask: number;
  /** By the hash of a window: the needles that begin with it, the longest first. */
  readonly byWindow: ReadonlyMap<number, readonly Needle<Owner>[]>;
  /** Hashes of the needles' beginnings that are shorter than a window. */
  readonly beginnings: ReadonlySet<number>;
}

/**
 * Searches for many needles in one pass, skipping positions at which none can begin (Wu and Manber, A fast algorithm for
 * multi-pattern searching, 1994). The time is linear in any text: at one position at most 1,024 bytes are compared of
 * each needle that begins with the same eight.
 * @param needles each at least `windowLength` bytes long
 */
export function createNeedleSearch<Owner>(needles: readonly Needle<Owner>[]): NeedleSearch<Owner> {
  const index = indexOf(needles);
  return {
    find: (text, onMatch) => Math.min(findWhole(index, text, onMatch), beginningAtEnd(index, text)),
  };
}

function indexOf<Owner>(needles: readonly Needle<Owner>[]): Index<Owner> {
  const bits = needles.length > 256 ? 20 : 15;
  const shiftMask = (1 << bits) - 1;
  const shifts = new Uint8Array(1 << bits).fill(windowLength - blockLength + 1);
  const byWindow = new Map<number, Needle<Owner>[]>();
  const beginnings = new Set<number>();
  for (const needle of needles) {
    const { bytes } = needle;
    for (let last = blockLength - 1; last < windowLength; last += 1) {
      const block = blockHash(bytes, last, shiftMask);
      shifts[block] = Math.min(shifts[block] ?? 0, windowLength - 1 - last);
    }
    for (let length = 1; length < windowLength; length += 1) beginnings.add(hash(bytes, 0, length));
    const window = hash(bytes, 0, windowLength);
    const same = byWindow.get(window);
    if (same === undefined) byWindow.set(window, [needle]);
    else same.push(needle);
  }
  for (const same of byWindow.values()) same.sort((a, b) => b.bytes.length - a.bytes.length);
  return { shifts, shiftMask, byWindow, beginnings };
}

function findWhole<Owner>(
  { shifts, shiftMask, byWindow }: Index<Owner>,
  text: Uint8Array,
  onMatch: OnMatch<Owner>,
): number {
  let begun = text.length;
  let foundTo = 0;
  let last = windowLength - 1;
  while (last < text.length) {
    const shift = shifts[blockHash(text, last, shiftMask)] ?? 1;
    if (shift > 0) {
      last += shift;
      continue;
    }
    const start = last - windowLength + 1;
    for (const { bytes, owner } of byWindow.get(hash(text, start, windowLength)) ?? []) {
      const most = Math.min(bytes.length, comparedLength);
      if (start + most <= foundTo) continue;
      const same = sameLength(text, start, bytes, 0, most);
      if (same === most) {
        const end = start + most + sameLength(text, start + most, bytes, most, bytes.length);
        foundTo = Math.max(foundTo, end);
        if (end === text.length && end - start < bytes.length) begun = Math.min(begun, start);
        onMatch(start, end, owner, bytes.length);
      } else if (start + same === text.length) {
        begun = Math.min(begun, start);
      }
    }
    last += 1;
  }
  return begun;
}

/** Start of a needle's beginning, shorter than a window, at the end of the text; the text's length if there is none. */
function beginningAtEnd({ beginnings }: Pick<Index<unknown>, "beginnings">, text: Uint8Array): number {
  for (let start = Math.max(0, text.length - windowLength + 1); start < text.length; start += 1) {
    if (beginnings.has(hash(text, start, text.length - start))) return start;
  }
  return text.length;
}

/** Number of equal bytes from `at` in the text and `from` in the needle, up to `to` in the needle. */
function sameLength(text: Uint8Array, at: number, needle: Uint8Array, from: number, to: number): number {
  const most = Math.min(to - from, text.length - at);
  let length = 0;
  while (length < most && text[at + length] === needle[from + length]) length += 1;
  return Math.max(0, length);
}

function blockHash(bytes: Uint8Array, last: number, mask: number): number {
  const before = ((bytes[last - 3] ?? 0) << 8) | (bytes[last - 2] ?? 0);
  const block = (before << 16) | ((bytes[last - 1] ?? 0) << 8) | (bytes[last] ?? 0);
  return (Math.imul(block, 0x9e37_79b1) >>> 12) & mask;
}

function hash(bytes: Uint8Array, start: number, length: number): number {
  let value = length;
  for (let at = start; at < start + length; at += 1) value = Math.imul(value ^ (bytes[at] ?? 0), 0x0100_0193);
  return value;
}
