/**
 * The index of words (migrations/0022_search.sql) has each word of a session under the block of four days in which the
 * session was made, counted from 1970, of its organization alone.
 */
const blockSeconds = 4 * 86_400;

/** SQL of the block in which a row was made. @param column its time */
export const blockOf = (column: string): string => `floor(extract(epoch from ${column}) / ${blockSeconds})::integer`;

/** When a block begins, as a cursor has it. */
export const beginOf = (block: number): string =>
  new Date(block * blockSeconds * 1_000).toISOString().replace("Z", "000Z");

/**
 * The words of a search as a tsquery, which takes nothing but letters and digits of them. Only the last may be a
 * beginning: for the others the index need not gather all words that begin so.
 */
export function searchWords(q: string): string {
  const words = q.match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.length === 0 ? "" : `${words.join(" & ")}:*`;
}

/** SQL of the words as PostgreSQL takes and writes them. @param words place of what `searchWords` gives */
export const lexemesOf = (words: string): string => `to_tsquery('simple', ${words})::text`;

/**
 * SQL of whether a session has the words, for where the index is not asked.
 * @param words place of what `searchWords` gives
 */
export const hasWords = (words: string, session = "session"): string =>
  `to_tsvector('simple', ${session}.title || ' ' || left(${session}.description, 20000)) @@ to_tsquery('simple', ${words})`;

/** What the index is asked for. */
export interface Asked {
  /** A tsquery of words, as PostgreSQL writes it, without their places. */
  readonly lexemes: string;
  /** Whether what the index finds needs no look. */
  readonly exact: boolean;
}

/**
 * All words; but the last of an id, which is as seldom as all of them. The index knows no positions, and PostgreSQL makes
 * words that follow each other of one that it takes apart, as it does with 7e5d1, a number and a rest.
 * @param lexemes as `lexemesOf` gives them
 */
export function askedOf(lexemes: string, isId: boolean): Asked {
  const words = isId ? lexemes.slice(lexemes.lastIndexOf("&") + 1) : lexemes;
  return { lexemes: words.replaceAll(/<(?:-|\d+)>/gu, "&"), exact: !isId && !words.includes("<") };
}

/** Blocks from one to another, both within. */
export interface Span {
  readonly first: number;
  readonly last: number;
}

/** What `sessions_with_words` takes: a question for each block. @param lexemes of `Asked` */
export function questionsOf(organizationId: string, lexemes: string, { first, last }: Span): string[] {
  const organization = Buffer.from(organizationId.slice(-6), "hex").toString("base64");
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) =>
    lexemes.replaceAll(/'([^']*)'/gu, `'${organization}${(first + index).toString(16)}/$1'`),
  );
}
