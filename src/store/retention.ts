import type { Database } from "../database/database.ts";

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
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<{ over: boolean }>(
      `select status in ('completed', 'failed', 'cancelled')
         and coalesce(finished_at, updated_at) < now() - $2 * interval '1 day' as over
       from session where id::text = $1 for update skip locked`,
      [sessionId, days],
    );
    if (rows[0]?.over === true) {
      await remove();
      return true;
    }
    // Locked by somebody who works on it is not unknown.
    const known = await transaction.query("select 1 from session where id::text = $1", [sessionId]);
    return known.rowCount === 1 ? false : null;
  });
}
