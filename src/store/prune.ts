import type { Database } from "../database/database.ts";
import { isUuid } from "../domain/fields/uuid.ts";

// Deletes what is older than an organization or the operator keeps it: events, jobs, ledger entries, keys of deliveries. What a whole
// session takes is in prune-sessions.ts, what goes because of its size in prune-by-size.ts. `removeRows` is how each of them deletes.

/** Rows that one transaction deletes, so that it holds its locks only briefly. */
const batchSize = 1_000;

/** SQL condition: a session or job has ended. */
export const isOver = "status in ('completed', 'failed', 'cancelled')";

/**
 * SQL condition: a session ended more than so many days ago.
 * @param days the placeholder of that number, for example "$1"
 */
export const endedBefore = (days: string): string =>
  `${isOver} and coalesce(finished_at, updated_at) < now() - ${days} * interval '1 day'`;

/**
 * Calls `remove` for a session that ended more than `days` days ago. The session can't be claimed meanwhile, because
 * its row is locked.
 * @returns whether `remove` was called; null if there is no such session
 */
export function whileEnded(
  database: Database,
  sessionId: string,
  days: number,
  remove: () => Promise<void>,
): Promise<boolean | null> {
  if (!isUuid(sessionId)) return Promise.resolve(null);
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<{ over: boolean }>(
      `select ${endedBefore("$2")} as over from session where id = $1 for update skip locked`,
      [sessionId, days],
    );
    if (rows[0]?.over === true) {
      await remove();
      return true;
    }
    // A locked session exists, so the answer is false and not null.
    const known = await transaction.query("select 1 from session where id = $1", [sessionId]);
    return known.rowCount === 1 ? false : null;
  });
}

/**
 * Deletes rows in small batches, each in its own transaction. Rows that another worker has locked, and rows that are
 * left when `signal` aborts, stay until the next call.
 * @param condition SQL condition on the table's columns, with placeholders for `values`
 * @returns how many rows
 */
export function removeRows(
  database: Database,
  table:
    | "answer"
    | "api_key"
    | "arrival"
    | "audit_entry"
    | "automation"
    | "automation_file"
    | "automation_sync"
    | "automation_state"
    | "browser_session"
    | "conversation"
    | "conversation_item"
    | "idempotency"
    | "insight_day"
    | "insight_kept_day"
    | "insight_mark"
    | "invitation_mail"
    | "job"
    | "login_link"
    | "model_spend"
    | "oauth_grant"
    | "share_link"
    | "oauth_request"
    | "notice"
    | "notice_delivery"
    | "notice_preference"
    | "push_subscription"
    | "session_read"
    | "pull_request"
    | "received_key"
    | "told_state"
    | "forge_account"
    | "forge_connection"
    | "registry"
    | "repository"
    | "secret"
    | "trigger"
    | "user_account"
    | "webhook"
    | "webhook_delivery",
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

/**
 * @param remove deletes one batch; a batch smaller than `batchSize` is the last one
 * @returns how many rows
 */
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
 * Deletes the events of sessions that ended more than `days` days ago. The session itself stays, with its messages,
 * diff and pull requests, and records up to which number its events were deleted.
 * @param days 0: none are deleted
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

/**
 * Deletes one batch of events, of the session that ended first.
 * @returns how many events; null if there is no such session
 */
function removeOldestEvents(database: Database, days: number): Promise<number | null> {
  return database.transaction(async (transaction) => {
    // This lock lets other rows refer to the session, but prevents a claim.
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
         events_removed_at = case when $3 then now() else events_removed_at end,
         event_bytes = case when $3 then 0 else event_bytes end
       where id = $1`,
      [session.id, through, count < batchSize],
    );
    return count;
  });
}

/**
 * Deletes jobs that ended more than `days` days ago. Their sessions stay, without the link to the job.
 * @param days 0: none are deleted
 * @returns how many jobs
 */
export async function pruneJobs(database: Database, days: number, signal: AbortSignal): Promise<number> {
  if (days === 0) return 0;
  const { rows } = await database.pool.query<{ at: string }>("select (now() - $1 * interval '1 day')::text as at", [
    days,
  ]);
  return pruneJobsBefore(database, rows[0]?.at ?? "-infinity", signal);
}

/**
 * Deletes jobs that ended at a time or before it, unless their session is under way, or what is expected of their automation still
 * counts them.
 * @param at a time as PostgreSQL writes it
 * @returns how many jobs
 */
export function pruneJobsBefore(database: Database, at: string, signal: AbortSignal): Promise<number> {
  return inBatches(signal, () =>
    database.transaction(async (transaction) => {
      const { rows } = await transaction.query<{ id: string }>(
        `select id from job where ${isOver} and updated_at <= $1::timestamptz
           and not exists (select 1 from session where job_id = job.id and not (${isOver}))
           and not exists (
             select 1 from automation where automation.id = job.automation_id and automation.expect is not null
               and job.created_at > now() - (automation.expect ->> 'everyHours')::integer * interval '1 hour')
         order by updated_at limit ${batchSize} for update skip locked`,
        [at],
      );
      const ids = rows.map(({ id }) => id);
      await transaction.query("update session set job_id = null where job_id = any($1)", [ids]);
      await transaction.query("delete from job where id = any($1)", [ids]);
      return ids.length;
    }),
  );
}

/**
 * Deletes ledger entries without a job that are older than `days` days.
 * @param days 0: none are deleted
 * @returns how many
 */
export async function pruneArrivals(database: Database, days: number, signal: AbortSignal): Promise<number> {
  if (days === 0) return 0;
  const condition = "outcome is not null and created_at < now() - $1 * interval '1 day'";
  return removeRows(database, "arrival", { condition, values: [days] }, signal);
}

/**
 * Deletes conversations without activity for `days` days, with their items: not while their pull request or their
 * session's is open, their session is running, or one of their items is still to be started or answered. A later
 * comment begins a new conversation.
 * @param days 0: none are deleted
 * @returns how many
 */
export async function pruneConversations(database: Database, days: number, signal: AbortSignal): Promise<number> {
  if (days === 0) return 0;
  const condition = `updated_at < now() - $1 * interval '1 day' and due_at is null
    and not exists (select from conversation_run where conversation_id = conversation.id)
    and not exists (select from session where session.id = conversation.session_id and not (${isOver}))
    and not exists (select from pull_request where state = 'open' and pull_request.session_id = conversation.session_id)
    and not exists (select from pull_request where state = 'open' and kind = 'pullRequest'
      and pull_request.repository_id = conversation.repository_id and pull_request.number = conversation.number)`;
  return removeRows(database, "conversation", { condition, values: [days] }, signal);
}

/** Days for which a second delivery is known as such: longer than any sender tries. */
const receivedKeyDays = 30;

/**
 * Deletes the keys and recorded states of old deliveries.
 * @returns how many of their keys
 */
export async function pruneReceivedKeys(database: Database, signal: AbortSignal): Promise<number> {
  const before = (column: string) => ({
    condition: `${column} < now() - $1 * interval '1 day'`,
    values: [receivedKeyDays],
  });
  await removeRows(database, "told_state", before("updated_at"), signal);
  return removeRows(database, "received_key", before("created_at"), signal);
}
