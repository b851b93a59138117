import type { Database } from "../../database/database.ts";
import { countedFor } from "./worker-nodes.ts";

/** Counting stops here. */
const depthLimit = 1_000_000;

/** Number of claimable sessions and of pending jobs, held ones included, and of events to decide, of an organization, up to `limit` each. */
export async function queueDepth(database: Database, organizationId: string, limit = depthLimit): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>({
    name: "queue_depth",
    text: `select (select count(*) from (select from session where organization_id = $1 and claimable(session) limit $2) as queued)::integer
             + (select count(*) from (select from job where organization_id = $1 and claimable_job(job) limit $2) as pending)::integer
             + (select count(*) from (select from job where organization_id = $1 and held_until is not null limit $2) as held)::integer
             + (select count(*) from (select from arrival where organization_id = $1 and outcome is null limit $2) as undecided)::integer
             as count`,
    values: [organizationId, limit],
  });
  return rows[0]?.count ?? 0;
}

/** Number of recent sessions whose duration predicts that of the next ones. */
const sampleSize = 20;

/**
 * Estimated seconds until a session with `ahead` others before it starts, from the duration of the organization's
 * last sessions and from how many can run at once; null if no session has completed yet or no worker runs.
 * @param maxRunning default limit of an organization's sessions at once
 */
export async function estimateWait(
  database: Database,
  organizationId: string,
  ahead: number,
  maxRunning: number,
): Promise<number | null> {
  const { rows } = await database.pool.query<{ seconds: number | null; slots: number | null }>(
    `select (select avg(extract(epoch from finished_at - started_at))::float8 from (
         select started_at, finished_at from session
         where organization_id = $1 and status = 'completed' and started_at is not null and finished_at > started_at
         order by created_at desc, id desc limit ${sampleSize}) as late) as seconds,
       least((select coalesce(sum(concurrency), 0) from worker_node where seen_at > now() - interval '${countedFor}'),
         (select coalesce(max_running_sessions, $2) from organization where id = $1))::integer as slots`,
    [organizationId, maxRunning],
  );
  const { seconds = null, slots = null } = rows[0] ?? {};
  if (seconds === null || slots === null || slots < 1) return null;
  return Math.round((seconds * (ahead + 1)) / slots);
}
