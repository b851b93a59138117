import type { Database } from "../../database/database.ts";

/** Rows that one transaction fills in: it locks them only briefly. */
const batchSize = 1_000;

/**
 * Fills in when the sessions of repositories were created, for those that were there before the column was: only then their list is read
 * in its order.
 * @returns how many were filled in
 */
export async function fillRepositoryOrder(database: Database, signal: AbortSignal): Promise<number> {
  let count = 0;
  while (!signal.aborted) {
    const { rowCount } = await database.pool.query(
      `update session_repository part set session_created_at = session.created_at
       from session, (select session_id, position from session_repository where session_created_at is null
         limit ${batchSize} for update skip locked) as unfilled
       where part.session_id = unfilled.session_id and part.position = unfilled.position and session.id = part.session_id`,
    );
    count += rowCount ?? 0;
    if (rowCount !== batchSize) break;
  }
  return count;
}
