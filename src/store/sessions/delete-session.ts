import type { Database } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { listedChannel } from "./changed-sessions.ts";
import { lockSession } from "./transition.ts";

/** Channel on which workers learn that a session was deleted, to remove what they have of it on disk. */
export const deletedChannel = "offstage_deleted";

/**
 * Deletes a session with its events, messages, diffs and checkpoints; housekeeping removes what the object store has. Jobs and
 * ledger entries stay, without a session, and so do the pull requests and comments on the forge.
 * @param isForAge the figures of its days stay as they are from then on (`mark_insight`); otherwise they are counted without it
 * @throws NotFoundError
 * @throws ConflictError if the session is queued, running or waiting
 */
export async function deleteSession(
  database: Database,
  organizationId: string,
  id: string,
  isForAge = false,
): Promise<void> {
  await database.transaction(async (transaction) => {
    if (isForAge) await transaction.query("select set_config('offstage.keeps_figures', 'on', true)");
    const { status } = await lockSession(transaction, organizationId, id);
    if (status !== "draft" && !isFinal(status)) throw new ConflictError(`session ${id} is ${status}: cancel it first`);
    await transaction.query(
      `update job set session_id = (
         select other.id from session other where other.job_id = job.id and other.id <> $1 order by other.job_part limit 1)
       where session_id = $1 and organization_id = $2`,
      [id, organizationId],
    );
    await transaction.query("update arrival set session_id = null where session_id = $1 and organization_id = $2", [
      id,
      organizationId,
    ]);
    // Another session that works on the same branch goes on with its pull request.
    await transaction.query(
      `update pull_request set session_id = other.id
       from session own, session other join session_repository part on part.session_id = other.id
       where pull_request.session_id = $1 and own.id = $1 and other.id <> $1
         and other.organization_id = own.organization_id and other.branch_name = own.branch_name
         and part.repository_id = pull_request.repository_id`,
      [id],
    );
    await transaction.query("delete from pull_request where session_id = $1", [id]);
    // Notices of it that are no longer to be sent; the rest of it goes with its age.
    await transaction.query(
      `delete from webhook_delivery where organization_id = $2 and status <> 'pending'
         and (data ->> 'sessionId' = $1::text or data ->> 'id' = $1::text)`,
      [id, organizationId],
    );
    // By the ids of its comments they are known as ours when they are delivered again.
    await transaction.query(
      `update answer set text = '', problem = null, status = case status when 'pending' then 'dead' else status end
       where session_id = $1`,
      [id],
    );
    // All else that belongs to it refers to it with `on delete cascade`.
    await transaction.query("delete from session where id = $1", [id]);
  });
  database.notify(deletedChannel, id);
  database.notify(listedChannel, `${organizationId} ${id}`);
}

/** Which of these sessions exist. */
export async function existingSessions(database: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await database.pool.query<{ id: string }>("select id from session where id = any($1::uuid[])", [
    ids,
  ]);
  return new Set(rows.map(({ id }) => id));
}
