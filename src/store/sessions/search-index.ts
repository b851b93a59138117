// The full-text index (migrations/0022_search.sql, 0040_organization_data.sql) groups sessions by organization and by creation time, in blocks of
// four days counted from 1970. It has each word of a session under the session's block.
const blockSeconds = 4 * 86_400;

/**
 * SQL expression for a row's block.
 * @param column the column of the row's creation time
 */
export const blockOf = (column: string): string => `floor(extract(epoch from ${column}) / ${blockSeconds})::integer`;

/** Time at which a block begins, in the format of a cursor. */
export const beginOf = (block: number): string =>
  new Date(block * blockSeconds * 1_000).toISOString().replace("Z", "000Z");

/** Characters of scripts of which the index has pairs (0040_organization_data.sql, `search_text`). */
const unspaced =
  "[\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3005-\\u3007\\u3021-\\u302f\\u3031-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uac00-\\ud7a3\\uf900-\\ufaff\\u{20000}-\\u{3ffff}]";
const segments = new RegExp(`(?<unspaced>${unspaced}+)|(?:(?!${unspaced})[^ ])+`, "gu");

/** Characters of a word that the index has at most (`search_text`): folding can make a search longer than its limit. */
const longestWord = 500;

function cut(word: string): { word: string; isPrefix: boolean } {
  if (word.length <= longestWord) return { word, isPrefix: false };
  return { word: Array.from(word).slice(0, longestWord).join(""), isPrefix: true };
}

/** Most of a word's places that are asked for in both spellings. */
const variedAtMost = 3;

/**
 * A word as it may be written otherwise: ß in capitals is SS, in either direction. Folding by the database keeps ß, and the index
 * has what it keeps.
 */
function spellings(word: string, sharpened: boolean): string[] {
  let all = [""];
  let varied = 0;
  for (const part of word.split(/(ß|ss)/u)) {
    const varies = (part === "ß" || (sharpened && part === "ss")) && varied < variedAtMost;
    if (varies) varied += 1;
    all = all.flatMap((begun) => (varies ? ["ss", "ß"] : [part]).map((next) => begun + next));
  }
  return all;
}

/**
 * Converts search text to a tsquery of its words. Only the last word may be a prefix, because the index must collect all words for
 * each prefix. In scripts without spaces each two characters that follow each other are asked for, a single one as a prefix.
 * @param folded what the SQL function `search_fold` returns for the text
 * @param sharpened whether SS in it may be a capital ß
 */
export function searchWords(folded: string, sharpened: boolean): string {
  const parts: { word: string; isPrefix: boolean }[] = [];
  for (const { 0: segment, groups } of folded.matchAll(segments)) {
    const characters = groups?.["unspaced"] === undefined ? null : Array.from(segment);
    if (characters === null) parts.push(cut(segment));
    else if (characters.length === 1) parts.push({ word: segment, isPrefix: true });
    else characters.slice(1).forEach((next, at) => parts.push({ word: `${characters[at]}${next}`, isPrefix: false }));
  }
  return parts
    .map(({ word, isPrefix }, at) => {
      const mark = isPrefix || at === parts.length - 1 ? ":*" : "";
      const [first = "", ...others] = spellings(word, sharpened).map((spelling) => `'${spelling}'${mark}`);
      return others.length === 0 ? first : `(${[first, ...others].join(" | ")})`;
    })
    .join(" & ");
}

/**
 * SQL condition: a session has the words, checked without the index.
 * @param words placeholder of the result of `searchWords`
 */
export const hasWords = (words: string, session = "session"): string =>
  `array_to_tsvector(string_to_array(search_text(${session}.title || ' ' || left(${session}.description, 20000)), ' ')) @@ ${words}::tsquery`;

/** A query to the index. */
export interface SearchTerms {
  /** A tsquery. */
  readonly lexemes: string;
  /** Whether the results are exact. If not, each must be checked against the session's text. */
  readonly exact: boolean;
}

/**
 * Makes the query to the index from all words, or for an id from its last part only, which is as rare as the whole: such results
 * are not exact.
 * @param words the result of `searchWords`
 */
export function searchTermsOf(words: string, isId: boolean): SearchTerms {
  return { lexemes: isId ? words.slice(words.lastIndexOf("&") + 1) : words, exact: !isId };
}

/** A range of blocks, both ends included. */
export interface Span {
  readonly first: number;
  readonly last: number;
}

/**
 * The argument of the SQL function `sessions_with_words`: one tsquery for each block.
 * @param lexemes those of `SearchTerms`
 */
export function indexQueriesOf(organizationId: string, lexemes: string, { first, last }: Span): string[] {
  const organization = Buffer.from(organizationId.slice(-6), "hex").toString("base64");
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) =>
    lexemes.replaceAll(/'([^']*)'/gu, `'${organization}${(first + index).toString(16)}/$1'`),
  );
}
