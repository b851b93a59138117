import type { Database } from "../../database/database.ts";
import type { Page } from "../../domain/list.ts";
import { isUuid } from "../../domain/uuid.ts";
import { cursorColumn, cursorOf, pageOf } from "../cursor.ts";
import { conditionsOf, type SessionListQuery } from "./conditions.ts";
import {
  askedOf,
  beginOf,
  blockOf,
  hasWords,
  lexemesOf,
  questionsOf,
  searchWords,
  type Asked,
  type Span,
} from "./search-index.ts";
import { sessionColumns, toSessionRecord, type SessionRecord, type SessionRow } from "./session-record.ts";

/**
 * A search looks at the newest of the list one by one, which is all that it takes where many have the words. Then it goes
 * back by the blocks of the index of words, by more of them while little is found, until its page is full. Where there are
 * too many in a block, or a status or an automation may leave few of them, it looks at the next of the list again.
 */
interface Search {
  readonly organizationId: string;
  readonly q: string;
  /** With the place from which the search goes on as its cursor. */
  readonly query: SessionListQuery;
  /** One more than the page holds. */
  readonly wanted: number;
}

/** Looked at first for each session that is wanted. */
const lookedAtForEach = 5;
/** As many times more of the list are looked at rather than the index asked, where they are likely to fill the page. */
const rather = 4;
/** How many times more of the list are looked at the next time. */
const lookGrowth = 8;
/** How many times more blocks are asked next; where a filter leaves some of what they find; and once there were too many. */
const growth = { all: 16, filtered: 4, afterTooMany: 2 } as const;
/** Of how many blocks one is asked, where there were too many. */
const shrink = 8;
const blocksAtMost = 512;
/** More than are likely to have what is still wanted. */
const surplus = 1.5;
/** Found by one question to the index: all of them are read and sorted. */
const foundAtMost = 2_000;

/** Sessions whose title or description has every word of `q` (the last may be a beginning), or whose id it is. */
export async function searchSessions(
  database: Database,
  organizationId: string,
  q: string,
  query: SessionListQuery,
): Promise<Page<SessionRecord>> {
  const ids = [...(await findIds(database, { organizationId, q, query, wanted: query.limit + 1 })), ...idIn(q)];
  if (ids.length === 0) return { items: [], nextCursor: null };
  const { conditions, values, bind } = conditionsOf(organizationId, query);
  const { rows } = await database.pool.query<SessionRow & { cursor_time: string }>(
    `select ${sessionColumns}, ${cursorColumn("session")} from session
     where session.id = any(${bind(ids)}::uuid[]) and ${conditions} ${newestFirst}`,
    values,
  );
  return pageOf(rows, query.limit, toSessionRecord);
}

/** The id that `q` is, or none. */
const idIn = (q: string): string[] => (isUuid(q.trim()) ? [q.trim()] : []);

const newestFirst = "order by session.created_at desc, session.id desc";

/** What was found on a part of the way back. */
interface Found {
  readonly ids: readonly string[];
  /** Where the way goes on, and in which block; null where it ends. */
  readonly next: { readonly cursor: string; readonly block: number } | null;
}

async function findIds(database: Database, search: Search): Promise<readonly string[]> {
  const { query, wanted } = search;
  if (searchWords(search.q) === "") return [];
  let sessions = wanted * lookedAtForEach;
  const first = await look(database, search, sessions);
  const ids = [...first.ids];
  let { next } = first;
  if (ids.length >= wanted || next === null) return ids;
  const { asked, oldest } = await readIndex(database, search);
  const filtered = query.status !== undefined || query.automationId !== undefined;
  let looks = ids.length * rather >= wanted;
  let grow: number = filtered ? growth.filtered : growth.all;
  let tooMany = 0;
  let blocks = Math.max(1, (first.begin - next.block) * grow);
  while (next !== null && ids.length < wanted) {
    const rest: Search = { ...search, query: { ...query, cursor: next.cursor }, wanted: wanted - ids.length };
    const span: Span = { first: Math.max(oldest, next.block - blocks + 1), last: next.block };
    const found: Found | null = looks
      ? await look(database, rest, (sessions *= lookGrowth))
      : await ask(database, rest, asked, span, oldest);
    if (found === null) {
      tooMany += 1;
      // Every second time, where it may be the filter that leaves few.
      looks = span.first === span.last || (filtered && tooMany % 2 === 0);
      grow = growth.afterTooMany;
      blocks = Math.max(1, Math.floor((span.last - span.first + 1) / shrink));
    } else {
      const likely = Math.ceil((blocks * (rest.wanted - found.ids.length) * surplus) / found.ids.length);
      if (!looks) blocks = Math.min(blocks * grow, likely, blocksAtMost);
      looks = false;
      ids.push(...found.ids);
      ({ next } = found);
    }
  }
  return ids;
}

