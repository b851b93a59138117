import { createNeedleSearch, windowLength, type Needle, type NeedleSearch } from "./needle-search.ts";
import { joinedPartsOf, partsOf } from "./secret-parts.ts";
import { bytesOf, spellingsOf } from "./spellings.ts";
import { viewsOf, type TextView } from "./text-views.ts";

/** A piece of a text that shows a secret: its bytes from `start` up to, and not including, `end`. */
export interface Shown {
  readonly start: number;
  readonly end: number;
}

export interface SecretSearch {
  /** What of the text shows a secret, in order and without overlaps. */
  shown(text: Uint8Array): Shown[];
  /** Which of the secrets the text shows, by their places in the list, and up to where it can be looked at by itself. */
  look(text: Uint8Array): { readonly owners: ReadonlySet<number>; readonly settled: number };
}

/**
 * Looks for secrets in whatever carries them: see `partsOf` for what of a secret is looked for, `spellingsOf` for how it may
 * be spelt, `viewsOf` for what may stand between its characters. Linear in the text's length.
 */
export function createSecretSearch(secrets: readonly string[]): SecretSearch {
  // Made when first needed: many a mask is only made to be widened.
  let made: NeedleSearch | null = null;

  function* search(text: Uint8Array): Generator<readonly [TextView, NeedleSearch]> {
    if (secrets.length === 0) return;
    made ??= createNeedleSearch(secrets.flatMap(needlesOf));
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
      const owners = new Set<number>();
      const found: Shown[] = [];
      let settled = text.length;
      for (const [{ bytes, places }, needleSearch] of search(text)) {
        const placeOf = (at: number): number => places?.startOf(at) ?? at;
        const begun = needleSearch.find(bytes, (start, end, owner) => {
          owners.add(owner);
          found.push({ start: placeOf(start), end: places?.endOf(end - 1) ?? end });
        });
        // The rest of what begins there may be still to come.
        if (begun < bytes.length) settled = Math.min(settled, placeOf(begun));
      }
      // Nor may one that is whole be cut through, with all that stands between its lines.
      for (const { start, end } of found.toSorted((a, b) => b.end - a.end)) {
        if (start < settled && settled < end) settled = start;
      }
      return { owners, settled };
    },
  };
}

function needlesOf(secret: string, owner: number): Needle[] {
  const parts = partsOf(secret);
  // The other way in which lines are ended: base64 of the whole depends on it.
  const ended = parts.flatMap((part) =>
    part.includes("\n") ? [part.replaceAll(/\r?\n/gu, "\n"), part.replaceAll(/\r?\n/gu, "\r\n")] : [part],
  );
  const spelt = [...new Set(ended)].flatMap(spellingsOf);
  return [...spelt, ...joinedPartsOf(secret).map(bytesOf)]
    .filter((bytes) => bytes.length >= windowLength)
    .map((bytes) => ({ bytes, owner }));
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
