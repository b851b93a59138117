import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, type Failure } from "../../domain/errors/errors.ts";
import { planRetry, unlikelyItsDoing, withSharedBlame, type RetryRecord } from "../../domain/sessions/retry.ts";
import type { SessionStatus } from "../../domain/sessions/status.ts";
import { lockSession, moveSession, notifyChange, type LockedSession } from "../sessions/transition.ts";

/**
 * A worker's claim on a session. `attempt` is the fence: a write under an older attempt changes nothing. A write whose
 * lease has expired by the database's clock changes nothing either, even if no other worker has claimed the session
 * yet.
 */
export interface Claim {
  readonly sessionId: string;
  readonly organizationId: string;
  readonly attempt: number;
}

/** The claim was lost: another worker has the session, or it has ended. Nothing was written. */
export class LeaseLostError extends ConflictError {}

/** Extends the lease to `leaseMs` milliseconds from now; null if the claim was lost or the lease has expired. */
export async function renewClaim(
  database: Database,
  claim: Claim,
  leaseMs: number,
): Promise<{ cancelRequested: boolean } | null> {
  const { rows } = await database.pool.query<{ cancelRequested: boolean }>({
    name: "renew_claim",
    text: `update session set lease_until = now() + $3 * interval '1 millisecond'
           where id = $1 and attempt = $2 and status = 'running' and lease_until > clock_timestamp()
           returning cancel_requested as "cancelRequested"`,
    values: [claim.sessionId, claim.attempt, leaseMs],
  });
  return rows[0] ?? null;
}

/** Whether a claim is still good, by the database's clock. */
export async function isHeld(database: Database, { sessionId, attempt }: Claim): Promise<boolean> {
  const { rowCount } = await database.pool.query(
    "select from session where id = $1 and attempt = $2 and status = 'running' and lease_until > clock_timestamp()",
    [sessionId, attempt],
  );
  return rowCount === 1;
}

/**
 * Requeues sessions with an expired lease, or all sessions of `worker`, which calls this when it restarts. A session
 * whose cancellation was requested is cancelled, and one that has used up its claims fails.
 * @returns how many sessions
 */
export async function recoverSessions(database: Database, options: { readonly worker?: string }): Promise<number> {
  const { rows } = await database.pool.query<{ id: string; organization_id: string }>(
    `select id, organization_id from session where status in ('running', 'waiting')
       and (lease_until < now() or worker = $1)`,
    [options.worker ?? null],
  );
  // Whatever it was doing: it shows that workers die for reasons that are not their sessions'.
  if (options.worker !== undefined) await recordDeath(database.pool, options.worker);
  let recovered = 0;
  for (const { id, organization_id } of rows) {
    const reached = await database.transaction(async (transaction) => {
      const session = await lockSession(transaction, organization_id, id);
      const { rows: fresh } = await transaction.query<Lost>(
        `select status in ('running', 'waiting') and (lease_until < now() or worker = $2) as lost, retry,
           extract(epoch from now())::float8 * 1000 as now,
           exists (select from worker_node where id <> session.worker
             and lost_at > to_timestamp((retry ->> 'lostAt')::float8 / 1000)) as "othersDied"
         from session where id = $1`,
        [id, options.worker ?? null],
      );
      return fresh[0]?.lost === true ? recover(transaction, session, fresh[0]) : null;
    });
    if (reached === null) continue;
    recovered += 1;
    notifyChange(database, id, reached);
  }
  return recovered;
}

/** The facts that decide the next state of a session whose worker died. */
interface Lost {
  readonly lost: boolean;
  readonly retry: RetryRecord | null;
  /** Whether a worker died without this session since the last one that died with it. */
  readonly othersDied: boolean;
  /** In ms since 1970. */
  readonly now: number;
}

/** A worker died while it had the session, for all that is known. */
export const workerLost: Failure = {
  code: "worker_lost",
  reason: "Its worker died; another takes over.",
  retryable: true,
  passing: true,
  remedy: "Find the reason in the worker's log (usually memory).",
};

/**
 * Records that a worker died, once for each death: it has not been found dead since its last heartbeat. One that stops in order is
 * not listed any more.
 * @returns now, in ms since 1970: not before what was recorded for the worker
 */
async function recordDeath(queryable: Queryable, worker: string | null): Promise<number> {
  await queryable.query(
    "update worker_node set lost_at = clock_timestamp() where id = $1 and lost_at >= seen_at is not true",
    [worker],
  );
  const { rows } = await queryable.query<{ now: number }>(
    "select extract(epoch from clock_timestamp())::float8 * 1000 as now",
  );
  return rows[0]?.now ?? 0;
}

async function recover(
  transaction: Queryable,
  lost: LockedSession,
  { retry, othersDied, now }: Lost,
): Promise<SessionStatus> {
  const lostAt = await recordDeath(transaction, lost.worker);
  if (lost.cancelRequested) {
    await moveSession(transaction, lost, "cancelled");
    return "cancelled";
  }
  // A session that waits has no worker, so that none can die. If a row has one all the same, it works again before it ends.
  if (lost.status === "waiting") await moveSession(transaction, lost, "running");
  // The age of the first failure is irrelevant for a worker's death.
  const before = retry !== null && othersDied ? withSharedBlame(retry) : retry;
  const planned = planRetry(workerLost, before, now, { forMs: Infinity });
  if (planned === null) {
    const deaths = Math.ceil(before?.counts.worker_lost ?? 0) + 1;
    const failure: Failure = {
      code: "too_many_attempts",
      reason: `Workers died at least ${deaths} times while they worked on this session.`,
      retryable: true,
      remedy: "Find the reason in the worker's log (usually memory), then retry.",
    };
    await moveSession(transaction, lost, "failed", { failure });
    return "failed";
  }
  const retried = { ...planned, lostAt };
  await moveSession(transaction, lost, "queued", {
    reason: workerLost.reason,
    retry: retried,
    keepsQueuePosition: true,
  });
  return "queued";
}

/**
 * Locks the session's row for a write under a claim.
 * @throws LeaseLostError if the claim was lost
 */
export async function holdClaim(transaction: Queryable, claim: Claim): Promise<LockedSession> {
  const session = await lockSession(transaction, claim.organizationId, claim.sessionId);
  const holds = session.attempt === claim.attempt && session.status === "running" && session.isLeased;
  if (!holds) throw new LeaseLostError(`the claim on session ${claim.sessionId} was lost`);
  return session;
}

/**
 * Runs a write under a claim, in a transaction with the session's row locked.
 * @throws LeaseLostError
 */
export async function underClaim<T>(
  database: Database,
  claim: Claim,
  work: (transaction: Queryable, session: LockedSession) => Promise<T>,
): Promise<T> {
  return database.transaction(async (transaction) => work(transaction, await holdClaim(transaction, claim)));
}

/**
 * Records that a worker outlived an attempt whose lease it lost: the session did not kill it. It still counts a little, because a
 * session may keep its worker too busy to renew leases. Not fenced, because the claim is lost; it changes nothing else, nor anything before the death
 * was counted.
 */
export async function recordSurvival(database: Database, { sessionId, attempt }: Claim): Promise<void> {
  await database.pool.query(
    `update session set retry = jsonb_set(retry, '{counts,worker_lost}',
       to_jsonb(greatest(0, (retry #>> '{counts,worker_lost}')::numeric - ${unlikelyItsDoing})))
     where id = $1 and retry #> '{counts,worker_lost}' is not null and (attempt <> $2 or status <> 'running')`,
    [sessionId, attempt],
  );
}
