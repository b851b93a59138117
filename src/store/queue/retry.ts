import type { Database } from "../../database/database.ts";
import type { Failure } from "../../domain/errors/errors.ts";
import { planRetry, type RetryLimits, type RetryRecord } from "../../domain/sessions/retry.ts";
import type { SessionStatus } from "../../domain/sessions/status.ts";
import { moveSession, notifyChange } from "../sessions/transition.ts";
import { underClaim, type Claim } from "./lease.ts";

/** How the retry of a failed attempt is planned. */
export interface RetryOptions extends RetryLimits {
  /** How long, in ms, the service that failed asks to wait. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * Ends an attempt that failed. If the failure passes by itself, the session goes back to the queue, where it is claimed when
 * its time has come; else it fails. A session whose cancellation was requested is cancelled instead of tried again.
 * @returns the session's new status
 * @throws LeaseLostError
 */
export async function failSession(
  database: Database,
  claim: Claim,
  failure: Failure,
  { forMs, retryAfterMs }: RetryOptions,
): Promise<SessionStatus> {
  const reached = await underClaim(database, claim, async (transaction, session) => {
    const { rows } = await transaction.query<{ retry: RetryRecord | null; now: number }>(
      "select retry, extract(epoch from now())::float8 * 1000 as now from session where id = $1",
      [claim.sessionId],
    );
    const { retry: before = null, now = 0 } = rows[0] ?? {};
    const retry = planRetry(failure, before, now, { forMs }, retryAfterMs);
    if (retry === null) {
      await moveSession(transaction, session, "failed", { failure });
      return "failed";
    }
    if (session.cancelRequested) {
      await moveSession(transaction, session, "cancelled", { failure: null });
      return "cancelled";
    }
    await moveSession(transaction, session, "queued", { reason: failure.reason, retry, keepsQueuePosition: true });
    return "queued";
  });
  notifyChange(database, claim.sessionId, reached);
  return reached;
}

/** Sessions of one pass: a long outage ends for many at once. */
const roundLimit = 1_000;

/**
 * Makes the sessions claimable whose time of a retry has come.
 * @returns how many
 */
export async function wakeRetries(database: Database): Promise<number> {
  const { rows } = await database.pool.query<{ id: string }>({
    name: "wake_retries",
    text: `update session set retry_at = null, updated_at = now() where id in (
             select id from session where retry_at <= now() order by retry_at limit ${roundLimit} for no key update skip locked)
           returning id`,
  });
  for (const { id } of rows) notifyChange(database, id, "queued");
  return rows.length;
}
