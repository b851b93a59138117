import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, type Failure } from "../../domain/errors/errors.ts";
import { storable, storableJson } from "../../domain/fields/text.ts";
import { ownDoingCodes, type PlannedRetry } from "../../domain/sessions/retry.ts";
import type { SessionStatus } from "../../domain/sessions/status.ts";
import { one } from "../one-row.ts";

/** A session whose row the current transaction has locked. */
export interface LockedSession {
  readonly id: string;
  readonly organizationId: string;
  readonly status: SessionStatus;
  readonly attempt: number;
  readonly cancelRequested: boolean;
  /** Null if no worker has it. */
  readonly worker: string | null;
  /** Whether it is queued for a retry whose time has not come. */
  readonly isRetried: boolean;
  /** Whether it only runs the setups of its repositories. */
  readonly isSetupTrial: boolean;
  /** Whether a worker's lease on it has not expired, by the database's clock, once the row was locked. */
  readonly isLeased: boolean;
}

/**
 * Locks a session's row until the transaction ends. Other transactions may still insert rows that refer to it.
 * @throws NotFoundError
 */
export async function lockSession(queryable: Queryable, organizationId: string, id: string): Promise<LockedSession> {
  const { rows } = await queryable.query<LockedSession>({
    // A connection plans it once: planning took three times as long as the rest of it, for each write of an attempt.
    name: "lock_session",
    text: `select id, organization_id as "organizationId", status, attempt, cancel_requested as "cancelRequested", worker,
             retry_at is not null as "isRetried", setup_trial as "isSetupTrial",
             coalesce(lease_until > clock_timestamp(), false) as "isLeased"
           from session where id = $1 and organization_id = $2 for no key update`,
    values: [id, organizationId],
  });
  return one(rows, "session", id);
}

/** The details of a move, besides the new status. */
export interface MoveDetails {
  /** A sentence for readers of the events. */
  readonly reason?: string;
  /** Why the session ended; without one, it has no failure. */
  readonly failure?: Failure | null;
  /** Without one, the session keeps the one that it has. */
  readonly summary?: string | null;
  /** The attempt was interrupted: the session keeps its place in the queue. */
  readonly keepsQueuePosition?: boolean;
  /** The reason why a session becomes `waiting`. */
  readonly waiting?: { readonly reason: "budget"; readonly text: string; readonly neededUsd: number | null };
  /** A running session becomes `queued` for this retry. */
  readonly retry?: PlannedRetry;
}

/** The error code of the SQL function `move_session` if the session's status does not allow the move. */
const refusedMove = "OS001";

/**
 * Changes a session's status, sets everything that belongs to the move, and appends the event that reports it, in one
 * transaction. The SQL function `move_session` (src/store/sql/sessions/move_session.sql) does all of it, and is the only place that
 * writes a status; a claim (`claim_session`) goes through it too. The caller must have locked the row (`lockSession`).
 * @throws ConflictError if the picture in domain/sessions/status.ts does not have the move
 */
export async function moveSession(
  queryable: Queryable,
  session: Pick<LockedSession, "id">,
  to: SessionStatus,
  { reason, failure = null, summary = null, keepsQueuePosition = false, waiting, retry }: MoveDetails = {},
): Promise<void> {
  const waitsFor = waiting ?? retry;
  try {
    await queryable.query({
      name: "move_session",
      text: "select from move_session($1, $2, $3, $4, $5, $6, waits_for => $7)",
      values: [
        session.id,
        to,
        reason ?? null,
        failure === null ? null : storableJson(failure),
        summary === null ? null : storable(summary),
        keepsQueuePosition,
        waitsFor === undefined ? null : storableJson(waitsFor),
      ],
    });
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    throw code === refusedMove ? new ConflictError(message, undefined, { cause: error }) : error;
  }
}

/**
 * Resets the count of failures that the session itself may have caused, because it made progress: its work differs from
 * that at its last checkpoint. Too many of them without progress fail a session. The time limit for retries still
 * counts from the first.
 */
export async function forgetOwnDoing(queryable: Queryable, sessionId: string): Promise<void> {
  await queryable.query(
    `update session set retry = jsonb_set(retry, '{counts}', (retry -> 'counts') - $2::text[])
     where id = $1 and retry -> 'counts' ?| $2`,
    [sessionId, ownDoingCodes],
  );
}

/** Resets the count of workers that died with the session, because a worker survived it: an attempt ended in order. */
export async function forgetLostWorkers(queryable: Queryable, sessionId: string): Promise<void> {
  await queryable.query(
    "update session set retry = retry #- '{counts,worker_lost}' where id = $1 and retry is not null",
    [sessionId],
  );
}

/** Makes the session claimable at once and forgets what failed before, because a person asked for work. */
export async function retryNow(queryable: Queryable, sessionId: string): Promise<void> {
  await queryable.query("update session set retry = null, retry_at = null, updated_at = now() where id = $1", [
    sessionId,
  ]);
}

/** Call this after the commit: notifies clients that follow the session, and workers if the session is queued. */
export function notifyChange(database: Database, sessionId: string, status: SessionStatus): void {
  database.notify("offstage_event", sessionId);
  if (status === "queued") database.notify("offstage_work", "session");
}
