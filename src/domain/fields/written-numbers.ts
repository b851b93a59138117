/** Characters of a number without an exponent, as PostgreSQL's `jsonb` writes it: `1e308` has 309. */
export function lengthWrittenOut(value: number): number {
  const [mantissa = "", exponent = "0"] = String(value).split("e");
  return mantissa.length + Math.abs(Number(exponent));
}

/** Bytes of a JSON value in UTF-8, without spaces and with its numbers written out. */
export function bytesWrittenOut(value: unknown): number {
  let bytes = new TextEncoder().encode(JSON.stringify(value)).length;
  const left: unknown[] = [value];
  while (left.length > 0) {
    const inner = left.pop();
    if (typeof inner === "number") bytes += lengthWrittenOut(inner) - String(inner).length;
    if (typeof inner === "object" && inner !== null) for (const item of Object.values(inner)) left.push(item);
  }
  return bytes;
}
