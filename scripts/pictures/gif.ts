import { choosePalette, nearestIn, paletteBytes } from "./palette.ts";
import type { Picture } from "./png.ts";

/** A picture of a film, and how long it is shown. */
export interface Frame {
  readonly picture: Picture;
  readonly ms: number;
}

/** Stands for the pixel that is there already. */
const unchanged = 255;

/**
 * Writes frames of one size as a GIF that begins again at its end (https://www.w3.org/Graphics/GIF/spec-gif89a.txt). A frame has what
 * differs from the one before, and all share 255 colours.
 */
export function encodeGif(frames: readonly Frame[]): Buffer {
  const [first] = frames;
  if (first === undefined) throw new Error("a film needs a picture");
  const { width, height } = first.picture;
  const parts = frames.map(({ picture }, index) => changed(picture, frames[index - 1]?.picture));
  const palette = choosePalette(
    parts.flatMap(({ pixels }) => pixels),
    unchanged,
  );
  const indexOf = nearestIn(palette);
  return Buffer.concat([
    Buffer.from("GIF89a"),
    shorts(width, height),
    // A table of 256 colours for all frames.
    Buffer.from([0xf7, 0, 0]),
    paletteBytes(palette),
    Buffer.from([0x21, 0xff, 11]),
    Buffer.from("NETSCAPE2.0"),
    Buffer.from([3, 1, 0, 0, 0]),
    ...frames.flatMap(({ ms }, index) => frameOf(parts[index], ms, indexOf)),
    Buffer.from([0x3b]),
  ]);
}

/** The part of a picture that differs from the one before; -1 where a pixel in it does not. */
interface Part {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly pixels: Int32Array;
}

function changed(picture: Picture, before: Picture | undefined): Part {
  const { width, height, pixels } = picture;
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let at = 0; at < pixels.length; at += 1) {
    if (before !== undefined && pixels[at] === before.pixels[at]) continue;
    const [x, y] = [at % width, Math.floor(at / width)];
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  // A frame has at least one pixel.
  if (right < 0) [left, top, right, bottom] = [0, 0, 0, 0];
  const size = { left, top, width: right - left + 1, height: bottom - top + 1 };
  const part = new Int32Array(size.width * size.height).map((_, index) => {
    const at = (top + Math.floor(index / size.width)) * width + left + (index % size.width);
    return before !== undefined && pixels[at] === before.pixels[at] ? -1 : (pixels[at] ?? 0);
  });
  return { ...size, pixels: part };
}

function frameOf(part: Part | undefined, ms: number, indexOf: (colour: number) => number): Buffer[] {
  if (part === undefined) return [];
  const { left, top, width, height, pixels } = part;
  const indexes = Uint8Array.from(pixels, (colour) => (colour < 0 ? unchanged : indexOf(colour)));
  return [
    // What is there stays, and one colour is transparent.
    Buffer.concat([Buffer.from([0x21, 0xf9, 4, 0b101]), shorts(Math.round(ms / 10)), Buffer.from([unchanged, 0])]),
    Buffer.concat([Buffer.from([0x2c]), shorts(left, top, width, height), Buffer.from([0, 8])]),
    blocks(compress(indexes)),
  ];
}

const clear = 256;
const end = 257;

/** Lempel, Ziv and Welch's compression as GIF has it: codes of 9 to 12 bits, and a new table when one is full. */
function compress(indexes: Uint8Array): Buffer {
  const bytes: number[] = [];
  let [pending, bits, width, next] = [0, 0, 9, end + 1];
  const codes = new Map<number, number>();
  const put = (code: number): void => {
    pending |= code << bits;
    bits += width;
    for (; bits >= 8; bits -= 8, pending >>>= 8) bytes.push(pending & 255);
  };
  put(clear);
  let known = indexes[0] ?? 0;
  for (const index of indexes.subarray(1)) {
    // A row of indexes as the code of all but its last, and that one.
    const row = (known << 8) | index;
    const code = codes.get(row);
    if (code !== undefined) {
      known = code;
      continue;
    }
    put(known);
    known = index;
    if (next < 4_096) {
      codes.set(row, next);
      // The code that was just made has the first number that the width does not hold.
      if (next === 1 << width) width += 1;
      next += 1;
    } else {
      put(clear);
      codes.clear();
      [width, next] = [9, end + 1];
    }
  }
  put(known);
  put(end);
  if (bits > 0) bytes.push(pending & 255);
  return Buffer.from(bytes);
}

/** Bytes in blocks of at most 255, each after its length. */
function blocks(bytes: Buffer): Buffer {
  const found: Buffer[] = [];
  for (let from = 0; from < bytes.length; from += 255) {
    const block = bytes.subarray(from, from + 255);
    found.push(Buffer.from([block.length]), block);
  }
  return Buffer.concat([...found, Buffer.from([0])]);
}

function shorts(...numbers: number[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 2);
  for (const [index, number] of numbers.entries()) bytes.writeUInt16LE(number, index * 2);
  return bytes;
}
