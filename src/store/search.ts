import type { Database } from "../database/database.ts";
import type { Page } from "../domain/list.ts";
import { conditionsOf, type SessionListQuery } from "./conditions.ts";
import { cursorColumn, pageOf } from "./cursor.ts";
import { sessionColumns, toSessionRecord, type SessionRecord, type SessionRow } from "./session-record.ts";

/**
 * Two ways lead to the newest sessions with some words: through the list, looking at each, or through the index of words,
 * sorting what it finds. The one is slow for seldom words, the other for common ones, and PostgreSQL can't tell which is
 * which of a word's beginning. So a few are looked at first, and more where some of those have the words; then the index is
 * asked, as long as it does not find too many.
 */
const lookedAt = 1_000;
const lookedAtMost = 10_000;
const foundAtMost = 5_000;

/** Sessions whose title or description has every word of `q` (the last may be a beginning), or whose id it is. */
export async function searchSessions(
  database: Database,
  organizationId: string,
  q: string,
  query: SessionListQuery,
): Promise<Page<SessionRecord>> {
  const search: Search = { organizationId, q, query };
  const ids = await findIds(database, search);
  const { rows } = await database.pool.query<SessionRow & { cursor_time: string }>(
    `select ${sessionColumns}, ${cursorColumn("session")} from session where session.id = any($1::uuid[])
     order by session.created_at desc, session.id desc`,
    [ids],
  );
  return pageOf(rows, query.limit, toSessionRecord);
}

/**
 * The words of a search as a tsquery, which takes nothing but letters and digits of them. Only the last may be a
 * beginning: for the others the index need not gather all words that begin so.
 */
function searchWords(q: string): string {
  const words = q.match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.length === 0 ? "" : `${words.join(" & ")}:*`;
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu;

/**
 * The words, or the id where it may be one: compared as what it is, so that an index answers each of the two. The index of
 * words has no session that runs, of which there are few, with an index of their own.
 */
export function searchCondition(q: string, bind: (value: unknown) => string): string {
  const words = `to_tsvector('simple', session.title || ' ' || left(session.description, 20000)) @@ to_tsquery('simple', ${bind(searchWords(q))})`;
  const found = ["status <> 'running'", "status = 'running'"].map((status) => `(session.${status} and ${words})`);
  const given = q.trim();
  if (uuid.test(given)) found.push(`session.id = ${bind(given)}::uuid`);
  return `(${found.join(" or ")})`;
}

interface Search {
  readonly organizationId: string;
  readonly q: string;
  readonly query: SessionListQuery;
}

interface Found {
  readonly id: string;
}

/** One more than the page holds, where there are so many. */
async function findIds(database: Database, search: Search): Promise<string[]> {
  const wanted = search.query.limit + 1;
  const few = await amongNewest(database, search, lookedAt);
  if (few.length === wanted) return few;
  // So many that a page takes, if the words are as frequent further on.
  const enough = (wanted / few.length) * lookedAt;
  const more = enough < lookedAtMost ? await amongNewest(database, search, lookedAtMost) : [];
  if (more.length === wanted) return more;
  return (await byIndex(database, search)) ?? (await throughList(database, search));
}

const newestFirst = "order by session.created_at desc, session.id desc";
const idsOf = (rows: readonly Found[]): string[] => rows.map(({ id }) => id);

async function amongNewest(
  database: Database,
  { organizationId, q, query }: Search,
  newest: number,
): Promise<string[]> {
  const { conditions, values, bind } = conditionsOf(organizationId, query);
  const { rows } = await database.pool.query<Found>(
    `select session.id from (
       select session.id, session.created_at, session.status, session.title, session.description from session
       where ${conditions} ${newestFirst} limit ${bind(newest)}) as session
     where ${searchCondition(q, bind)} ${newestFirst} limit ${bind(query.limit + 1)}`,
    values,
  );
  return idsOf(rows);
}

/** @returns null where there are too many to sort */
async function byIndex(database: Database, { organizationId, q, query }: Search): Promise<string[] | null> {
  const { conditions, values, bind } = conditionsOf(organizationId, query);
  const text = `with found as materialized (
      select id, created_at from session where ${conditions} and ${searchCondition(q, bind)} limit ${bind(foundAtMost + 1)})
    select id, (select count(*)::integer from found) as found from found
    order by created_at desc, id desc limit ${bind(query.limit + 1)}`;
  const rows = await database.transaction(async (transaction) => {
    // What is left is a bitmap of what the index of words finds, all of which must fit in memory.
    await transaction.query(
      "set local enable_seqscan = off; set local enable_indexscan = off; set local work_mem = '32MB'",
    );
    return (await transaction.query<Found & { found: number }>(text, values)).rows;
  });
  return (rows[0]?.found ?? 0) > foundAtMost ? null : idsOf(rows);
}

async function throughList(database: Database, { organizationId, q, query }: Search): Promise<string[]> {
  const { conditions, values, bind } = conditionsOf(organizationId, query);
  const text = `select session.id from session where ${conditions} and ${searchCondition(q, bind)}
    ${newestFirst} limit ${bind(query.limit + 1)}`;
  return database.transaction(async (transaction) => {
    await transaction.query("set local enable_seqscan = off; set local enable_bitmapscan = off");
    return idsOf((await transaction.query<Found>(text, values)).rows);
  });
}
