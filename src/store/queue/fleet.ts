import type { Database } from "../../database/database.ts";
import type { FleetState } from "../../domain/fleet.ts";
import { countedFor } from "./worker-nodes.ts";

/** Counted so far and no further: what is beyond says nothing new, and must not make the question dear. */
const countLimit = 100_000;

const count = (table: string, condition: string): string =>
  `(select count(*)::integer from (select from ${table} where ${condition} limit ${countLimit}) as counted)`;

/** Those that a relay takes, or will: what somebody asked for of a webhook that is switched off waits for nothing else. */
const deliveries = "webhook_delivery join webhook on webhook.id = webhook_id and webhook.enabled";

/** One look into the queue's index for each priority, so that the depth does not matter. */
const oldest = (table: string, status: string, queuedAt: string): string =>
  `(select coalesce(extract(epoch from clock_timestamp() - min(first.at)), 0)::float8 from generate_series(1, 9) as priority,
     lateral (select ${table}.${queuedAt} as at from ${table} where ${table}.status = '${status}'
       and ${table}.priority = priority.priority order by ${table}.${queuedAt} limit 1) as first)`;

/** Planned anew each time: a plan of when there was little would look through everything once there is much. */
export const fleetQuestion = `select
  ${count("session", "status = 'draft'")} as draft,
  ${count("session", "status = 'queued'")} as queued,
  ${count("session", "status = 'running'")} as running,
  ${count("session", "status = 'waiting'")} as waiting,
  ${count("job", "status = 'pending'")} as "jobsPending",
  ${count("job", "status = 'running'")} as "jobsRunning",
  ${count(deliveries, "status = 'pending' and next_attempt_at <= now()")} as "deliveriesDue",
  ${count(deliveries, "status = 'pending' and next_attempt_at > now()")} as "deliveriesLater",
  ${oldest("session", "queued", "queued_at")} as "sessionWait",
  ${oldest("job", "pending", "created_at")} as "jobWait",
  coalesce((select extract(epoch from clock_timestamp() - next_attempt_at) from ${deliveries}
    where status = 'pending' and next_attempt_at <= now() order by next_attempt_at limit 1), 0)::float8 as "deliveryWait",
  (select count(*)::integer from worker_node where seen_at > now() - interval '${countedFor}') as workers`;

/**
 * What waits and runs, over all organizations. Every part is answered from a partial index of what is not over, so that
 * it costs the same however many sessions there ever were; each count ends at 100,000.
 */
export async function readFleetState(database: Database): Promise<FleetState> {
  const { rows } = await database.pool.query<Record<string, number>>(fleetQuestion);
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
    oldestWaitSeconds: {
      sessions: Math.max(0, found("sessionWait")),
      jobs: Math.max(0, found("jobWait")),
      deliveries: Math.max(0, found("deliveryWait")),
    },
    workers: found("workers"),
  };
}
