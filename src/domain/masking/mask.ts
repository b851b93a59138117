import type { NewEvent } from "../sessions/event.ts";
import { shortestSecret } from "./secret-parts.ts";
import { createSecretSearch, type Shown } from "./secret-search.ts";
import { bytesOf } from "./spellings.ts";

const masked = "[secret]";
const newline = 10;

/** Replaces secrets in texts by `[secret]`. */
export interface Mask {
  /** The text with each secret in it replaced. */
  text(value: string): string;
  /** A value of JSON with each secret in any of its texts replaced. */
  value(value: unknown): unknown;
  /** The event with each secret in any of its texts replaced. */
  event(event: NewEvent): NewEvent;
  /** How many characters at the end of the text may be the beginning of a secret that later text completes. */
  unfinished(value: string): number;
  /** The secrets that it replaces: another thread can create the same mask from them. */
  readonly secrets: readonly string[];
  /** A mask of these secrets and further ones. */
  with(secrets: readonly string[]): Mask;
}

/**
 * Replaces every known secret in texts that are about to be stored or shown: as it is, and as programs usually print it
 * (JSON, URL-encoded, hexadecimal, base64), whole or line by line, whatever a diff or a listing puts before the lines.
 * The last line of defence: a secret should not get near the text at all, and a program can deliberately spell it in a
 * way that is not recognised. The time is linear in the text's length.
 * @param secrets those shorter than `shortestSecret` characters are ignored
 */
export function createMask(secrets: readonly string[]): Mask {
  const known = [...new Set(secrets.filter((secret) => secret.length >= shortestSecret))];
  const search = createSecretSearch(known);

  function text(value: string): string {
    if (known.length === 0 || value.length < shortestSecret) return value;
    const bytes = bytesOf(value);
    const shown = search.shown(bytes);
    return shown.length === 0 ? value : replaced(bytes, shown);
  }

  function deep(value: unknown): unknown {
    if (typeof value === "string") return text(value);
    if (Array.isArray(value)) return value.map(deep);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, deep(inner)]));
  }

  function unfinished(value: string): number {
    if (known.length === 0) return 0;
    const bytes = bytesOf(value);
    const lastLine = bytes.lastIndexOf(newline);
    // The prefix of the last line (a file's name, a number) may itself be incomplete.
    const before = lastLine === -1 ? bytes.length : search.scan(bytes.subarray(0, lastLine)).settled;
    const settled = before < lastLine ? before : search.scan(bytes).settled;
    if (settled === bytes.length) return 0;
    return value.length - textOf(bytes.subarray(0, settled)).length;
  }

  return {
    text,
    value: deep,
    event: (event) => (known.length === 0 ? event : ({ type: event.type, data: deep(event.data) } as NewEvent)),
    unfinished,
    secrets: known,
    with: (more) => createMask([...known, ...more]),
  };
}

function replaced(bytes: Uint8Array, shown: readonly Shown[]): string {
  let result = "";
  let at = 0;
  for (const { start, end } of shown) {
    result += textOf(bytes.subarray(at, start)) + masked;
    at = end;
  }
  return result + textOf(bytes.subarray(at));
}

function textOf(bytes: Uint8Array): string {
  // Keep a byte order mark: it is a character of the text like any other.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}
