import type { Database } from "../database/database.ts";
import { isUuid } from "../domain/uuid.ts";

/** Rows that one transaction removes: none holds anybody up for longer than these take. */
const batchSize = 1_000;

const isOver = "status in ('completed', 'failed', 'cancelled')";

/** SQL on a session's columns: whether it was over for so many days. @param days place of that value */
export const wasOverFor = (days: string): string =>
  `${isOver} and coalesce(finished_at, updated_at) < now() - ${days} * interval '1 day'`;

/**
 * Does `remove` for a session that was over for so many days, while nobody can take it up: a claim waits for the row.
 * @returns whether it did; null where there is no such session
 */
export function whileOver(
  database: Database,
  sessionId: string,
  days: number,
  remove: () => Promise<void>,
): Promise<boolean | null> {
  if (!isUuid(sessionId)) return Promise.resolve(null);
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<{ over: boolean }>(
      `select ${wasOverFor("$2")} as over from session where id = $1 for update skip locked`,
      [sessionId, days],
    );
    if (rows[0]?.over === true) {
      await remove();
      return true;
    }
    // Locked by somebody who works on it is not unknown.
    const known = await transaction.query("select 1 from session where id = $1", [sessionId]);
    return known.rowCount === 1 ? false : null;
  });
}

/**
 * Removes rows in small batches, each a transaction of its own. What another worker holds is left to it, and what is left
 * when `signal` aborts is there for the next time.
 * @param condition SQL on the table's columns, with `values` for its places
 * @returns how many
 */
export function removeRows(
  database: Database,
  table: "arrival" | "audit_entry" | "idempotency" | "webhook_delivery",
  { condition, values }: { readonly condition: string; readonly values: readonly unknown[] },
  signal: AbortSignal,
): Promise<number> {
  return inBatches(signal, async () => {
    const { rowCount } = await database.pool.query(
      `delete from ${table} where ctid = any(array(
         select ctid from ${table} where ${condition} limit ${batchSize} for update skip locked))`,
      [...values],
    );
    return rowCount ?? 0;
  });
}

/** @param remove a batch; fewer than `batchSize` are the last */
async function inBatches(signal: AbortSignal, remove: () => Promise<number>): Promise<number> {
  let count = 0;
  while (!signal.aborted) {
    const removed = await remove();
    count += removed;
    if (removed < batchSize) break;
  }
  return count;
}

/**
 * Removes the events of sessions that were over for so many days. The session stays, with its messages, its diff and its
 * pull requests, and knows up to which number they are gone.
 * @param days 0 removes none
 * @returns how many events
 */
export async function pruneEvents(database: Database, days: number, signal: AbortSignal): Promise<number> {
  let count = 0;
  while (days > 0 && !signal.aborted) {
    const removed = await removeOldestEvents(database, days);
    if (removed === null) break;
    count += removed;
  }
  return count;
}

/** One batch, of the session that was over first. @returns how many; null where there is no such session */
function removeOldestEvents(database: Database, days: number): Promise<number | null> {
  return database.transaction(async (transaction) => {
    // Held like this, it can be referred to, but not taken up.
    const { rows } = await transaction.query<{ id: string }>(
      `select id from session where ${isOver} and (events_removed_at is null or events_removed_at < finished_at)
         and finished_at < now() - $1 * interval '1 day'
       order by finished_at limit 1 for no key update skip locked`,
      [days],
    );
    const [session] = rows;
    if (session === undefined) return null;
    const removed = await transaction.query<{ count: number; through: string | null }>(
      `with removed as (
         delete from event where session_id = $1
           and seq in (select seq from event where session_id = $1 order by seq limit ${batchSize}) returning seq)
       select count(*)::integer as count, max(seq) as through from removed`,
      [session.id],
    );
    const { count, through } = removed.rows[0] ?? { count: 0, through: null };
    await transaction.query(
      `update session set events_removed_through = coalesce($2, events_removed_through),
         events_removed_at = case when $3 then now() else events_removed_at end
       where id = $1`,
      [session.id, through, count < batchSize],
    );
    return count;
  });
}

/**
 * Removes jobs that were over for so many days. Their sessions stay, and no longer name them.
 * @param days 0 removes none
 * @returns how many
 */
export async function pruneJobs(database: Database, days: number, signal: AbortSignal): Promise<number> {
  if (days === 0) return 0;
  return inBatches(signal, () =>
    database.transaction(async (transaction) => {
      const { rows } = await transaction.query<{ id: string }>(
        `select id from job where ${isOver} and updated_at < now() - $1 * interval '1 day'
           and not exists (select 1 from session where job_id = job.id and not (${isOver}))
         order by updated_at limit ${batchSize} for update skip locked`,
        [days],
      );
      const ids = rows.map(({ id }) => id);
      await transaction.query("update session set job_id = null where job_id = any($1)", [ids]);
      await transaction.query("delete from job where id = any($1)", [ids]);
      return ids.length;
    }),
  );
}

/** Forgets what came in and started no job, as long after as the jobs. @returns how many */
export async function pruneArrivals(database: Database, days: number, signal: AbortSignal): Promise<number> {
  if (days === 0) return 0;
  const condition = "created_at < now() - $1 * interval '1 day'";
  return removeRows(database, "arrival", { condition, values: [days] }, signal);
}
