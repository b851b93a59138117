import type { Database } from "../database/database.ts";
import { isOver, pruneJobsBefore, removeRows } from "./prune.ts";

// Deletes the oldest events, jobs and ledger entries when they take more of the database than the operator allows.

/** Sessions whose events one statement counts; they are locked meanwhile. */
const countedAtOnce = 10;
/** Sessions that one pass considers for removal. */
const sessionsAtOnce = 100;
/** Events that one transaction deletes, so that it holds its locks only briefly. */
const batchSize = 1_000;
/** Jobs or ledger entries that one statement reads. */
const rowsAtOnce = 10_000;
/** Sorts after every other id. */
const lastId = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** SQL for the bytes of a row. For the whole row's size PostgreSQL would read its out-of-line values. */
export const eventBytes = "(60 + pg_column_size(event.type) + pg_column_size(event.data))";
/** The same of a job. */
export const jobBytes =
  "(200 + coalesce(pg_column_size(job.payload), 0) + coalesce(pg_column_size(job.task), 0) + coalesce(pg_column_size(job.error), 0))";

/** The same of a ledger entry without a job. */
const arrivalBytes =
  "(200 + coalesce(pg_column_size(arrival.payload), 0) + coalesce(pg_column_size(arrival.decisions), 0) + coalesce(pg_column_size(arrival.reason), 0))";

/** Most bytes that the events of ended sessions may take in the database; 0: no limit. */
export interface EventBounds {
  /** Of all sessions together: beyond it the events of those that ended first go. */
  readonly all: number;
  /** Of one session: beyond it its oldest events go. */
  readonly each: number;
}

/**
 * Deletes events of ended sessions that take more room than they may. The sessions themselves stay, as with `pruneEvents`. Those
 * that run or wait keep theirs, and are not counted.
 * @returns how many events
 */
export async function boundEvents(
  database: Database,
  { all, each }: EventBounds,
  signal: AbortSignal,
): Promise<number> {
  if (all === 0 && each === 0) return 0;
  await countBytes(database, signal);
  let count = 0;
  if (each > 0) {
    const large = await database.pool.query<{ id: string; bytes: string }>(
      `select id, event_bytes as bytes from session where ${isOver} and event_bytes > 0 and event_bytes > $1`,
      [each],
    );
    for (const { id, bytes } of large.rows) count += await removeOldest(database, id, Number(bytes) - each, signal);
  }
  if (all > 0) {
    const { rows } = await database.pool.query<{ total: string | null }>(
      `select sum(event_bytes) as total from session where ${isOver} and event_bytes > 0`,
    );
    count += await removeFirstEnded(database, Number(rows[0]?.total ?? 0) - all, signal);
  }
  return count;
}

/** Counts what the events of each session take that has ended since they were last counted. */
async function countBytes(database: Database, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { rowCount } = await database.pool.query(
      `with ended as materialized (
         select id from session where ${isOver} and (event_bytes_at is null or event_bytes_at < finished_at)
         order by finished_at limit ${countedAtOnce} for no key update skip locked)
       update session set event_bytes_at = greatest(now(), finished_at), event_bytes =
         (select coalesce(sum(${eventBytes}), 0) from event where event.session_id = session.id)
       where id in (select id from ended)`,
    );
    if (rowCount !== countedAtOnce) return;
  }
}

/** Removes events of the sessions that ended first, all of a session's, until so many bytes are gone. */
async function removeFirstEnded(database: Database, bytes: number, signal: AbortSignal): Promise<number> {
  let count = 0;
  let left = bytes;
  let first: string | undefined;
  while (left > 0 && !signal.aborted) {
    const { rows } = await database.pool.query<{ id: string; bytes: string }>(
      `select id, event_bytes as bytes from session where ${isOver} and event_bytes > 0
       order by finished_at limit ${sessionsAtOnce}`,
    );
    let removed = 0;
    for (const session of rows) {
      if (left <= 0) break;
      removed += await removeOldest(database, session.id, Infinity, signal);
      left -= Number(session.bytes);
    }
    count += removed;
    // The others have been claimed meanwhile. Those are gone that were counted, and have no events any more.
    if (removed === 0 && rows[0]?.id === first) break;
    first = rows[0]?.id;
  }
  return count;
}

/**
 * Removes a session's oldest events until so many bytes are gone, unless it is claimed meanwhile.
 * @returns how many events
 */
