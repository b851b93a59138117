import { createNeedleSearch, windowLength, type Needle, type NeedleSearch } from "./needle-search.ts";
import { joinedPartsOf, partsOf } from "./secret-parts.ts";
import { bytesOf, spellingsOf } from "./spellings.ts";
import { viewsOf, type TextView } from "./text-views.ts";

/** A range of a text that shows a secret: bytes from `start` up to, and not including, `end`. */
export interface Shown {
  readonly start: number;
  readonly end: number;
}

/** A part by which a secret is recognised: the whole secret, a line, or a value in it. */
export interface SecretPart {
  /** Index of its secret in the list. */
  readonly owner: number;
  /** Name of the part, unique among the parts of all secrets; equal in each search for the same list. */
  readonly part: string;
  /** Names of all parts that this part contains, its own among them. */
  readonly evidence: readonly string[];
}

/** A search for a fixed list of secrets. */
export interface SecretSearch {
  /** The ranges of the text that show a secret, in order and without overlaps. */
  shown(text: Uint8Array): Shown[];
  /**
   * The parts of secrets that the text shows.
   * @returns settled: bytes at the text's beginning that can be judged without later text
   */
  scan(text: Uint8Array): { readonly parts: ReadonlySet<SecretPart>; readonly settled: number };
}

/**
 * Searches for secrets in any text. See `partsOf` for the parts of a secret that are searched for, `spellingsOf` for
 * their encodings, `viewsOf` for what may be between their characters. The time is linear in the text's length.
 */
export function createSecretSearch(secrets: readonly string[]): SecretSearch {
  // Created when first needed: many masks are only extended (`with`), never used.
  let made: NeedleSearch<SecretPart> | null = null;

  function* search(text: Uint8Array): Generator<readonly [TextView, NeedleSearch<SecretPart>]> {
    if (secrets.length === 0) return;
    made ??= createNeedleSearch(needlesOf(secrets));
    for (const view of viewsOf(text)) yield [view, made];
  }

  return {
    shown(text) {
      const shown: Shown[] = [];
      for (const [view, needleSearch] of search(text)) {
        needleSearch.find(view.bytes, (start, end) => {
          shown.push(...piecesOf(text, view, start, end));
        });
      }
      return merged(shown);
    },
    scan(text) {
      const parts = new Set<SecretPart>();
      const found: Shown[] = [];
      let settled = text.length;
      for (const [{ bytes, places, cutEscape = text.length }, needleSearch] of search(text)) {
        // Later text says which character it is, and a secret may begin with that.
        settled = Math.min(settled, cutEscape);
        const placeOf = (at: number): number => places?.startOf(at) ?? at;
        const begun = needleSearch.find(bytes, (start, end, part, length) => {
          const seen = end - start;
          // Only the beginning of a long part was found: each length found is a separate part.
          const name = `${part.part}/${seen}`;
          parts.add(seen === length ? part : { owner: part.owner, part: name, evidence: [name] });
          found.push({ start: placeOf(start), end: places?.endOf(end - 1) ?? end });
        });
        // Later text may complete this match.
        if (begun < bytes.length) settled = Math.min(settled, placeOf(begun));
      }
      // A complete match, with everything between its lines, must not be cut either.
      for (const { start, end } of found.toSorted((a, b) => b.end - a.end)) {
        if (start < settled && settled < end) settled = start;
      }
      return { parts, settled };
    },
  };
}

function needlesOf(secrets: readonly string[]): Needle<SecretPart>[] {
  return secrets.flatMap((secret, owner) => {
    const whole = secret.trim();
    const texts = [
      ...partsOf(secret).map((text) => ({ text, spelt: spelt(text) })),
      ...joinedPartsOf(secret).map((text) => ({ text, spelt: [bytesOf(text)] })),
    ].map((part, index) => ({ ...part, name: `${owner}.${index}` }));
    const names = texts.map(({ name }) => name);
    return texts.flatMap(({ text, name, spelt: spellings }) => {
      const within = (): string[] => texts.filter((other) => text.includes(other.text)).map((other) => other.name);
      // Only a part of several lines contains other parts; the whole secret contains all.
      const evidence = text === whole ? names : text.includes("\n") ? within() : [name];
      const part = { owner, part: name, evidence };
      return spellings.filter(({ length }) => length >= windowLength).map((bytes) => ({ bytes, owner: part }));
    });
  });
}

/** All encodings of a part, with LF and with CRLF between its lines: base64 of several lines depends on it. */
function spelt(part: string): Uint8Array[] {
  const ended = part.includes("\n") ? [part.replaceAll(/\r?\n/gu, "\n"), part.replaceAll(/\r?\n/gu, "\r\n")] : [part];
  return [...new Set(ended)].flatMap(spellingsOf);
}

/**
 * The ranges of the text that correspond to a match in a view: line prefixes and suffixes are not part of the secret.
 */
function* piecesOf(text: Uint8Array, { places }: TextView, start: number, end: number): Generator<Shown> {
  if (places === null) {
    yield { start, end };
    return;
  }
  let piece: { start: number; end: number } | null = null;
  for (const run of places.pieces(start, end)) {
    if (piece !== null && (run.start <= piece.end || isNul(text, piece.end, run.start))) {
      piece.end = Math.max(piece.end, run.end);
    } else {
      if (piece !== null) yield piece;
      piece = { ...run };
    }
  }
  if (piece !== null) yield piece;
}

function isNul(text: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (text[at] !== 0) return false;
  return true;
}

function merged(shown: readonly Shown[]): Shown[] {
  const result: { start: number; end: number }[] = [];
  for (const { start, end } of shown.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = result.at(-1);
    if (last !== undefined && start < last.end) last.end = Math.max(last.end, end);
    else result.push({ start, end });
  }
  return result;
}