interface LookedRow {
  readonly ids: string[];
  readonly begin: number;
  /** Of the last that was looked at; null where there are not so many. */
  readonly id: string | null;
  readonly cursor_time: string;
  readonly block: number;
}

/** Looks at the next sessions of the list. @param count how many @returns also the block that they begin in */
async function look(
  database: Database,
  { organizationId, q, query, wanted }: Search,
  count: number,
): Promise<Found & { readonly begin: number }> {
  const { conditions, values, bind } = conditionsOf(organizationId, query);
  const among = `from session where ${conditions} ${newestFirst}`;
  const { rows } = await database.pool.query<LookedRow>(
    `select array(
       select session.id from (select id, created_at, title, description ${among} limit ${bind(count)}) as session
       where ${hasWords(bind(searchWords(q)))} ${newestFirst} limit ${bind(wanted)}) as ids,
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
  readonly asked: Asked;
  /** The organization's first and last blocks. */
  readonly oldest: number;
  readonly newest: number;
}

async function readIndex(
  database: Database,
  { organizationId, q }: Pick<Search, "organizationId" | "q">,
): Promise<Index> {
  const block = (order: string): string =>
    `(select ${blockOf("created_at")} from session where organization_id = $1 order by created_at ${order} limit 1)`;
  const { rows } = await database.pool.query<{ lexemes: string; oldest: number | null; newest: number | null }>(
    `select ${lexemesOf("$2")} as lexemes, ${block("asc")} as oldest, ${block("desc")} as newest`,
    [organizationId, searchWords(q)],
  );
  const { lexemes = "", oldest, newest } = rows[0] ?? {};
  return { asked: askedOf(lexemes, idIn(q).length > 0), oldest: oldest ?? 0, newest: newest ?? -1 };
}

/** Before every other of its moment. */
const firstId = "00000000-0000-0000-0000-000000000000";

/** Asks the index. @returns null where there are too many to sort */
async function ask(
  database: Database,
  { organizationId, q, query, wanted }: Search,
  asked: Asked,
  span: Span,
  oldest: number,
): Promise<Found | null> {
  const { conditions, values, bind } = conditionsOf(organizationId, query);
  const questions = bind(questionsOf(organizationId, asked.lexemes, span));
  const { rows } = await database.pool.query<{ count: number; ids: string[] }>(
    `with found as materialized (
       select * from sessions_with_words(${questions}::tsquery[], ${bind(foundAtMost + 1)})
       union all ${runningWith(q, bind)} and session.created_at >= ${bind(beginOf(span.first))}::timestamptz)
     select (select count(*)::integer from found) as count,
       array(select session.id from found as session where ${conditions} and ${confirmed(asked, q, bind)}
         ${newestFirst} limit ${bind(wanted)}) as ids`,
    values,
  );
  const { count = 0, ids = [] } = rows[0] ?? {};
  if (count > foundAtMost) return null;
  const cursor = cursorOf({ createdAt: beginOf(span.first), id: firstId });
  return { ids, next: span.first > oldest ? { cursor, block: span.first - 1 } : null };
}

/** The index has no session that runs, of which there are few. */
const runningWith = (q: string, bind: (value: unknown) => string): string =>
  `select session.id, session.organization_id, session.status, session.automation_id, session.created_at from session
   where session.organization_id = $1 and session.status = 'running' and ${hasWords(bind(searchWords(q)))}`;

/** SQL of whether what the index found does have the words. */
const confirmed = ({ exact }: Asked, q: string, bind: (value: unknown) => string): string =>
  exact
    ? "true"
    : `(select ${hasWords(bind(searchWords(q)), "whole")} from session as whole where whole.id = session.id)`;

/**
 * All sessions with the words, for those who number their pages and so must count.
 * @param options.skip how many of the newest are left out
 * @returns ids of at most `limit` of them
 */
export async function countWithWords(
  database: Database,
  organizationId: string,
  { q, limit, skip }: { readonly q: string; readonly limit: number; readonly skip: number },
): Promise<{ count: number; ids: string[] }> {
  const { asked, oldest, newest } = await readIndex(database, { organizationId, q });
  const values: unknown[] = [organizationId];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const questions = bind(questionsOf(organizationId, asked.lexemes, { first: oldest, last: newest }));
  const { rows } = await database.pool.query<{ count: number; ids: string[] }>(
    `with found as materialized (
       select session.id, session.created_at from sessions_with_words(${questions}::tsquery[], null) as session
         where session.organization_id = $1 and ${confirmed(asked, q, bind)}
       union select id, created_at from (${runningWith(q, bind)}) as running
       union select id, created_at from session where id = any(${bind(idIn(q))}::uuid[]) and organization_id = $1)
     select (select count(*)::integer from found) as count,
       array(select id from found order by created_at desc, id desc limit ${bind(limit)} offset ${bind(skip)}) as ids`,
    values,
  );
  return rows[0] ?? { count: 0, ids: [] };
}
