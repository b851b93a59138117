import type { Database } from "../../database/database.ts";
import type { Page } from "../../domain/fields/list.ts";
import { storable } from "../../domain/fields/text.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { cursorColumn, cursorOf, pageOf, withoutCursor, type WithCursor } from "../cursor.ts";
import { conditionsOf, isFiltered, type SessionListQuery } from "./conditions.ts";
import {
  searchTermsOf,
  beginOf,
  blockOf,
  hasWords,
  indexQueriesOf,
  searchWords,
  type SearchTerms,
  type Span,
} from "./search-index.ts";
import { sessionColumns, type SessionRecord } from "./session-record.ts";

/**
 * A search first scans the newest sessions of the list, which is enough if the words are frequent. Then it queries
 * the full-text index block by block, going back in time, with a growing number of blocks while few results are
 * found, until the page is full. If a query finds too many sessions, or a filter by status or automation may exclude
 * most of them, it scans the next part of the list instead.
 */
interface Search {
  readonly organizationId: string;
  readonly q: string;
  /** The result of `searchWords`. */
  readonly words: string;
  /** Its cursor is the position at which the search continues. */
  readonly query: SessionListQuery;
  /** One more than the size of the page. */
  readonly needed: number;
}

// None of these decides what is found: they decide how much is read for it. With them the searches of `npm run bench:size` take 3 to 15 ms
// at the median, of 10,000 sessions as of 10 million (docs/operating.md). Measure a change of one there, at both ends.
/** The first scan reads this many sessions for each session of the page. */
const scannedForEach = 5;
/** Scan instead of querying the index if a scan of this many times more sessions is likely to fill the page. */
const scanAdvantage = 4;
/** The next scan reads this many times more sessions. */
const scanGrowth = 8;
/**
 * The next query of the index covers this many times more blocks: without a filter; with a filter, which excludes
 * some results; and after a query that found too many.
 */
const growth = { all: 16, filtered: 4, afterTooMany: 2 } as const;
/** After a query that found too many, the number of blocks is divided by this. */
const shrink = 8;
const blocksAtMost = 512;
/** How many times as many blocks are asked for as are likely to have the sessions still needed. */
const blockMargin = 1.5;
/** Maximum number of results of one query of the index, because all of them are read and sorted. */
const foundAtMost = 2_000;

/**
 * Sessions whose title or description has every word of `q` (the last may be a prefix), or whose id is `q`; newest
 * first.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function searchSessions(
  database: Database,
  organizationId: string,
  q: string,
  query: SessionListQuery,
): Promise<Page<SessionRecord>> {
  const words = await wordsOf(database, q);
  const ids = [...(await findIds(database, { organizationId, q, words, query, needed: query.limit + 1 })), ...idIn(q)];
  if (ids.length === 0) return { items: [], nextCursor: null };
  const { conditions, values, bind } = conditionsOf(organizationId, query);
  const { rows } = await database.pool.query<WithCursor<SessionRecord>>(
    `select ${sessionColumns}, ${cursorColumn("session")} from session
     where session.id = any(${bind(ids)}::uuid[]) and ${conditions} ${newestFirst}`,
    values,
  );
  return pageOf(rows, query.limit, withoutCursor);
}

/** The words of a search, which the database folds as it folds those of sessions. */
async function wordsOf(database: Database, q: string): Promise<string> {
  const { rows } = await database.pool.query<{ folded: string }>("select search_fold($1) as folded", [storable(q)]);
  return searchWords(rows[0]?.folded ?? "", q.includes("SS"));
}

/** The id that `q` is, or an empty list. */
const idIn = (q: string): string[] => (isUuid(q.trim()) ? [q.trim()] : []);

const newestFirst = "order by session.created_at desc, session.id desc";

/** The results of a part of the search. */
interface Found {
  readonly ids: readonly string[];
  /** Where the search continues, and in which block; null if it is at its end. */
  readonly next: { readonly cursor: string; readonly block: number } | null;
}

async function findIds(database: Database, search: Search): Promise<readonly string[]> {
  const { query, needed } = search;
  if (search.words === "") return [];
  let sessions = needed * scannedForEach;
  const first = await scan(database, search, sessions);
  const ids = [...first.ids];
  let { next } = first;
  if (ids.length >= needed || next === null) return ids;
  const { terms, oldest } = await readIndex(database, search);
  const filtered = isFiltered(query);
  let scansNext = ids.length * scanAdvantage >= needed;
  let grow: number = filtered ? growth.filtered : growth.all;
  let tooMany = 0;
  let blocks = Math.max(1, (first.begin - next.block) * grow);
  while (next !== null && ids.length < needed) {
    const rest: Search = { ...search, query: { ...query, cursor: next.cursor }, needed: needed - ids.length };
    const span: Span = { first: Math.max(oldest, next.block - blocks + 1), last: next.block };
    const found: Found | null = scansNext
      ? await scan(database, rest, (sessions *= scanGrowth))
      : await queryIndex(database, rest, terms, span, oldest);
    if (found === null) {
      tooMany += 1;
      // With a filter, scan after every second failure: the filter may exclude most results.
      scansNext = span.first === span.last || (filtered && tooMany % 2 === 0);
      grow = growth.afterTooMany;
      blocks = Math.max(1, Math.floor((span.last - span.first + 1) / shrink));
    } else {
      const likely = Math.ceil((blocks * (rest.needed - found.ids.length) * blockMargin) / found.ids.length);
      if (!scansNext) blocks = Math.min(blocks * grow, likely, blocksAtMost);
      scansNext = false;
      ids.push(...found.ids);
      ({ next } = found);
    }
  }
  return ids;
}

