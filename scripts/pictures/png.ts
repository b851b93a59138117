import { crc32, deflateSync, inflateSync } from "node:zlib";
import { choosePalette, nearestIn, paletteBytes } from "./palette.ts";

/** A picture as its pixels, row by row: red, green and blue in the low 24 bits of each. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint32Array;
}

/**
 * Reads a PNG as browsers write their screenshots: 8 bits a channel, with or without transparency, which is left out.
 * @throws Error if it is another kind of PNG
 */
export function readPng(png: Buffer): Picture {
  let header: Buffer = Buffer.alloc(13);
  const data: Buffer[] = [];
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (type === "IHDR") header = body;
    if (type === "IDAT") data.push(body);
    at += length + 12;
  }
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const [depth, colours, , , interlace] = header.subarray(8);
  if (depth !== 8 || (colours !== 2 && colours !== 6) || interlace !== 0) {
    throw new Error(`a PNG of depth ${depth}, colour type ${colours}, interlace ${interlace} can't be read`);
  }
  const channels = colours === 6 ? 4 : 3;
  const rows = unfilter(inflateSync(Buffer.concat(data)), width * channels, channels);
  const pixels = new Uint32Array(width * height);
  for (let at = 0; at < pixels.length; at += 1) pixels[at] = rows.readUIntBE(at * channels, 3);
  return { width, height, pixels };
}

/** Undoes what each row was filtered by (https://www.w3.org/TR/png-3/#9Filters). @param step bytes from a pixel to the next */
function unfilter(filtered: Buffer, rowLength: number, step: number): Buffer {
  const rows = Buffer.alloc((filtered.length / (rowLength + 1)) * rowLength);
  for (let row = 0; row * rowLength < rows.length; row += 1) {
    const filter = filtered[row * (rowLength + 1)] ?? 0;
    for (let column = 0; column < rowLength; column += 1) {
      const at = row * rowLength + column;
      const left = column < step ? 0 : (rows[at - step] ?? 0);
      const above = row === 0 ? 0 : (rows[at - rowLength] ?? 0);
      const aboveLeft = row === 0 || column < step ? 0 : (rows[at - rowLength - step] ?? 0);
      const byte = filtered[at + row + 1] ?? 0;
      rows[at] = byte + guess(filter, left, above, aboveLeft);
    }
  }
  return rows;
}

function guess(filter: number, left: number, above: number, aboveLeft: number): number {
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  if (filter !== 4) return 0;
  const sum = left + above - aboveLeft;
  const [toLeft, toAbove, toBoth] = [Math.abs(sum - left), Math.abs(sum - above), Math.abs(sum - aboveLeft)];
  if (toLeft <= toAbove && toLeft <= toBoth) return left;
  return toAbove <= toBoth ? above : aboveLeft;
}

/** Writes a picture as a small PNG: of 256 colours, which does for pages, and packed as well as can be. */
export function writePng({ width, height, pixels }: Picture): Buffer {
  const palette = choosePalette([pixels], 256);
  const indexOf = nearestIn(palette);
  // Before each row stands that it is not filtered.
  const rows = Buffer.alloc(height * (width + 1));
  for (const [at, colour] of pixels.entries()) rows[at + Math.floor(at / width) + 1] = indexOf(colour);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("PLTE", paletteBytes(palette)),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, body: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), body]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
}
