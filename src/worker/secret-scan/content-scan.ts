import { createHash } from "node:crypto";
import type { SecretPart, SecretSearch } from "../../domain/masking/secret-search.ts";
import { findTokenShapes } from "./token-shapes.ts";

/** Something in a content that looks like a secret. */
export interface Finding {
  /** The rule of secretlint that matched, for example `github`. */
  readonly rule: string;
  /** 24 hexadecimal digits of the value's SHA-256, to name and allow it without showing it. */
  readonly fingerprint: string;
  readonly value: string;
  /** Line in the content, from 1. */
  readonly line: number;
}

/** A finding in a content. */
export interface FoundInContent {
  /** Parts of known secrets. */
  readonly parts: readonly SecretPart[];
  /** Values that look like secrets, each once. */
  readonly findings: readonly Finding[];
  /** Whether there are more findings than the 1,000 that are reported. */
  readonly more: boolean;
}

/** A search through one content, piece by piece. */
export interface ContentScan {
  /**
   * Searches the next piece.
   * @param isLast whether the content ends with it
   * @returns all that was found, at the last piece; null before
   */
  take(piece: Uint8Array, isLast: boolean): Promise<FoundInContent | null>;
}

const findingLimit = 1_000;
/**
 * Bytes of a piece that are searched again with the next: longer than any match; the longest is a private key of 10,000
 * characters.
 */
const overlap = 32 * 1024;
/** Bytes before a match that a rule examines. */
const context = 64;
/** Most bytes kept for a known secret that may go on in the next piece; a secret has at most 64 KiB. */
const waitsFor = 512 * 1024;

/** Makes a search through one content, which finds also what two pieces cut apart. */
export function createContentScan(search: SecretSearch): ContentScan {
  const known = createKnownSecretScan(search);
  const shapes = createTokenShapeScan();
  return {
    async take(piece, isLast) {
      known.take(piece);
      await shapes.take(piece, isLast);
      return isLast ? { parts: [...known.parts], ...shapes.found() } : null;
    },
  };
}

function createKnownSecretScan(search: SecretSearch) {
  const parts = new Set<SecretPart>();
  let buffered: Buffer = Buffer.alloc(0);
  return {
    parts,
    take(piece: Uint8Array): void {
      const text = Buffer.concat([buffered, piece]);
      const seen = search.scan(text);
      for (const part of seen.parts) parts.add(part);
      // Keep also what precedes a line's text, which may be cut apart itself.
      const from = Math.min(seen.settled, text.length - context * 8);
      buffered = text.subarray(Math.max(0, from, text.length - waitsFor));
    },
  };
}

function createTokenShapeScan() {
  const findings = new Map<string, Finding>();
  let more = false;
  let buffered: Buffer = Buffer.alloc(0);
  /** Place in the held part from which findings are new. */
  let fresh = 0;
  let lines = 0;
  let isWide: boolean | null = null;

  return {
    found: () => ({ findings: [...findings.values()], more }),
    async take(piece: Uint8Array, isLast: boolean): Promise<void> {
      isWide ??= isUtf16(piece);
      const text = Buffer.concat([buffered, isWide ? piece.filter((byte) => byte !== 0) : piece]);
      // One character for each byte: the rules match ASCII only, and places stay the same.
      const content = text.toString("latin1");
      const settled = isLast ? content.length : Math.max(fresh, content.length - overlap);
      const line = createLineCounter(content);
      for (const { rule, start, end } of await findTokenShapes(content)) {
        if (start < fresh || start >= settled) continue;
        const value = content.slice(start, end);
        const fingerprint = createHash("sha256").update(value).digest("hex").slice(0, 24);
        const key = `${rule} ${fingerprint}`;
        if (findings.has(key)) continue;
        if (findings.size < findingLimit)
          findings.set(key, { rule, fingerprint, value, line: lines + line(start) + 1 });
        else more = true;
      }
      const from = Math.max(0, settled - context);
      lines += line(from);
      buffered = text.subarray(from);
      fresh = settled - from;
    },
  };
}

/** Counts the newlines before a place; increasing places continue from the last count. */
function createLineCounter(content: string): (place: number) => number {
  let counted = 0;
  let at = -1;
  return (place) => {
    if (place <= at) {
      counted = 0;
      at = -1;
    }
    for (let next = content.indexOf("\n", at + 1); next !== -1 && next < place; next = content.indexOf("\n", at + 1)) {
      counted += 1;
      at = next;
    }
    return counted;
  };
}

/** Whether a content is UTF-16: of ASCII text in it, every other byte is NUL. */
function isUtf16(beginning: Uint8Array): boolean {
  const sample = beginning.subarray(0, 8_000);
  const places = [0, 1].map((first) => {
    let count = 0;
    for (let at = first; at < sample.length; at += 2) if (sample[at] === 0) count += 1;
    return count;
  });
  return Math.max(...places) > sample.length / 8 && Math.min(...places) < Math.max(...places) / 8;
}
