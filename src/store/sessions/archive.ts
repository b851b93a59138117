import type { Database } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { requireSession, type SessionRecord } from "./sessions.ts";
import { lockSession } from "./transition.ts";

/**
 * Takes a session out of the usual list, or brings it back; repeatable. One that is given work comes back by itself (`move_session`).
 * @throws NotFoundError
 * @throws ConflictError if it is to be archived, and is queued, running or waiting
 */
export async function archiveSession(
  database: Database,
  organizationId: string,
  id: string,
  isArchived: boolean,
): Promise<SessionRecord> {
  await database.transaction(async (transaction) => {
    const { status } = await lockSession(transaction, organizationId, id);
    if (isArchived && status !== "draft" && !isFinal(status)) {
      throw new ConflictError(`session ${id} is ${status}: it can be archived once it has ended`);
    }
    await transaction.query(
      `update session set archived_at = case when $2 then now() end, updated_at = now()
       where id = $1 and (archived_at is null) = $2`,
      [id, isArchived],
    );
  });
  database.notify("offstage_event", id);
  return requireSession(database, organizationId, id);
}
