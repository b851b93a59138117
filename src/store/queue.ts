import type { Database, Queryable } from "../database/database.ts";
import { countedFor } from "./worker-nodes.ts";

/** What can be claimed; in these words, which are those of the indexes. */
export const claimable = "(status = 'queued' or (status = 'waiting' and ready))";
/** Whose turn a session is part of: its automation's, or that of what people asked for. */
const group = "coalesce(automation_id, '00000000-0000-0000-0000-000000000000')";

/** Organizations at a time: others may fill the first to their limit at the same moment, or repositories be at theirs. */
const candidateLimit = 50;

/**
 * Organizations that have something to claim and are below their limit: those that run the least first, then by what they
 * have waiting. It costs the same however much is queued.
 * @param except those that were tried in vain
 */
export async function organizationsInTurn(
  database: Database,
  maxRunning: number,
  except: readonly string[],
): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>({
    name: "organizations_in_turn",
    text: `with recursive waiting (id) as (
             (select organization_id from session where ${claimable} order by organization_id limit 1)
             union all
             select (select organization_id from session where ${claimable} and organization_id > waiting.id
               order by organization_id limit 1) from waiting where waiting.id is not null)
           select organization.id from waiting join organization on organization.id = waiting.id,
             lateral (select count(*) as running from session
               where session.organization_id = organization.id and status = 'running') as counted,
             lateral (select priority, queued_at, session.id from session
               where session.organization_id = organization.id and ${claimable}
               order by priority, queued_at, session.id limit 1) as first
           where counted.running < coalesce(organization.max_running_sessions, $2) and not organization.id = any($3::uuid[])
           order by counted.running, first.priority, first.queued_at, first.id limit $1`,
    values: [candidateLimit, maxRunning, except],
  });
  return rows.map(({ id }) => id);
}

/**
 * The session whose turn it is in an organization: the most urgent; of the same urgency one of the automation (or of what
 * people asked for) that runs the least; of those the oldest. Those whose repository runs as many as it may are passed over.
 */
export async function sessionInTurn(
  queryable: Queryable,
  organizationId: string,
  maxRunningPerRepository: number | null,
): Promise<string | null> {
  const { rows } = await queryable.query<{ id: string }>({
    name: "session_in_turn",
    text: `with recursive turn (automation) as (
             (select ${group} from session where organization_id = $1 and ${claimable} order by ${group} limit 1)
             union all
             select (select ${group} from session where organization_id = $1 and ${claimable} and ${group} > turn.automation
               order by ${group} limit 1) from turn where turn.automation is not null),
           running as (
             select ${group} as automation, count(*) as count from session
             where organization_id = $1 and status = 'running' group by 1),
           full_repository as (
             select repository.id from session join session_repository part on part.session_id = session.id
             join repository on repository.id = part.repository_id
             where session.organization_id = $1 and session.status = 'running'
             group by repository.id having count(*) >= coalesce(repository.max_running_sessions, $2)),
           full_repositories as (select coalesce(array_agg(id), '{}') as ids from full_repository)
           select first.id from turn cross join full_repositories left join running on running.automation = turn.automation,
             lateral (select session.id, priority, queued_at from session
               where organization_id = $1 and ${claimable} and ${group} = turn.automation
                 and (full_repositories.ids = '{}' or not exists (
                   select from session_repository part
                   where part.session_id = session.id and part.repository_id = any(full_repositories.ids)))
               order by priority, queued_at, session.id limit 1) as first
           order by first.priority, coalesce(running.count, 0), first.queued_at, first.id limit 1`,
    values: [organizationId, maxRunningPerRepository],
  });
  return rows[0]?.id ?? null;
}

/** How far the queue is counted. */
const depthLimit = 1_000_000;

/** Sessions and jobs of an organization that wait to be taken, up to `limit`. */
export async function queueDepth(database: Database, organizationId: string, limit = depthLimit): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>({
    name: "queue_depth",
    text: `select (select count(*) from (select from session where organization_id = $1 and ${claimable} limit $2) as queued)::integer
             + (select count(*) from (select from job where organization_id = $1 and status = 'pending' limit $2) as pending)::integer
             as count`,
    values: [organizationId, limit],
  });
  return rows[0]?.count ?? 0;
}

/** Sessions of late whose length says how long the next ones take. */
const sampleSize = 20;

/**
 * Seconds after which a session with so many ahead of it may start, by how long the organization's last sessions took and how
 * many can run at once; null where nothing is known: no session has ended yet, or no worker is there.
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
