/**
 * The most frequent colours, first those that are far from each other, so that a small lamp keeps its own.
 * @param pictures their pixels; negative: no colour
 */
export function choosePalette(pictures: readonly (Int32Array | Uint32Array)[], most: number): number[] {
  const counts = new Map<number, number>();
  for (const pixels of pictures) {
    for (const colour of pixels) if (colour >= 0) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const frequent = [...counts].toSorted(([, one], [, other]) => other - one).map(([colour]) => colour);
  const chosen: number[] = [];
  for (const apart of [48, 24, 12, 6, 0]) {
    for (const colour of frequent) {
      if (chosen.length === most) break;
      if (chosen.every((other) => distance(colour, other) > apart * apart)) chosen.push(colour);
    }
  }
  return chosen;
}

/** Finds the place of a colour in a palette, or that of the one that is nearest to it. */
export function nearestIn(palette: readonly number[]): (colour: number) => number {
  const known = new Map(palette.map((colour, index) => [colour, index]));
  return (colour) => {
    const found = known.get(colour);
    if (found !== undefined) return found;
    const distances = palette.map((other) => distance(colour, other));
    const nearest = distances.indexOf(Math.min(...distances));
    known.set(colour, nearest);
    return nearest;
  };
}

function distance(one: number, other: number): number {
  const red = (one >> 16) - (other >> 16);
  const green = ((one >> 8) & 255) - ((other >> 8) & 255);
  const blue = (one & 255) - (other & 255);
  return red * red + green * green + blue * blue;
}

/** A palette of 256 colours as files have it: three bytes each. */
export function paletteBytes(palette: readonly number[]): Buffer {
  const bytes = Buffer.alloc(256 * 3);
  for (const [index, colour] of palette.entries()) bytes.writeUIntBE(colour, index * 3, 3);
  return bytes;
}
