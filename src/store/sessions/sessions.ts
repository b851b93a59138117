import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import type { SessionDiff } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { resumeConversations } from "../conversations/resume.ts";
import { appendEvents } from "./events.ts";
import { countWithWords } from "./search.ts";
import { sessionColumns, type SessionRecord } from "./session-record.ts";
import { lockSession, moveSession, notifyChange, retryNow } from "./transition.ts";

export type { SessionRecord } from "./session-record.ts";

/**
 * Reads a session.
 * @throws NotFoundError
 */
export async function requireSession(database: Database, organizationId: string, id: string): Promise<SessionRecord> {
  const session = await getSession(database, organizationId, id);
  if (session === null) throw new NotFoundError(`session ${id} was not found`);
  return session;
}

/** Reads a session; null if the organization has none with this id. */
export async function getSession(
  database: Database,
  organizationId: string,
  id: string,
): Promise<SessionRecord | null> {
  const { rows } = await database.pool.query<SessionRecord>({
    name: "get_session",
    text: `select ${sessionColumns} from session where session.id = $1 and session.organization_id = $2`,
    values: [id, organizationId],
  });
  return rows[0] ?? null;
}

/** A numbered page of sessions with the total count, for the older `/task` endpoints. */
export async function pageSessions(
  database: Database,
  organizationId: string,
  { limit, page, q }: { readonly limit: number; readonly page: number; readonly q?: string | undefined },
): Promise<{ items: SessionRecord[]; totalCount: number }> {
  const skip = (page - 1) * limit;
  const { count, ids } =
    q === undefined
      ? await countAll(database, organizationId, { limit, skip })
      : await countWithWords(database, organizationId, { q, limit, skip });
  const { rows } = await database.pool.query<SessionRecord>(
    `select ${sessionColumns} from session where session.id = any($1::uuid[])
     order by session.created_at desc, session.id desc`,
    [ids],
  );
  return { items: rows, totalCount: count };
}

async function countAll(
  database: Database,
  organizationId: string,
  { limit, skip }: { readonly limit: number; readonly skip: number },
): Promise<{ count: number; ids: string[] }> {
  const { rows } = await database.pool.query<{ count: number; ids: string[] }>(
    `select (select count(*)::integer from session where organization_id = $1) as count,
       array(select id from session where organization_id = $1 order by created_at desc, id desc limit $2 offset $3) as ids`,
    [organizationId, limit, skip],
  );
  return rows[0] ?? { count: 0, ids: [] };
}

/**
 * Queues a draft or a session that has ended, and lets one that is queued for a retry be claimed at once.
 * @throws NotFoundError
 * @throws ConflictError if the session is queued for nothing else, running or waiting
 */
export async function queueSession(database: Database, organizationId: string, id: string): Promise<SessionRecord> {
  await database.transaction(async (transaction) => {
    const session = await lockSession(transaction, organizationId, id);
    if (session.status === "queued" && session.isRetried) return retryNow(transaction, id);
    // A running session goes back to the queue only if its attempt is; no client can request that.
    if (session.status !== "draft" && !isFinal(session.status)) {
      throw new ConflictError(`session ${id} is already ${session.status}`);
    }
    if (session.status === "failed" || session.status === "cancelled") {
      // If the last message was not answered, it is answered again. If it was, only the steps after the agent's are repeated.
      await transaction.query(
        `update message set status = 'pending' where session_id = $1 and status <> 'done'
           and position = (select max(position) from message where session_id = $1)`,
        [id],
      );
    }
    return moveSession(transaction, session, "queued");
  });
  notifyChange(database, id, "queued");
  return requireSession(database, organizationId, id);
}

/**
 * Cancels a session: at once if no worker has it, else by a request to its worker.
 * @throws NotFoundError
 * @throws ConflictError if the session has ended
 */
export async function cancelSession(database: Database, organizationId: string, id: string): Promise<SessionRecord> {
  const runs = await database.transaction(async (transaction) => {
    const session = await lockSession(transaction, organizationId, id);
    if (isFinal(session.status)) throw new ConflictError(`session ${id} is already ${session.status}`);
    if (session.worker === null) {
      await moveSession(transaction, session, "cancelled");
      return false;
    }
    await transaction.query("update session set cancel_requested = true, updated_at = now() where id = $1", [id]);
    return true;
  });
  if (runs) database.notify("offstage_cancel", id);
  notifyChange(database, id, "cancelled");
  return requireSession(database, organizationId, id);
}

