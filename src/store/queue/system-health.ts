import type { Database } from "../../database/database.ts";
import type { QueueHealth, WorkerHealth } from "../../domain/system/health.ts";
import { isoTime } from "../cursor.ts";
import { count, oldest, readQueueStats } from "./stats.ts";
import { countedFor } from "./worker-nodes.ts";

/** Workers that are listed: those without a heartbeat for a day are forgotten, and no fleet is larger. */
const mostWorkers = 500;

/** Not prepared, as `queueStatsQuery`. */
export const workersQuery = `
  select node.id, ${isoTime("node.started_at")} as "startedAt", ${isoTime("node.seen_at")} as "seenAt",
    node.seen_at > now() - interval '${countedFor}' and node.lost_at > node.seen_at is not true as "isSeen",
    node.concurrency, coalesce(sessions.count, 0) as "runningSessions", coalesce(jobs.count, 0) as "runningJobs",
    node.default_agent as "defaultAgent",
    array(select agent->>'name' from jsonb_array_elements(node.agents) agent where (agent->>'available')::boolean) as agents,
    (select count(*)::integer from warm_sandbox where worker = node.id and session_id is null) as "warmSandboxes",
    case when node.machine_at >= node.seen_at then node.machine end as machine
  from (select * from worker_node order by started_at, id limit ${mostWorkers}) node
  left join (select worker, count(*)::integer from session where status = 'running' group by worker) sessions
    on sessions.worker = node.id
  left join (select worker, count(*)::integer from job where status = 'running' group by worker) jobs
    on jobs.worker = node.id
  order by node.started_at, node.id`;

/**
 * All workers that are not forgotten, whether or not they are seen, with what they run. What is not over has partial indexes, so that
 * the cost is that of what runs.
 */
export async function readWorkers(database: Database): Promise<WorkerHealth[]> {
  const { rows } = await database.pool.query<WorkerHealth>(workersQuery);
  return rows;
}

/** Not prepared, as `queueStatsQuery`. */
export const retriesQuery = `select
  ${count("session", "retry_at <= now()")} as due,
  ${count("session", "retry_at > now()")} as later,
  (select ${isoTime("min(retry_at)")} from session where retry_at is not null) as "nextAt",
  ${oldest("session", "session.status = 'queued' and session.retry_at is null", "queued_at")} as wait`;

/**
 * Queued and running work of all organizations. A session that waits for its retry is counted, and does not count as
 * waiting long.
 */
export async function readQueueHealth(database: Database): Promise<QueueHealth> {
  const [stats, { rows }] = await Promise.all([
    readQueueStats(database),
    database.pool.query<{ due: number; later: number; nextAt: string | null; wait: number }>(retriesQuery),
  ]);
  const { due, later, nextAt, wait } = rows[0] ?? { due: 0, later: 0, nextAt: null, wait: 0 };
  const { queued, running, waiting } = stats.sessions;
  return {
    sessions: { queued, running, waiting },
    retries: { due, later, nextAt },
    jobs: stats.jobs,
    deliveries: stats.deliveries,
    oldestWaitSeconds: { ...stats.oldestWaitSeconds, sessions: Math.max(0, wait) },
  };
}
