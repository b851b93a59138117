import type { Database } from "../../database/database.ts";
import type { QueueStats } from "../../domain/sessions/queue-stats.ts";
import { countedFor } from "./worker-nodes.ts";

/** Counting stops here: a larger number is of no use to an operator, and must not make the query expensive. */
const countLimit = 100_000;

/** SQL for how many rows of a table meet a condition. */
export const count = (table: string, condition: string): string =>
  `(select count(*)::integer from (select from ${table} where ${condition} limit ${countLimit}) as counted)`;

/** Deliveries of enabled webhooks. Those of a disabled one are not counted, because no worker sends them. */
const deliveries = "webhook_delivery join webhook on webhook.id = webhook_id and webhook.enabled";

/**
 * SQL for the seconds that the oldest row which meets a condition has waited. One index lookup for each priority, so that the length of the
 * queue does not matter.
 */
export const oldest = (table: string, condition: string, queuedAt: string): string =>
  `(select coalesce(extract(epoch from clock_timestamp() - min(first.at)), 0)::float8 from generate_series(1, 9) as priority,
     lateral (select ${table}.${queuedAt} as at from ${table} where ${condition}
       and ${table}.priority = priority.priority order by ${table}.${queuedAt} limit 1) as first)`;

/** Not a prepared statement: a plan that was made for small tables would scan everything once they are large. */
export const queueStatsQuery = `select
  ${count("session", "status = 'draft'")} as draft,
  ${count("session", "status = 'queued'")} as queued,
  ${count("session", "status = 'running'")} as running,
  ${count("session", "status = 'waiting'")} as waiting,
  ${count("job", "claimable_job(job)")} as "jobsPending",
  ${count("job", "status = 'running'")} as "jobsRunning",
  ${count(deliveries, "status = 'pending' and next_attempt_at <= now()")} as "deliveriesDue",
  ${count(deliveries, "status = 'pending' and next_attempt_at > now()")} as "deliveriesLater",
  ${oldest("session", "session.status = 'queued'", "queued_at")} as "sessionWait",
  ${oldest("job", "claimable_job(job)", "created_at")} as "jobWait",
  coalesce((select extract(epoch from clock_timestamp() - next_attempt_at) from ${deliveries}
    where status = 'pending' and next_attempt_at <= now() order by next_attempt_at limit 1), 0)::float8 as "deliveryWait",
  ${count("forge_connection", "deleted_at is null and state = 'ok'")} as "connectionsOk",
  ${count("forge_connection", "deleted_at is null and state = 'degraded'")} as "connectionsDegraded",
  ${count("forge_connection", "deleted_at is null and state = 'broken'")} as "connectionsBroken",
  ${count("automation", "paused and paused_reason is not null and deleted_at is null")} as "automationsPaused",
  ${count("automation", "silent_since is not null and deleted_at is null")} as "automationsSilent",
  (select count(*)::integer from worker_node where seen_at > now() - interval '${countedFor}') as workers`;

/**
 * Reads the length of the queues and what runs, over all organizations. Partial indexes of unfinished rows answer
 * each part, so that the cost does not grow with the number of finished sessions. Each count stops at 100,000.
 */
export async function readQueueStats(database: Database): Promise<QueueStats> {
  const { rows } = await database.pool.query<Record<string, number>>(queueStatsQuery);
  const found = (name: string): number => rows[0]?.[name] ?? 0;
  return {
    sessions: {
      draft: found("draft"),
      queued: found("queued"),
      running: found("running"),
      waiting: found("waiting"),
    },
    jobs: { pending: found("jobsPending"), running: found("jobsRunning") },
    deliveries: { due: found("deliveriesDue"), later: found("deliveriesLater") },
    connections: {
      ok: found("connectionsOk"),
      degraded: found("connectionsDegraded"),
      broken: found("connectionsBroken"),
    },
    automations: { pausedByFailures: found("automationsPaused"), silent: found("automationsSilent") },
    oldestWaitSeconds: {
      sessions: Math.max(0, found("sessionWait")),
      jobs: Math.max(0, found("jobWait")),
      deliveries: Math.max(0, found("deliveryWait")),
    },
    workers: found("workers"),
  };
}
