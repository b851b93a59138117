import type { Database } from "../../database/database.ts";
import { planRetry, unlikelyItsDoing, type RetryRecord } from "../../domain/sessions/retry.ts";
import { appendEvents } from "../sessions/events.ts";
import { readClaimed, type ClaimedSession } from "./claims.ts";
import { workerLost, type Claim } from "./lease.ts";

/**
 * Takes a session again whose lease its worker could not renew, as when the database was away: under a new fence, so
 * that the attempt before can write no more, and only if no worker has taken or requeued it. The worker goes on with
 * the folders on its own disk. It counts a quarter of a worker's death, since a session may itself keep its worker from
 * renewing.
 * @param lost the claim before; its attempt has ended on the worker
 * @returns null if the session is another's by now, has ended, is to be cancelled, or was lost too often
 */
export async function retakeClaim(
  database: Database,
  lost: Claim,
  { worker, leaseMs }: { readonly worker: string; readonly leaseMs: number },
): Promise<ClaimedSession | null> {
  const { sessionId, organizationId } = lost;
  const again = await database.transaction(async (transaction) => {
    const { rows: free } = await transaction.query<{ retry: RetryRecord | null; now: number }>(
      `select retry, extract(epoch from now())::float8 * 1000 as now from session
       where id = $1 and attempt = $2 and worker = $3 and status = 'running' and not cancel_requested
       for no key update`,
      [sessionId, lost.attempt, worker],
    );
    const [held] = free;
    const planned = held === undefined ? null : planRetry(workerLost, held.retry, held.now, { forMs: Infinity });
    if (planned === null) return null;
    const { delayMs: _, ...counted } = planned;
    const deaths = (counted.counts.worker_lost ?? 0) - unlikelyItsDoing;
    const retry: RetryRecord = { ...counted, counts: { ...counted.counts, worker_lost: deaths } };
    const text = "The session's lease ran out, and no other worker had taken it: the same worker goes on.";
    await appendEvents(transaction, sessionId, [{ type: "notice", data: { level: "info", text } }]);
    await transaction.query(
      `update session set attempt = attempt + 1, lease_until = clock_timestamp() + $2 * interval '1 millisecond', retry = $3
       where id = $1`,
      [sessionId, leaseMs, retry],
    );
    return readClaimed(transaction, { sessionId, organizationId, attempt: lost.attempt + 1 });
  });
  if (again !== null) database.notify("offstage_event", sessionId);
  return again;
}