interface ScannedRow {
  readonly ids: string[];
  readonly begin: number;
  /** The last scanned session; null if the list ended before. */
  readonly id: string | null;
  readonly cursor_time: string;
  readonly block: number;
}

/**
 * Scans the next `count` sessions of the list.
 * @returns also the block that they begin in
 */
async function scan(
  database: Database,
  { organizationId, words, query, needed }: Search,
  count: number,
): Promise<Found & { readonly begin: number }> {
  const { conditions, values, bind } = conditionsOf(organizationId, query);
  const among = `from session where ${conditions} ${newestFirst}`;
  const { rows } = await database.pool.query<ScannedRow>(
    `select array(
       select session.id from (select id, created_at, title, description ${among} limit ${bind(count)}) as session
       where ${hasWords(bind(words))} ${newestFirst} limit ${bind(needed)}) as ids,
       (select ${blockOf("session.created_at")} ${among} limit 1) as begin, last.*
     from (select) as always left join lateral (
       select session.id, ${cursorColumn("session")}, ${blockOf("session.created_at")} as block
       ${among} limit 1 offset ${bind(count - 1)}) as last on true`,
    values,
  );
  const [row] = rows;
  const { ids = [], begin = 0 } = row ?? {};
  if (row === undefined || row.id === null) return { ids, begin, next: null };
  return { ids, begin, next: { cursor: cursorOf({ createdAt: row.cursor_time, id: row.id }), block: row.block } };
}

interface Index {
  readonly terms: SearchTerms;
  /** The first and last block of the organization. */
  readonly oldest: number;
  readonly newest: number;
}

async function readIndex(
  database: Database,
  { organizationId, q, words }: Pick<Search, "organizationId" | "q" | "words">,
): Promise<Index> {
  const block = (order: string): string =>
    `(select ${blockOf("created_at")} from session where organization_id = $1 order by created_at ${order} limit 1)`;
  const { rows } = await database.pool.query<{ oldest: number | null; newest: number | null }>(
    `select ${block("asc")} as oldest, ${block("desc")} as newest`,
    [organizationId],
  );
  const { oldest, newest } = rows[0] ?? {};
  return { terms: searchTermsOf(words, idIn(q).length > 0), oldest: oldest ?? 0, newest: newest ?? -1 };
}

/** Sorts before every other id of the same time. */
const firstId = "00000000-0000-0000-0000-000000000000";

/**
 * Queries the index.
 * @returns null if there are too many results to sort
 */
async function queryIndex(
  database: Database,
  { organizationId, words, query, needed }: Search,
  terms: SearchTerms,
  span: Span,
  oldest: number,
): Promise<Found | null> {
  const { conditions, values, bind } = conditionsOf(organizationId, query, "found");
  const queries = bind(indexQueriesOf(organizationId, terms.lexemes, span));
  const { rows } = await database.pool.query<{ count: number; ids: string[] }>(
    `with found as materialized (
       select * from sessions_with_words(${queries}::tsquery[], ${bind(foundAtMost + 1)})
       union all ${runningWith(words, bind)} and session.created_at >= ${bind(beginOf(span.first))}::timestamptz)
     select (select count(*)::integer from found) as count,
       array(select session.id from found as session where ${conditions} and ${confirmed(terms, words, bind)}
         ${newestFirst} limit ${bind(needed)}) as ids`,
    values,
  );
  const { count = 0, ids = [] } = rows[0] ?? {};
  if (count > foundAtMost) return null;
  const cursor = cursorOf({ createdAt: beginOf(span.first), id: firstId });
  return { ids, next: span.first > oldest ? { cursor, block: span.first - 1 } : null };
}

/** SQL for the running sessions with the words: the index does not contain running sessions, of which there are few. */
const runningWith = (words: string, bind: (value: unknown) => string): string =>
  `select session.id, session.organization_id, session.status, session.automation_id, session.created_at from session
   where session.organization_id = $1 and session.status = 'running' and ${hasWords(bind(words))}`;

/** SQL condition: a result of the index really has the words. */
const confirmed = ({ exact }: SearchTerms, words: string, bind: (value: unknown) => string): string =>
  exact ? "true" : `(select ${hasWords(bind(words), "whole")} from session as whole where whole.id = session.id)`;

/**
 * Counts all sessions with the words, for clients that number their pages.
 * @param options.skip how many of the newest are left out
 * @returns the count, and the ids of at most `limit` sessions
 */
export async function countWithWords(
  database: Database,
  organizationId: string,
  { q, limit, skip }: { readonly q: string; readonly limit: number; readonly skip: number },
): Promise<{ count: number; ids: string[] }> {
  const words = await wordsOf(database, q);
  const { terms, oldest, newest } = await readIndex(database, { organizationId, q, words });
  const values: unknown[] = [organizationId];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const queries = bind(indexQueriesOf(organizationId, terms.lexemes, { first: oldest, last: newest }));
  const { rows } = await database.pool.query<{ count: number; ids: string[] }>(
    `with found as materialized (
       select session.id, session.created_at from sessions_with_words(${queries}::tsquery[], null) as session
         where session.organization_id = $1 and ${confirmed(terms, words, bind)}
       union select id, created_at from (${runningWith(words, bind)}) as running
       union select id, created_at from session where id = any(${bind(idIn(q))}::uuid[]) and organization_id = $1)
     select (select count(*)::integer from found) as count,
       array(select id from found order by created_at desc, id desc limit ${bind(limit)} offset ${bind(skip)}) as ids`,
    values,
  );
  return rows[0] ?? { count: 0, ids: [] };
}
