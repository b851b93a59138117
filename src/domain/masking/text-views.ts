/** A text after one way of decoding it. */
export interface TextView {
  readonly bytes: Uint8Array;
  /** Positions of its bytes in the text; null if the view is the text itself. */
  readonly places: PositionMap | null;
  /** Position in the text of an escape sequence that the text's end cuts off; absent if there is none. */
  readonly cutEscape?: number;
}

/** Maps the bytes of a view to positions in its text, as runs of bytes that are adjacent in both. */
export class PositionMap {
  /** Of each run, the index of its first byte in the view. */
  #from = new Uint32Array(64);
  /** Of each run, the position of its first byte in the text. */
  #at = new Uint32Array(64);
  /** Of each run that is one escape sequence, its length in the text; 0 for all others. */
  #escape = new Uint8Array(64);
  #count = 0;

  /**
   * Adds a run.
   * @param from index of its first byte in the view, above those of all earlier runs
   * @param at position in the text
   * @param escape length of the escape sequence in the text; 0: the run is not one
   */
  add(from: number, at: number, escape = 0): void {
    if (this.#count === this.#from.length) {
      this.#from = grown(this.#from, new Uint32Array(this.#count * 2));
      this.#at = grown(this.#at, new Uint32Array(this.#count * 2));
      this.#escape = grown(this.#escape, new Uint8Array(this.#count * 2));
    }
    this.#from[this.#count] = from;
    this.#at[this.#count] = at;
    this.#escape[this.#count] = escape;
    this.#count += 1;
  }