async function removeOldest(database: Database, id: string, bytes: number, signal: AbortSignal): Promise<number> {
  let count = 0;
  let left = bytes;
  while (left > 0 && !signal.aborted) {
    const batch = await removeBatch(database, id, left);
    count += batch.count;
    left -= batch.bytes;
    if (batch.count < batchSize) break;
  }
  return count;
}

function removeBatch(database: Database, id: string, atLeast: number): Promise<{ count: number; bytes: number }> {
  return database.transaction(async (transaction) => {
    // This lock lets other rows refer to the session, but prevents a claim.
    const locked = await transaction.query(
      `select from session where id = $1 and ${isOver} for no key update skip locked`,
      [id],
    );
    if (locked.rowCount === 0) return { count: 0, bytes: 0 };
    const { rows } = await transaction.query<{ count: number; bytes: string | null; through: string | null }>(
      `with oldest as (
         select seq, ${eventBytes} as bytes from event where session_id = $1 order by seq limit ${batchSize}),
       counted as (select seq, bytes, sum(bytes) over (order by seq) - bytes as before from oldest),
       removed as (
         delete from event using counted where event.session_id = $1 and event.seq = counted.seq and counted.before < $2
         returning counted.seq, counted.bytes)
       select count(*)::integer as count, sum(bytes) as bytes, max(seq) as through from removed`,
      [id, atLeast === Infinity ? Number.MAX_SAFE_INTEGER : atLeast],
    );
    const { count = 0, bytes, through = null } = rows[0] ?? {};
    const gone = Number(bytes ?? 0);
    await transaction.query(
      `update session set events_removed_through = coalesce($2, events_removed_through),
         event_bytes = case when $4 then 0 else greatest(0, event_bytes - $3) end where id = $1`,
      [id, through, gone, count < batchSize && atLeast === Infinity],
    );
    return { count, bytes: gone };
  });
}

/**
 * Deletes the jobs that ended first, if all that have ended take more room than they may.
 * @param bytes 0: no limit
 * @returns how many jobs
 */
export async function boundJobs(database: Database, bytes: number, signal: AbortSignal): Promise<number> {
  const at = await whereRoomEnds(
    database,
    { from: `job where ${isOver}`, time: "updated_at", bytes: jobBytes },
    bytes,
    signal,
  );
  return at === null ? 0 : pruneJobsBefore(database, at, signal);
}

/**
 * Deletes the oldest ledger entries without a job, if all that are decided take more room than they may.
 * @param bytes 0: no limit
 * @returns how many
 */
export async function boundArrivals(database: Database, bytes: number, signal: AbortSignal): Promise<number> {
  const rows = { from: "arrival where outcome is not null", time: "created_at", bytes: arrivalBytes };
  const at = await whereRoomEnds(database, rows, bytes, signal);
  if (at === null) return 0;
  const condition = "outcome is not null and created_at <= $1::timestamptz";
  return removeRows(database, "arrival", { condition, values: [at] }, signal);
}

/**
 * From the newest back, so that no more is read than may be kept.
 * @param rows.from the table and the condition of the rows that count
 * @param rows.time the column by which they go, the oldest first
 * @param rows.bytes SQL for what a row takes
 * @param bytes that may be kept; 0: no limit
 * @returns the time of the first row beyond, as PostgreSQL writes it; null: there is none
 */
async function whereRoomEnds(
  database: Database,
  rows: { readonly from: string; readonly time: string; readonly bytes: string },
  bytes: number,
  signal: AbortSignal,
): Promise<string | null> {
  if (bytes === 0) return null;
  let left = bytes;
  let last: { readonly at: string; readonly id: string } = { at: "infinity", id: lastId };
  while (!signal.aborted) {
    const { rows: found }: { rows: { at: string; id: string; bytes: number }[] } = await database.pool.query(
      `select ${rows.time}::text as at, id, ${rows.bytes} as bytes from ${rows.from}
         and (${rows.time}, id) < ($1::timestamptz, $2::uuid)
       order by ${rows.time} desc, id desc limit ${rowsAtOnce}`,
      [last.at, last.id],
    );
    for (const row of found) {
      left -= row.bytes;
      if (left < 0) return row.at;
      last = row;
    }
    if (found.length < rowsAtOnce) break;
  }
  return null;
}
