import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, NotFoundError, type Failure } from "../../domain/errors.ts";
import { canMove, type SessionStatus } from "../../domain/status.ts";
import { storable, storableJson } from "../../domain/text.ts";

/** A session whose row the current transaction has locked. */
export interface Locked {
  readonly id: string;
  readonly organizationId: string;
  readonly status: SessionStatus;
  readonly attempt: number;
  readonly cancelRequested: boolean;
  /** Null if no worker has it. */
  readonly worker: string | null;
}

/**
 * Locks a session's row until the transaction ends. Other transactions may still insert rows that refer to it.
 * @throws NotFoundError
 */
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
 * Changes a session's status and appends the event of the change in the same transaction. Only this and a
 * claim (the SQL function `claim_session`) change a status. The caller must have locked the row (`lockSession`).
 * @param details.brokenOff the attempt was interrupted: the session keeps its place in the queue
 * @throws ConflictError if domain/status.ts does not allow the transition
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
  // The SQL function also writes the event and the webhook deliveries: migrations/0021_quick_claim.sql.
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

/** Call this after the commit: notifies clients that follow the session, and workers if the session is queued. */
export function announce(database: Database, sessionId: string, status: SessionStatus): void {
  database.notify("offstage_event", sessionId);
  if (status === "queued") database.notify("offstage_work", "session");
}