  /** Adds the runs of another view for its bytes `from` to `to`, which this view contains from `into` on. */
  addPart(of: PositionMap, from: number, to: number, into: number): void {
    for (let run = of.#runOf(from); run < of.#count; run += 1) {
      const begin = Math.max(from, of.#from[run] ?? 0);
      if (begin >= to) return;
      const escape = of.#escape[run] ?? 0;
      const at = (of.#at[run] ?? 0) + (escape > 0 ? 0 : begin - (of.#from[run] ?? 0));
      this.add(into + begin - from, at, escape);
    }
  }

  /** Position in the text at which the view's byte begins. */
  startOf(byte: number): number {
    const run = this.#runOf(byte);
    return (this.#at[run] ?? 0) + ((this.#escape[run] ?? 0) > 0 ? 0 : byte - (this.#from[run] ?? 0));
  }

  /** Position in the text after the view's byte. */
  endOf(byte: number): number {
    const run = this.#runOf(byte);
    const escape = this.#escape[run] ?? 0;
    return (this.#at[run] ?? 0) + (escape > 0 ? escape : byte - (this.#from[run] ?? 0) + 1);
  }

  /** The ranges of the text that have the view's bytes `from` to `to`, one for each run. */
  *pieces(from: number, to: number): Generator<{ readonly start: number; readonly end: number }> {
    for (let run = this.#runOf(from); run < this.#count; run += 1) {
      const first = this.#from[run] ?? 0;
      const begin = Math.max(from, first);
      if (begin >= to) return;
      const at = this.#at[run] ?? 0;
      const escape = this.#escape[run] ?? 0;
      const next = run + 1 < this.#count ? Math.min(to, this.#from[run + 1] ?? to) : to;
      yield escape > 0 ? { start: at, end: at + escape } : { start: at + begin - first, end: at + next - first };
    }
  }

  /** Index of the last run that begins at the byte or before it. */
  #runOf(byte: number): number {
    let low = 0;
    let high = this.#count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#from[middle] ?? 0) <= byte) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

function grown<T extends Uint8Array | Uint32Array>(before: T, after: T): T {
  after.set(before);
  return after;
}

const newline = 10;
const carriageReturn = 13;
const backslash = 92;
const percent = 37;

/**
 * The ways in which a text can carry a value: as it is; percent-encoded; with the escapes of JSON; with NUL between the
 * characters, as ASCII in UTF-16; and each of these broken into lines that have a diff's sign, indentation, a line
 * number or a program's quotes around them. The number of passes over the text is fixed.
 */
export function* viewsOf(text: Uint8Array): Generator<TextView> {
  const plain: TextView = { bytes: text, places: null };
  yield* linesOf(plain, lineMarks);
  if (text.includes(percent)) yield* linesOf(decoded(text, percent, percentEscape), [nothing]);
  if (text.includes(backslash)) yield* linesOf(decoded(text, backslash, jsonEscape), [nothing]);
  if (text.includes(0)) yield* linesOf(withoutNul(plain), lineMarks);
}

/**
 * The view itself, and the view without its line breaks, once for each way of removing line marks that gives another
 * text.
 */
function* linesOf(view: TextView, marks: readonly LineMarks[]): Generator<TextView> {
  yield view;
  const lines = linesIn(view.bytes);
  // A single line without its marks is another text too: a later chunk may continue it.
  const cuts: Lines[] = lines.count < 2 ? [lines] : [];
  for (const mark of marks) {
    const cut = withoutMarks(view.bytes, lines, mark);
    if (cuts.some((other) => isSame(other, cut))) continue;
    cuts.push(cut);
    yield joined(view, cut);
  }
}

/** How to remove prefixes and suffixes of a text's lines that are not part of them. */
interface LineMarks {
  /** @returns where the line's own text begins */
  readonly skip: (bytes: Uint8Array, from: number) => number;
  /** @returns where the line's own text ends, not before `from` */
  readonly trim: (bytes: Uint8Array, from: number, to: number) => number;
}

/** A lookup table with 1 for each of the bytes: faster than a set. */
function table(bytes: readonly number[]): Uint8Array {
  const marked = new Uint8Array(256);
  for (const byte of bytes) marked[byte] = 1;
  return marked;
}

const isBlank = (byte: number | undefined): boolean => byte === 32 || byte === 9;
const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 48 && byte <= 57;
/** `+`, `-`, `>`, `|`, `#`, `*`: of diffs, quotations, tables and comments. */
const signs = table([43, 45, 62, 124, 35, 42]);
/** Characters around a string in a program's source: quotes, joining operators, brackets. */
const quotes = table([43, 45, 62, 124, 35, 42, 32, 9, 34, 39, 96, 92, 44, 59, 40, 41, 46, 47]);
/** After a line's number: tab, blank, `:`, `-`, `|`, `.`, `)`. */
const afterNumber = table([9, 32, 58, 45, 124, 46, 41]);
/** Maximum bytes before a line number: a file's name, as `grep` prints it. */
const nameLimit = 256;

function skipBlank(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isBlank(bytes[at])) at += 1;
  return at;
}

function skipSign(bytes: Uint8Array, from: number): number {
  return signs[bytes[from] ?? 0] === 1 ? from + 1 : from;
}

/** Skips a line number with the character after it. @returns `from` if there is none */
function skipNumber(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isDigit(bytes[at])) at += 1;
  if (at === from) return from;
  // The text may end within the number, and a later chunk continue it.
  return at === bytes.length ? at : afterNumber[bytes[at] ?? 0] === 1 ? at + 1 : from;
}

/** Skips a file's name with a line number, as in `path/to/file:12:`. @returns `from` if there is none */
function skipNamedNumber(bytes: Uint8Array, from: number): number {
  for (let at = from; at < Math.min(bytes.length, from + nameLimit); at += 1) {
    const byte = bytes[at];
    if (byte === newline || byte === carriageReturn) return from;
    if ((byte !== 58 && byte !== 45) || !isDigit(bytes[at + 1])) continue;
    const after = skipNumber(bytes, at + 1);
    if (after > at + 1) return after;
  }
  return from;
}

const trimNothing = (_bytes: Uint8Array, _from: number, to: number): number => to;

/** Trims all bytes that a table marks. */
function trimmer(marked: Uint8Array): LineMarks["trim"] {
  return (bytes, from, to) => {
    let end = to;
    while (end > from && marked[bytes[end - 1] ?? 0] === 1) end -= 1;
    return end;
  };
}

/** Around a string of a program that is joined to the next: `"…" +`, `'…',`, `"…" \`. */
const stringMarks: LineMarks = {
  skip(bytes, from) {
    const at = skipBlank(bytes, skipSign(bytes, skipBlank(bytes, from)));
    return isQuote[bytes[at] ?? 0] === 1 ? at + 1 : at;
  },
  trim(bytes, from, to) {
    const end = trimJoins(bytes, from, to);
    return end > from && isQuote[bytes[end - 1] ?? 0] === 1 ? end - 1 : trimBlanks(bytes, from, to);
  },
};

const isQuote = table([34, 39, 96]);
const trimBlanks = trimmer(table([32, 9]));
const trimJoins = trimmer(table([32, 9, 43, 44, 46, 59, 92, 40, 41]));

const nothing: LineMarks = { skip: (_bytes, from) => from, trim: trimNothing };
const skipDiff = (bytes: Uint8Array, from: number): number => skipBlank(bytes, skipSign(bytes, from));
const skipNumbered = (bytes: Uint8Array, from: number): number => {
  const begin = skipDiff(bytes, from);
  const after = skipNumber(bytes, begin);
  return skipBlank(bytes, after > begin ? after : skipNamedNumber(bytes, begin));
};
/**
 * A line of base64 may itself begin with a plus sign: so each way comes with and without a further sign before the
 * text.
 */
const lineMarks: readonly LineMarks[] = [
  nothing,
  { skip: skipDiff, trim: trimBlanks },
  { skip: (bytes, from) => skipDiff(bytes, skipDiff(bytes, from)), trim: trimBlanks },
  { skip: skipNumbered, trim: trimBlanks },
  { skip: (bytes, from) => skipDiff(bytes, skipNumbered(bytes, from)), trim: trimBlanks },
  stringMarks,
  {
    skip: (bytes, from) => {
      let at = from;
      while (quotes[bytes[at] ?? 0] === 1) at += 1;
      return at;
    },
    trim: trimmer(quotes),
  },
];

/** Ranges of the lines of a text, without line breaks. */
interface Lines {
  readonly count: number;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/** Splits a text into lines. A line ends with LF, CR or CRLF. */
function linesIn(bytes: Uint8Array): Lines {
  const breaks: number[] = [];
  const hasReturns = bytes.includes(carriageReturn);
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) breaks.push(at);
  if (hasReturns) {
    for (let at = bytes.indexOf(carriageReturn); at !== -1; at = bytes.indexOf(carriageReturn, at + 1)) {
      if (bytes[at + 1] !== newline) breaks.push(at);
    }
    breaks.sort((a, b) => a - b);
  }
  const count = breaks.length + 1;
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  for (const [line, at] of breaks.entries()) {
    ends[line] = hasReturns && at > 0 && bytes[at] === newline && bytes[at - 1] === carriageReturn ? at - 1 : at;
    starts[line + 1] = at + 1;
  }
  ends[count - 1] = bytes.length;
  return { count, starts, ends };
}

/** The lines without their marks. The first line keeps its beginning, because the text may begin within a line. */
function withoutMarks(bytes: Uint8Array, { count, starts, ends }: Lines, { skip, trim }: LineMarks): Lines {
  const from = starts.slice();
  const to = ends.slice();
  for (let line = 0; line < count; line += 1) {
    const start = line === 0 ? 0 : skip(bytes, starts[line] ?? 0);
    from[line] = start;
    to[line] = trim(bytes, start, Math.max(start, ends[line] ?? 0));
  }
  return { count, starts: from, ends: to };
}

function isSame(one: Lines, other: Lines): boolean {
  for (let line = 0; line < one.count; line += 1) {
    if (one.starts[line] !== other.starts[line] || one.ends[line] !== other.ends[line]) return false;
  }
  return true;
}

/** From this length on, copying by `set` is faster than a loop. */
const longLine = 64;

function joined({ bytes, places }: TextView, { count, starts, ends }: Lines): TextView {
  const kept = new Uint8Array(bytes.length);
  const keptPositions = new PositionMap();
  let length = 0;
  for (let line = 0; line < count; line += 1) {
    const from = starts[line] ?? 0;
    const to = ends[line] ?? 0;
    if (from === to) continue;
    if (places === null) keptPositions.add(length, from);
    else keptPositions.addPart(places, from, to, length);
    if (to - from >= longLine) kept.set(bytes.subarray(from, to), length);
    else for (let at = from; at < to; at += 1) kept[length + at - from] = bytes[at] ?? 0;
    length += to - from;
  }
  return { bytes: kept.subarray(0, length), places: keptPositions };
}

function withoutNul(view: TextView): TextView {
  const { bytes } = view;
  const kept = new Uint8Array(bytes.length);
  const places = new PositionMap();
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === 0) continue;
    if (at === 0 || bytes[at - 1] === 0) places.add(length, at);
    kept[length] = byte;
    length += 1;
  }
  return { bytes: kept.subarray(0, length), places };
}

/**
 * Bytes that an escape sequence stands for, and its length; null if the text ends within it, undefined if there is
 * none.
 */
type Escape = { readonly stands: readonly number[]; readonly length: number } | null | undefined;

function decoded(text: Uint8Array, mark: number, escapeAt: (bytes: Uint8Array, at: number) => Escape): TextView {
  const kept = new Uint8Array(text.length);
  const places = new PositionMap();
  let length = 0;
  const take = (from: number, to: number): void => {
    if (from >= to) return;
    places.add(length, from);
    kept.set(text.subarray(from, to), length);
    length += to - from;
  };
  let taken = 0;
  let at = text.indexOf(mark);
  while (at !== -1) {
    const escape = escapeAt(text, at);
    if (escape === undefined) {
      at = text.indexOf(mark, at + 1);
      continue;
    }
    take(taken, at);
    taken = escape === null ? text.length : at + escape.length;
    if (escape === null) break;
    places.add(length, at, escape.length);
    kept.set(escape.stands, length);
    length += escape.stands.length;
    at = text.indexOf(mark, taken);
  }
  take(taken, text.length);
  const view = { bytes: kept.subarray(0, length), places };
  return at === -1 ? view : { ...view, cutEscape: at };
}

function percentEscape(bytes: Uint8Array, at: number): Escape {
  const value = hexadecimal(bytes, at + 1, 2);
  return value === null ? null : value === undefined ? undefined : { stands: [value], length: 3 };
}

/** Bytes of the escapes of one character: `"`, `'`, `/` and `\` stand for themselves; then b, f, n, r, t. */
const shortEscapes = new Map([34, 39, 47, 92].map((byte) => [byte, [byte]]));
for (const [letter, stands] of [
  [98, 8],
  [102, 12],
  [110, newline],
  [114, carriageReturn],
  [116, 9],
] as const) {
  shortEscapes.set(letter, [stands]);
}

/** @returns the second half of a pair (RFC 8259, section 7); null if the text ends before that is known, undefined if it is none */
function lowSurrogate(bytes: Uint8Array, at: number): number | null | undefined {
  for (const [index, expected] of [backslash, 117].entries()) {
    const byte = bytes[at + index];
    if (byte === undefined) return null;
    if (byte !== expected) return undefined;
  }
  const unit = hexadecimal(bytes, at + 2, 4);
  return unit === null || unit === undefined || (unit >= 0xdc00 && unit <= 0xdfff) ? unit : undefined;
}

function jsonEscape(bytes: Uint8Array, at: number): Escape {
  const letter = bytes[at + 1];
  if (letter === undefined) return null;
  const short = shortEscapes.get(letter);
  if (short !== undefined) return { stands: short, length: 2 };
  if (letter !== 117) return undefined;
  const unit = hexadecimal(bytes, at + 2, 4);
  if (unit === null || unit === undefined) return unit;
  if (unit < 0xd800 || unit > 0xdbff) return { stands: utf8(unit), length: 6 };
  const low = lowSurrogate(bytes, at + 6);
  if (low === null) return null;
  if (low === undefined) return { stands: utf8(unit), length: 6 };
  return { stands: utf8(0x1_0000 + ((unit & 0x3ff) << 10) + (low & 0x3ff)), length: 12 };
}

function utf8(point: number): readonly number[] {
  if (point < 0x80) return [point];
  if (point < 0x800) return [0xc0 | (point >> 6), 0x80 | (point & 63)];
  if (point < 0x1_0000) return [0xe0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63)];
  return [0xf0 | (point >> 18), 0x80 | ((point >> 12) & 63), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63)];
}

/** Null if the text ends before `digits` digits, undefined if they are not hexadecimal. */
function hexadecimal(bytes: Uint8Array, at: number, digits: number): number | null | undefined {
  let value = 0;
  for (let index = 0; index < digits; index += 1) {
    const byte = bytes[at + index];
    if (byte === undefined) return null;
    const digit = isDigit(byte) ? byte - 48 : (byte | 32) >= 97 && (byte | 32) <= 102 ? (byte | 32) - 87 : -1;
    if (digit < 0) return undefined;
    value = value * 16 + digit;
  }
  return value;
}
