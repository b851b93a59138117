import type { Database, Queryable } from "../../database/database.ts";
import type { Trigger } from "../../domain/automations/trigger.ts";

type ForgeTrigger = Extract<Trigger, { type: "forge" }>;

/** The connection that delivered the event of a job, and what the trigger wants. */
export interface DeliveredJob extends Pick<ForgeTrigger, "reply" | "pushTo"> {
  readonly connectionId: string;
  /** Address of the connection, which delivers only events of that address. */
  readonly webUrl: string;
}

/** Replays of replays that are looked through for what they repeat. */
const mostReplays = 20;

/**
 * Reads whether a connection delivered the event of a job, or of the job that it repeats, and the settings of its
 * trigger. A run that a comment called by its macro pushes as the automation's own forge triggers do: on a pull request
 * to its branch if any of them does, elsewhere if all of them do. The conversation answers it.
 * @returns null if not, or if the connection is gone: anyone with a key may have made up the payload
 */
export async function readDeliveredJob(database: Database, jobId: string): Promise<DeliveredJob | null> {
  const { rows } = await database.pool.query<DeliveredJob>({
    name: "read_delivered_job",
    text: `with recursive repeated as (
        select id, organization_id, event_id, replay_of, trigger_id, automation_id, 0 as replays from job where id = $1
        union all
        select job.id, job.organization_id, job.event_id, job.replay_of, repeated.trigger_id, repeated.automation_id, replays + 1
        from repeated join job on job.id = repeated.replay_of and job.organization_id = repeated.organization_id
        where replays < ${mostReplays})
      select connection.id as "connectionId", connection.web_url as "webUrl",
        coalesce(trigger.settings ->> 'reply', 'none') as reply,
        coalesce(trigger.settings ->> 'pushTo', case when called.pushes then 'pullRequest' end, 'newBranch') as "pushTo"
      from repeated
      join arrival on arrival.id = repeated.event_id and arrival.organization_id = repeated.organization_id
      join forge_connection connection on connection.id = arrival.connection_id and connection.deleted_at is null
        and connection.organization_id = repeated.organization_id
      left join trigger on trigger.id = repeated.trigger_id and trigger.type = 'forge' and trigger.deleted_at is null
      cross join lateral (
        select case when arrival.name like 'pullRequest.%' then bool_or(pushes) else bool_and(pushes) end as pushes
        from (select coalesce(settings ->> 'pushTo', 'newBranch') = 'pullRequest' as pushes from trigger own
          where own.automation_id = repeated.automation_id and own.type = 'forge' and own.deleted_at is null
            -- The trigger of the API, by which a macro is called, has the automation's id.
            and repeated.trigger_id = repeated.automation_id) as own) as called
      order by replays limit 1`,
    values: [jobId],
  });
  return rows[0] ?? null;
}

/** The repository that a delivered event is about, and the connection that delivered it. */
export interface DeliveredRepository {
  readonly repositoryId: string;
  readonly connectionId: string;
}

/** Records which repository the delivered event of a session's run is about. Idempotent. */
export async function recordDeliveredRepository(
  queryable: Queryable,
  sessionId: string,
  delivered: DeliveredRepository,
): Promise<void> {
  await queryable.query(
    "insert into session_told (session_id, repository_id, connection_id) values ($1, $2, $3) on conflict do nothing",
    [sessionId, delivered.repositoryId, delivered.connectionId],
  );
}

/**
 * Which repository the delivered event of a session's run is about; null if no connection delivered it, or the
 * connection is gone: anyone with a key may have made up the payload.
 */
export async function readDeliveredRepository(
  database: Database,
  sessionId: string,
): Promise<DeliveredRepository | null> {
  const { rows } = await database.pool.query<DeliveredRepository>(
    `select repository_id as "repositoryId", connection_id as "connectionId" from session_told
     join forge_connection connection on connection.id = connection_id and connection.deleted_at is null
     where session_id = $1`,
    [sessionId],
  );
  return rows[0] ?? null;
}
