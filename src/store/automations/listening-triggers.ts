import type { Database } from "../../database/database.ts";
import { fireableColumns, type FireableTrigger } from "./triggers.ts";
import type { ClaimedEvent } from "./claimed-events.ts";

/**
 * The enabled triggers that listen to an event by name and, if a connection delivered it, by that, those of one automation after each other and in their order, from
 * the one after `after`.
 */
export async function listeningTriggers(
  database: Database,
  {
    organizationId,
    connectionId,
    name,
    causedBy,
  }: Pick<ClaimedEvent, "organizationId" | "connectionId" | "name" | "causedBy">,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<FireableTrigger[]> {
  const { rows } = await database.pool.query<FireableTrigger>({
    name: "listening_triggers",
    text: `select ${fireableColumns} from trigger
           join automation on automation.id = trigger.automation_id and automation.deleted_at is null
           where trigger.organization_id = $1 and trigger.type = 'forge' and trigger.enabled and trigger.deleted_at is null
             and trigger.settings -> 'events' ? $2
             and ($3::text is null or trigger.settings ->> 'connectionId' is null or trigger.settings ->> 'connectionId' = $3)
             -- What a session did never starts its own automation again.
             and trigger.automation_id is distinct from $6
             and ($4::uuid is null or (trigger.automation_id, trigger.position, trigger.id) > (
               select last.automation_id, last.position, last.id from trigger last where last.id = $4))
           order by trigger.automation_id, trigger.position, trigger.id limit $5`,
    values: [organizationId, name, connectionId, after, limit, causedBy],
  });
  return rows;
}
