import type { Database } from "../database/database.ts";
import { ConflictError, NotFoundError } from "../domain/errors/errors.ts";
import { isOver } from "./prune.ts";
import { deleteSession } from "./sessions/delete-session.ts";

// Deletes sessions that ended long ago, and the diffs of those that stay.

/** Sessions whose diffs one transaction removes: each may have twenty, of 2 MiB together. */
const diffsAtOnce = 50;

/**
 * Removes the diffs of sessions that ended more than `days` days ago. The sessions stay, with their messages and pull requests.
 * @param days 0: none are removed
 * @returns of how many sessions
 */
export async function pruneDiffs(database: Database, days: number, signal: AbortSignal): Promise<number> {
  let count = 0;
  while (days > 0 && !signal.aborted) {
    const { rowCount } = await database.pool.query(
      `with ended as (
         select id from session where ${isOver} and (diffs_removed_at is null or diffs_removed_at < finished_at)
           and finished_at < now() - $1 * interval '1 day'
         order by finished_at limit ${diffsAtOnce} for no key update skip locked),
       removed as (
         update session_repository set patch = null, patch_truncated = true
         where session_id in (select id from ended) and patch <> '')
       update session set diffs_removed_at = now() where id in (select id from ended)`,
      [days],
    );
    count += rowCount ?? 0;
    if ((rowCount ?? 0) < diffsAtOnce) break;
  }
  return count;
}

/** Sessions that are looked up at once to be deleted. */
const deletedAtOnce = 100;

/**
 * Deletes sessions that ended more than `days` days ago, each as a person would (`deleteSession`), but that figures keep them.
 * @param days 0: none are deleted
 * @returns how many
 */
export async function pruneSessions(database: Database, days: number, signal: AbortSignal): Promise<number> {
  let count = 0;
  for (let found = deletedAtOnce; days > 0 && found === deletedAtOnce;) {
    const { rows } = await database.pool.query<{ id: string; organizationId: string }>(
      `select id, organization_id as "organizationId" from session
       where ${isOver} and finished_at < now() - $1 * interval '1 day' order by finished_at limit ${deletedAtOnce}`,
      [days],
    );
    found = rows.length;
    for (const { id, organizationId } of rows) {
      if (signal.aborted) return count;
      try {
        await deleteSession(database, organizationId, id, true);
        count += 1;
      } catch (error) {
        // It was deleted or continued meanwhile.
        if (!(error instanceof NotFoundError || error instanceof ConflictError)) throw error;
      }
    }
  }
  return count;
}
