import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Message } from "../../domain/sessions/message.ts";
import { cursorColumn, isoTime, pageOf, readCursor, withoutCursor, type WithCursor } from "../cursor.ts";
import { appendEvents } from "./events.ts";
import { requireSession, type SessionRecord } from "./sessions.ts";
import { lockSession, moveSession, notifyChange } from "./transition.ts";

/** Why a session is cancelled whose only message was withdrawn. */
const withdrawnReason = "The message that it was queued for was withdrawn.";

/**
 * Lists what a session was asked, the newest first.
 * @throws NotFoundError
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listMessages(
  database: Database,
  organizationId: string,
  sessionId: string,
  { limit, cursor }: PageQuery,
): Promise<Page<Message>> {
  const after = readCursor(cursor);
  await requireSession(database, organizationId, sessionId);
  const { rows } = await database.pool.query<WithCursor<Message>>(
    `select id, text, case when withdrawn_at is null then status else 'withdrawn' end as status,
       ${isoTime("created_at")} as "createdAt", ${cursorColumn("message")}
     from message where session_id = $1 and ($3::timestamptz is null or (created_at, id) < ($3::timestamptz, $4::uuid))
     order by created_at desc, id desc limit $2`,
    [sessionId, limit + 1, after?.createdAt, after?.id],
  );
  return pageOf(rows, limit, withoutCursor);
}

/**
 * Takes back a message that no turn has taken, repeatable. A session that was queued for nothing else is cancelled.
 * @throws NotFoundError
 * @throws ConflictError if a turn has taken it, or it is the session's first
 */
export async function withdrawMessage(
  database: Database,
  organizationId: string,
  sessionId: string,
  messageId: string,
): Promise<SessionRecord> {
  const isAtRest = await database.transaction((transaction) =>
    withdrawMessageIn(transaction, organizationId, sessionId, messageId),
  );
  notifyWithdrawn(database, sessionId, isAtRest);
  return requireSession(database, organizationId, sessionId);
}

/**
 * Notifies of a withdrawn message, once that is committed. @param isAtRest whether its session was cancelled with it
 */
export function notifyWithdrawn(database: Database, sessionId: string, isAtRest: boolean): void {
  if (isAtRest) notifyChange(database, sessionId, "cancelled");
  else database.notify("offstage_event", sessionId);
}

/**
 * Takes back a message within a transaction, as `withdrawMessage` does: once it is committed, the caller notifies (`notifyWithdrawn`).
 * @returns whether the session was cancelled, since nothing else waits
 */
export async function withdrawMessageIn(
  transaction: Queryable,
  organizationId: string,
  sessionId: string,
  messageId: string,
): Promise<boolean> {
  // No worker takes a message meanwhile: that locks the session too.
  const session = await lockSession(transaction, organizationId, sessionId);
  const { rows } = await transaction.query<{ status: string; position: number; isWithdrawn: boolean }>(
    `select status, position, withdrawn_at is not null as "isWithdrawn" from message where id = $1 and session_id = $2`,
    [messageId, sessionId],
  );
  const [message] = rows;
  if (message === undefined) throw new NotFoundError(`message ${messageId} was not found`);
  if (message.isWithdrawn) return false;
  if (message.position === 1) {
    throw new ConflictError(`message ${messageId} is the session's first: cancel or delete the session instead`);
  }
  if (message.status !== "pending") {
    throw new ConflictError(`message ${messageId} can't be withdrawn: a turn has taken it`);
  }
  await transaction.query("update message set status = 'done', withdrawn_at = now() where id = $1", [messageId]);
  await appendEvents(transaction, sessionId, [{ type: "message.withdrawn", data: { messageId } }]);
  if (session.status !== "queued") return false;
  // Nothing else waits; and it was queued for what was withdrawn, or all that was answered is delivered.
  const left = await transaction.query(
    `select from session where id = $1 and not exists (select from message where session_id = $1 and status = 'pending')
       and (exists (select from message where session_id = $1 and withdrawn_at is not null and created_at = session.queued_at)
         or not exists (select from message where session_id = $1 and withdrawn_at is null
           and (status <> 'done' or position > session.settled_messages)))`,
    [sessionId],
  );
  if (left.rowCount === 0) return false;
  await moveSession(transaction, session, "cancelled", { reason: withdrawnReason });
  return true;
}

/**
 * Locks a session until the transaction ends, so that no turn takes a message of it meanwhile.
 * @param ids of messages, the session's or others
 * @returns those of them that can be withdrawn
 */
export async function lockWaitingMessages(
  transaction: Queryable,
  organizationId: string,
  sessionId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  await lockSession(transaction, organizationId, sessionId);
  const { rows } = await transaction.query<{ id: string }>(
    `select id from message where session_id = $1 and id = any($2::uuid[]) and status = 'pending' and position > 1`,
    [sessionId, ids],
  );
  return new Set(rows.map(({ id }) => id));
}