/**
 * Adds a follow-up message, idempotent by its id. A session that has ended is queued again; a running one handles the
 * message after its current turn. If the session was cancelled, the new message replaces the cancelled one. A message
 * from a person restarts the feedback loop at the session's pull requests if it had stopped.
 * @throws NotFoundError
 * @throws ConflictError while the session is being cancelled, because that would also cancel the message
 */
export async function addMessage(
  database: Database,
  organizationId: string,
  id: string,
  message: NewMessage,
): Promise<SessionRecord> {
  await database.transaction((transaction) =>
    resumeConversations(transaction, organizationId, id, () => addMessageIn(transaction, organizationId, id, message)),
  );
  notifyChange(database, id, "queued");
  return requireSession(database, organizationId, id);
}

/** A follow-up message. */
export interface NewMessage {
  readonly id: string;
  readonly text: string;
  readonly from: string | null;
  /** Whether its turn begins with the target branches merged into the work branches; false if omitted. */
  readonly mergesTarget?: boolean;
}

/** Adds a message of any sender within a transaction: once it is committed, the caller notifies (`notifyChange`). */
export async function addMessageIn(
  transaction: Queryable,
  organizationId: string,
  id: string,
  { id: messageId, text, from, mergesTarget = false }: NewMessage,
): Promise<void> {
  const session = await lockSession(transaction, organizationId, id);
  const sent = await transaction.query("select 1 from message where id = $1 and session_id = $2", [messageId, id]);
  if (sent.rowCount === 1) return;
  if (session.isSetupTrial) throw new ConflictError(`session ${id} is a trial of a setup, which has no agent`);
  if (session.cancelRequested) {
    throw new ConflictError(`session ${id} is being cancelled: send the message again once it is`, 1);
  }
  if (session.status === "cancelled") await withdrawMessage(transaction, id);
  await transaction.query(
    `insert into message (id, session_id, position, text, merges_target)
       select $1, $2, coalesce(max(position), 0) + 1, $3, $4 from message where session_id = $2`,
    [messageId, id, text, mergesTarget],
  );
  await appendEvents(transaction, id, [{ type: "message.user", data: { messageId, text, from } }]);
  if (isFinal(session.status)) await moveSession(transaction, session, "queued");
  else await retryNow(transaction, id);
}

/**
 * Adds the follow-up message that has the target branches of the session's open pull requests merged into the work branch, and
 * conflicts resolved. Idempotent by its id.
 * @throws NotFoundError
 * @throws ConflictError if no pull request of the session is open, or while the session is being cancelled
 */
export async function resolveConflicts(
  database: Database,
  organizationId: string,
  id: string,
  message: { readonly id: string; readonly from: string | null },
): Promise<SessionRecord> {
  const { pullRequests } = await requireSession(database, organizationId, id);
  const targets = new Set(pullRequests.filter(({ state }) => state === "open").map(({ target }) => target));
  if (targets.size === 0)
    throw new ConflictError(`session ${id} has no open pull request whose conflicts could be resolved`);
  const text = `Bring the branch up to date with ${[...targets].join(" and ")}: resolve the conflicts if there are any, and check that the work still holds with what is new there.`;
  return addMessage(database, organizationId, id, { ...message, text, mergesTarget: true });
}

/**
 * Marks the message whose turn was cancelled as done: a user who continues with another message does not want it
 * answered first.
 */
async function withdrawMessage(transaction: Queryable, sessionId: string): Promise<void> {
  await transaction.query(
    `with withdrawn as (
       update message set status = 'done' where session_id = $1 and status = 'running' returning position)
     update session set settled_messages = greatest(settled_messages, (select max(position) from withdrawn))
     where id = $1 and exists (select from withdrawn)`,
    [sessionId],
  );
}

/**
 * The session's changes so far: each repository's patch as last exported from its sandbox. Null if there is no such
 * session.
 */
export async function getDiff(database: Database, organizationId: string, id: string): Promise<SessionDiff | null> {
  if ((await getSession(database, organizationId, id)) === null) return null;
  const { rows } = await database.pool.query<SessionDiff["repositories"][number]>(
    `select part.repository_id as "repositoryId", coalesce(repository.name, part.directory) as name,
       part.base_sha as "baseSha", part.head_sha as "headSha", coalesce(part.patch, '') as patch,
       part.patch_truncated as truncated
     from session_repository part left join repository on repository.id = part.repository_id
     where part.session_id = $1 order by part.position`,
    [id],
  );
  return { repositories: rows };
}
