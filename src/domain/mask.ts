import type { NewEvent } from "./event.ts";

/** Shorter values are too likely to be ordinary words to be replaced everywhere. */
const shortestSecret = 8;
const masked = "[secret]";

export interface Mask {
  text(value: string): string;
  event(event: NewEvent): NewEvent;
  /** How many characters at the end of a text may be the beginning of a secret whose rest is still to come. */
  unfinished(value: string): number;
  /** The same with more secrets. */
  with(secrets: readonly string[]): Mask;
}

/**
 * Replaces every known secret in what is about to be stored or shown, as it is and in the spellings that programs print by
 * themselves: JSON, URL-encoded, hexadecimal, and base64 at any offset, broken into lines or not.
 * The last line of defence, not the first: a secret should not get near the text at all, and who wants to can spell it
 * in a way that nothing recognises.
 */
export function createMask(secrets: readonly string[]): Mask {
  const known = [...new Set(secrets.filter((secret) => secret.length >= shortestSecret))];
  const needles = longestFirst(known.flatMap(spellings));
  const broken = longestFirst(known.flatMap(inBase64)).map(acrossLines);

  function text(value: string): string {
    let result = value;
    for (const needle of needles) if (result.includes(needle)) result = result.replaceAll(needle, masked);
    // Only what is broken into lines has some as long as programs make them.
    if (broken.length > 0 && /[\w+/-]{60}\r?\n/u.test(result)) {
      for (const pattern of broken) result = result.replace(pattern, masked);
    }
    return result;
  }

  function deep(value: unknown): unknown {
    if (typeof value === "string") return text(value);
    if (Array.isArray(value)) return value.map(deep);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, deep(inner)]));
  }

  return {
    text,
    event: (event) => (known.length === 0 ? event : ({ type: event.type, data: deep(event.data) } as NewEvent)),
    unfinished: (value) => value.length - wholeBefore(value, needles),
    with: (more) => createMask([...known, ...more]),
  };
}

/** Where a text can be cut so that neither a beginning of a needle nor a whole one is cut through. */
function wholeBefore(value: string, needles: readonly string[]): number {
  let cut = value.length;
  for (let length = Math.min(value.length, (needles[0]?.length ?? 1) - 1); length > 0; length -= 1) {
    const end = value.slice(-length);
    if (!needles.some((needle) => needle.length > length && needle.startsWith(end))) continue;
    cut -= length;
    break;
  }
  for (;;) {
    const starts = needles.map((needle) => value.indexOf(needle, Math.max(0, cut - needle.length + 1)));
    const through = starts.find((start) => start !== -1 && start < cut);
    if (through === undefined) return cut;
    cut = through;
  }
}

/** One may begin with another: the longer is looked for first. */
function longestFirst(values: readonly string[]): string[] {
  return [...new Set(values)].sort((a, b) => b.length - a.length);
}

/** A secret as it is and as programs print it by themselves, on one line: the ways in which it is looked for. */
export function spellings(secret: string): string[] {
  const url = encodeURIComponent(secret);
  const hex = [...bytesOf(secret)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    url,
    url.replaceAll("%20", "+"),
    url.replaceAll(/%[0-9A-F]{2}/gu, (code) => code.toLowerCase()),
    hex,
    hex.toUpperCase(),
    ...inBase64(secret),
  ];
}

/** By what stands before it, a text has three spellings in base64; its first and last characters depend on its neighbours. */
function inBase64(secret: string): string[] {
  const bytes = bytesOf(secret);
  return [0, 1, 2].flatMap((offset) => {
    const shifted = new Uint8Array(offset + bytes.length);
    shifted.set(bytes, offset);
    const encoded = btoa(String.fromCodePoint(...shifted)).replace(/=+$/u, "");
    const fixed = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
    return [fixed, fixed.replaceAll("+", "-").replaceAll("/", "_")];
  });
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function acrossLines(needle: string): RegExp {
  return new RegExp(
    needle
      .split("")
      .map((character) => character.replace(/[+/-]/u, "\\$&"))
      .join("(?:\\r?\\n)?"),
    "gu",
  );
}
