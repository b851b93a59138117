/**
 * The ways in which programs print a value, as bytes: as it is, with `+` for blanks, in hexadecimal, in base64 and
 * base64url at any offset, and in UTF-16 (without its NULs). `viewsOf` decodes percent-encoding and the escapes of JSON
 * in the text instead.
 */
export function spellingsOf(value: string): Uint8Array[] {
  const bytes = bytesOf(value);
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const ascii = [...inBase64(bytes), hex, hex.toUpperCase()];
  if (value.includes(" ")) ascii.push(value.replaceAll(" ", "+"));
  return [bytes, ...inUtf16(value), ...[...new Set(ascii)].map(bytesOf)];
}

/** UTF-8 bytes of the text. */
export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/**
 * Three spellings, for the three offsets at which the value may begin in a group of 3 bytes. Its first and last
 * characters are left out: they depend on the neighbouring bytes.
 */
function inBase64(bytes: Uint8Array): string[] {
  return [0, 1, 2].flatMap((offset) => {
    const shifted = new Uint8Array(offset + bytes.length);
    shifted.set(bytes, offset);
    const encoded = btoa(binary(shifted)).replace(/=+$/u, "");
    const fixed = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
    return [fixed, fixed.replaceAll("+", "-").replaceAll("/", "_")];
  });
}

/** Little-endian and big-endian without NULs. Empty for ASCII, of which only the text itself remains. */
function inUtf16(value: string): Uint8Array[] {
  if (/^[\0-\u007f]*$/u.test(value)) return [];
  const units = Array.from({ length: value.length }, (_, index) => value.charCodeAt(index));
  const withoutNul = (bytes: readonly number[]): Uint8Array => Uint8Array.from(bytes.filter((byte) => byte !== 0));
  return [
    withoutNul(units.flatMap((unit) => [unit & 255, unit >> 8])),
    withoutNul(units.flatMap((unit) => [unit >> 8, unit & 255])),
  ];
}

/** One character for each byte, the input format of `btoa`. */
function binary(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return text;
}
