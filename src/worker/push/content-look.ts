import { createHash } from "node:crypto";
import type { SecretPart, SecretSearch } from "../../domain/masking/secret-search.ts";
import { findTokenShapes } from "./token-shapes.ts";

/** Something in a content that looks like a secret. */
export interface Finding {
  readonly rule: string;
  /** Of the value, so that it can be named and allowed without being told. */
  readonly fingerprint: string;
  readonly value: string;
  readonly line: number;
}

/** What a content shows. */
export interface Found {
  /** Of known secrets. */
  readonly parts: readonly SecretPart[];
  /** Each value once. */
  readonly findings: readonly Finding[];
  /** Whether there are more findings than are told. */
  readonly more: boolean;
}

export interface ContentLook {
  /** @param isLast whether the content ends with it @returns what was found in all of it, once it has ended */
  take(piece: Uint8Array, isLast: boolean): Promise<Found | null>;
}

const findingLimit = 1_000;
/** A finding of the rules is shorter: a private key of 10,000 characters is the longest. */
const overlap = 32 * 1024;
/** What a rule looks at before a finding. */
const context = 64;
/** How much of a secret whose rest is to come is waited for: a secret has 64 KiB at most. */
const waitsFor = 512 * 1024;

/** Looks through one content, piece by piece: what is cut in two by the pieces is found all the same. */
export function createContentLook(search: SecretSearch): ContentLook {
  const known = createKnownLook(search);
  const shapes = createShapeLook();
  return {
    async take(piece, isLast) {
      known.take(piece);
      await shapes.take(piece, isLast);
      return isLast ? { parts: [...known.parts], ...shapes.found() } : null;
    },
  };
}

function createKnownLook(search: SecretSearch) {
  const parts = new Set<SecretPart>();
  let held: Buffer = Buffer.alloc(0);
  return {
    parts,
    take(piece: Uint8Array): void {
      const text = Buffer.concat([held, piece]);
      const seen = search.look(text);
      for (const part of seen.parts) parts.add(part);
      // Also what stands before a line's text, which may itself be cut in two.
      const from = Math.min(seen.settled, text.length - context * 8);
      held = text.subarray(Math.max(0, from, text.length - waitsFor));
    },
  };
}

function createShapeLook() {
  const findings = new Map<string, Finding>();
  let more = false;
  let held: Buffer = Buffer.alloc(0);
  /** From where on findings in the held part are new. */
  let fresh = 0;
  let lines = 0;
  let isWide: boolean | null = null;

  return {
    found: () => ({ findings: [...findings.values()], more }),
    async take(piece: Uint8Array, isLast: boolean): Promise<void> {
      isWide ??= looksWide(piece);
      const text = Buffer.concat([held, isWide ? piece.filter((byte) => byte !== 0) : piece]);
      // One character for each byte: the rules know ASCII only, and places stay what they are.
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
      held = text.subarray(from);
      fresh = settled - from;
    },
  };
}

/** Counts the newlines before a place, and goes on from the last one. */
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

/** Whether it is UTF-16: every other byte of ASCII in it is NUL. */
function looksWide(beginning: Uint8Array): boolean {
  const looked = beginning.subarray(0, 8_000);
  const places = [0, 1].map((first) => {
    let count = 0;
    for (let at = first; at < looked.length; at += 2) if (looked[at] === 0) count += 1;
    return count;
  });
  return Math.max(...places) > looked.length / 8 && Math.min(...places) < Math.max(...places) / 8;
}
