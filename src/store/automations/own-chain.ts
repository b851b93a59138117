import type { Database } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import { longestChain } from "../../domain/automations/trigger.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { webhookEvents } from "../../domain/webhooks/webhook.ts";

const told: ReadonlySet<string> = new Set(webhookEvents);

/** SQL for a text as a uuid; null if it is none. */
const asUuid = (text: string): string =>
  `case when ${text} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (${text})::uuid end`;
/** SQL for a text of what a webhook of Offstage told, by its path. */
const at = (path: string): string => `led.payload #>> '{${path}}'`;

/**
 * Why an automation starts nothing by what a webhook of Offstage tells of its organization's runs, such as one whose address is that of a
 * trigger: no automation starts again in what came of its own run, and a chain of runs of which each started the next has an end, as
 * with triggers that listen to Offstage's own events. Null: it may, or the payload is none of a webhook of this organization.
 */
export async function refusalOfChain(
  database: Database,
  { organizationId, automationId }: { readonly organizationId: string; readonly automationId: string },
  payload: EventContext,
): Promise<string | null> {
  const { type, data } = payload as { readonly type?: unknown; readonly data?: unknown };
  if (typeof type !== "string" || !told.has(type) || typeof data !== "object" || data === null) return null;
  const { organizationId: owner, id, sessionId } = data as Readonly<Record<string, unknown>>;
  const about = type.startsWith("pullRequest.") ? sessionId : id;
  if (owner !== organizationId || typeof about !== "string" || !isUuid(about)) return null;
  const { rows } = await database.pool.query<{ automationId: string }>({
    name: "runs_that_led_to",
    text: `with recursive led as (
        select job.id, job.automation_id, job.event_id, job.payload, 1 as links from job
        where job.organization_id = $1 and job.id = case when $2 then $3::uuid else (
          select job_id from session where id = $3 and organization_id = $1) end
        union all
        select before.id, before.automation_id, before.event_id, before.payload, links + 1
        from led left join arrival on arrival.id = led.event_id
        cross join lateral (select
          case when led.event_id is not null then arrival.payload #>> '{session,id}'
            when ${at("type")} like 'pullRequest.%' then ${at("data,sessionId")}
            when ${at("type")} like 'session.%' then ${at("data,id")} end as session,
          case when led.event_id is null and ${at("type")} like 'job.%' then ${at("data,id")} end as job) as named
        left join session on session.id = ${asUuid("named.session")} and session.organization_id = $1
        join job before on before.organization_id = $1 and before.id = coalesce(${asUuid("named.job")}, session.job_id)
        where links < ${longestChain})
      select automation_id as "automationId" from led`,
    values: [organizationId, type.startsWith("job."), about],
  });
  if (rows.some((run) => run.automationId === automationId)) return "a run of its own automation led to it";
  return rows.length < longestChain ? null : `it ends a chain of ${longestChain} runs of which each started the next`;
}
