import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, NotFoundError, type Failure } from "../../domain/errors.ts";
import { canMove, type SessionStatus } from "../../domain/status.ts";
import { storable, storableJson } from "../../domain/text.ts";

export interface Locked {
  readonly id: string;
  readonly organizationId: string;
  readonly status: SessionStatus;
  readonly attempt: number;
  readonly cancelRequested: boolean;
  /** Null where nobody works on it. */
  readonly worker: string | null;
}

/** Locks a session's row until the transaction ends, but for rows that only refer to it. @throws NotFoundError */
export async function lockSession(queryable: Queryable, organizationId: string, id: string): Promise<Locked> {
  const { rows } = await queryable.query<Locked>(
    `select id, organization_id as "organizationId", status, attempt, cancel_requested as "cancelRequested", worker
     from session where id = $1 and organization_id = $2 for no key update`,
    [id, organizationId],
  );
  const [session] = rows;
  if (session === undefined) throw new NotFoundError(`session ${id} was not found`);
  return session;
}

/**
 * The one place where a session's status changes, with the event that tells of it in the same transaction.
 * The caller holds the row (`lockSession`).
 * @param details.brokenOff its run was cut off: it keeps its place in the queue
 * @throws ConflictError where the life of a session (domain/status.ts) has no such move
 */
export async function moveSession(
  queryable: Queryable,
  session: Locked,
  to: SessionStatus,
  details: {
    readonly reason?: string;
    readonly failure?: Failure | null;
    readonly summary?: string | null;
    readonly brokenOff?: boolean;
  } = {},
): Promise<void> {
  const { id, status: from } = session;
  if (!canMove(from, to)) throw new ConflictError(`session ${id} is ${from} and can't become ${to}`);
  const { reason = null, failure = null, summary = null, brokenOff = false } = details;
  // The change itself, with its event and what webhooks are told: migrations/0021_quick_claim.sql.
  await queryable.query({
    name: "move_session",
    text: "select from move_session($1, $2, $3, $4, $5, $6)",
    values: [
      id,
      to,
      reason,
      failure === null ? null : storableJson(failure),
      summary === null ? null : storable(summary),
      brokenOff,
    ],
  });
}

/** After the commit: wakes those who watch the session, and the workers where there is something to take. */
export function announce(database: Database, sessionId: string, status: SessionStatus): void {
  database.notify("offstage_event", sessionId);
  if (status === "queued") database.notify("offstage_work", "session");
}
