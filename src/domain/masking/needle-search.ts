/** Something to look for, as bytes. */
export interface Needle<Owner> {
  readonly bytes: Uint8Array;
  /** What of the caller's it belongs to. */
  readonly owner: Owner;
}

/** A needle of `length` bytes found: from `start` up to, and not including, `end`, which is less if it is long and goes on otherwise. */
export type OnMatch<Owner> = (start: number, end: number, owner: Owner, length: number) => void;

export interface NeedleSearch<Owner> {
  /**
   * Calls `onMatch` for all that needles cover of the text, in order; not for what lies within what it was called for before.
   * @returns where the earliest needle may begin of which the text has only a beginning; the text's length if none does
   */
  find(text: Uint8Array, onMatch: OnMatch<Owner>): number;
}

/** Bytes of each needle that decide how far the search may skip: no needle may be shorter. */
export const windowLength = 8;
/** Bytes at the end of the window by which it skips. */
const blockLength = 4;
/** A longer needle counts as found once so much of it is there, and as long as it goes on: so no byte costs more than this. */
const comparedLength = 1_024;

interface Index<Owner> {
  /** By the hash of four bytes: how far the window may move if it ends with them. */
  readonly shifts: Uint8Array;
  readonly shiftMask: number;
  /** By the hash of a window: the needles that begin with it, the longest first. */
  readonly byWindow: ReadonlyMap<number, readonly Needle<Owner>[]>;
  /** Hashes of the beginnings that are shorter than a window. */
  readonly beginnings: ReadonlySet<number>;
}

/**
 * Looks for many needles in one pass that skips what can't be the beginning of one (Wu and Manber, A fast algorithm for
 * multi-pattern searching, 1994). Its time is linear in the text, whatever the text is: at most 1,024 bytes of each needle
 * that begins with the same eight are compared at one place.
 * @param needles each at least eight bytes long
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

/** Where the text ends with less than a window of a needle's beginning. */
function beginningAtEnd({ beginnings }: Pick<Index<unknown>, "beginnings">, text: Uint8Array): number {
  for (let start = Math.max(0, text.length - windowLength + 1); start < text.length; start += 1) {
    if (beginnings.has(hash(text, start, text.length - start))) return start;
  }
  return text.length;
}

/** How many bytes from there on are the same, up to `to` of the needle's. */
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
