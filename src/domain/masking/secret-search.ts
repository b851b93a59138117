import { createNeedleSearch, windowLength, type Needle, type NeedleSearch } from "./needle-search.ts";
import { joinedPartsOf, partsOf } from "./secret-parts.ts";
import { bytesOf, spellingsOf } from "./spellings.ts";
import { viewsOf, type TextView } from "./text-views.ts";

/** A piece of a text that shows a secret: its bytes from `start` up to, and not including, `end`. */
export interface Shown {
  readonly start: number;
  readonly end: number;
}

/** A part of a secret by which it is recognised: the whole of it, a line, a value in it. */
export interface SecretPart {
  /** The place of its secret in the list. */
  readonly owner: number;
  /** Its name, among the parts of all secrets: the same in each search for the same list. */
  readonly part: string;
  /** Names of all parts that whoever knows this one knows, itself among them. */
  readonly tells: readonly string[];
}

export interface SecretSearch {
  /** What of the text shows a secret, in order and without overlaps. */
  shown(text: Uint8Array): Shown[];
  /** Which parts of which secrets the text shows, and up to where it can be looked at by itself. */
  look(text: Uint8Array): { readonly parts: ReadonlySet<SecretPart>; readonly settled: number };
}

/**
 * Looks for secrets in whatever carries them: see `partsOf` for what of a secret is looked for, `spellingsOf` for how it may
 * be spelt, `viewsOf` for what may stand between its characters. Linear in the text's length.
 */
export function createSecretSearch(secrets: readonly string[]): SecretSearch {
  // Made when first needed: many a mask is only made to be widened.
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
    look(text) {
      const parts = new Set<SecretPart>();
      const found: Shown[] = [];
      let settled = text.length;
      for (const [{ bytes, places }, needleSearch] of search(text)) {
        const placeOf = (at: number): number => places?.startOf(at) ?? at;
        const begun = needleSearch.find(bytes, (start, end, part, length) => {
          const seen = end - start;
          // Of a long one only the beginning: another length of it is another part.
          const name = `${part.part}/${seen}`;
          parts.add(seen === length ? part : { owner: part.owner, part: name, tells: [name] });
          found.push({ start: placeOf(start), end: places?.endOf(end - 1) ?? end });
        });
        // The rest of what begins there may be still to come.
        if (begun < bytes.length) settled = Math.min(settled, placeOf(begun));
      }
      // Nor may one that is whole be cut through, with all that stands between its lines.
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
      // Only what has several lines has other parts in it, and the whole has all.
      const tells = text === whole ? names : text.includes("\n") ? within() : [name];
      const part = { owner, part: name, tells };
      return spellings.filter(({ length }) => length >= windowLength).map((bytes) => ({ bytes, owner: part }));
    });
  });
}

/** All ways in which a part may be written, with either end of lines: base64 of the whole depends on it. */
function spelt(part: string): Uint8Array[] {
  const ended = part.includes("\n") ? [part.replaceAll(/\r?\n/gu, "\n"), part.replaceAll(/\r?\n/gu, "\r\n")] : [part];
  return [...new Set(ended)].flatMap(spellingsOf);
}

/** What was found in a view, as pieces of the text: what stands around its lines is none of the secret. */
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
