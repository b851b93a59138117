// The full-text index (migrations/0022_search.sql) groups sessions by organization and by creation time, in blocks of
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

/**
 * Converts search text to a tsquery of its letters and digits. Only the last word may be a prefix, because the index
 * must collect all words for each prefix.
 */
export function searchWords(q: string): string {
  const words = q.match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.length === 0 ? "" : `${words.join(" & ")}:*`;
}

/**
 * SQL expression that normalizes the words as PostgreSQL does.
 * @param words placeholder of the result of `searchWords`
 */
export const lexemesOf = (words: string): string => `to_tsquery('simple', ${words})::text`;

/**
 * SQL condition: a session has the words, checked without the index.
 * @param words placeholder of the result of `searchWords`
 */
export const hasWords = (words: string, session = "session"): string =>
  `to_tsvector('simple', ${session}.title || ' ' || left(${session}.description, 20000)) @@ to_tsquery('simple', ${words})`;

/** A query to the index. */
export interface SearchTerms {
  /** A normalized tsquery without word positions. */
  readonly lexemes: string;
  /** Whether the results are exact. If not, each must be checked against the session's text. */
  readonly exact: boolean;
}

/**
 * Makes the query to the index from all words, or for an id from its last part only, which is as rare as the whole.
 * The index has no positions, and PostgreSQL turns a word like 7e5d1, which it splits into a number and a rest, into
 * words that must follow each other: such results are not exact.
 * @param lexemes the result of `lexemesOf`
 */
export function searchTermsOf(lexemes: string, isId: boolean): SearchTerms {
  const words = isId ? lexemes.slice(lexemes.lastIndexOf("&") + 1) : lexemes;
  return { lexemes: words.replaceAll(/<(?:-|\d+)>/gu, "&"), exact: !isId && !words.includes("<") };
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
