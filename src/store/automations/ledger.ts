import type { Database } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { LedgerEntry, WholeLedgerEntry } from "../../domain/automations/ledger.ts";
import type { LedgerOutcome } from "../../domain/automations/ledger-outcome.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { isoTime, listRows } from "../cursor.ts";
import { one } from "../one-row.ts";

const columns = `id, automation_id as "automationId", trigger_id as "triggerId", event_id as "eventId", name, outcome, reason,
  session_id as "sessionId", original_id as "originalId", ${isoTime("created_at")} as "createdAt", ${isoTime("updated_at")} as "updatedAt"`;

/** Jobs, and accepted entries that created no job, as one list. */
const entries = `(
  select id, organization_id, automation_id, trigger_id, event_id, null as name,
    case when superseded and status in ('completed', 'cancelled') then 'superseded'
      when status = 'completed' then 'fired' when status = 'cancelled' then 'filtered'
      when status = 'failed' then case when dead then 'dead-lettered' else 'failed' end end as outcome,
    error as reason, session_id, replay_of as original_id, created_at, updated_at from job
  union all
  select id, organization_id, automation_id, trigger_id, null, name, outcome, reason, session_id, original_id, created_at,
    coalesce(updated_at, created_at) from arrival
) as entry`;

/**
 * Lists every trigger that was accepted for an automation, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listLedger(
  database: Database,
  organizationId: string,
  query: PageQuery & { readonly automationId?: string | undefined; readonly outcome?: LedgerOutcome | undefined },
): Promise<Page<LedgerEntry>> {
  return listRows<LedgerEntry>(database, organizationId, query, {
    table: "entry",
    columns,
    from: entries,
    condition: "($5::uuid is null or automation_id = $5) and ($6::text is null or outcome = $6)",
    values: [query.automationId, query.outcome],
  });
}

/**
 * Reads one ledger entry of the organization as a whole.
 * @throws NotFoundError
 */
export async function getLedgerEntry(
  database: Database,
  organizationId: string,
  id: string,
): Promise<WholeLedgerEntry> {
  const { rows } = await database.pool.query<WholeLedgerEntry>(
    `select shown.*, coalesce(job.payload, arrival.payload) as payload, arrival.delivery_id as "deliveryId",
       arrival.subject, coalesce(arrival.decisions, '[]') as decisions
     from (select ${columns} from ${entries} where id = $2 and organization_id = $1) as shown
     left join job on job.id = shown.id left join arrival on arrival.id = shown.id`,
    [organizationId, id],
  );
  return one(rows, "ledger entry", id);
}

/** A ledger entry's content, complete enough to repeat it. */
export type Repeatable =
  | {
      readonly kind: "trigger";
      readonly automationId: string;
      readonly triggerId: string | null;
      readonly paused: boolean;
      readonly macro: string;
      readonly priority: number;
      readonly payload: EventContext;
      readonly repositoryIds: readonly string[] | null;
      /** The event that the trigger was to answer; null: none. */
      readonly eventId: string | null;
    }
  /** Its outcome depends on which triggers listen to it now. */
  | {
      readonly kind: "event";
      readonly connectionId: string | null;
      readonly name: string | null;
      readonly subject: string | null;
      readonly payload: EventContext;
    };

/**
 * Reads what is needed to do again what a ledger entry is about: of a duplicate, what the first one was.
 * @throws NotFoundError
 * @throws ConflictError if the entry is not finished, or its payload or automation no longer exists
 */
export async function readRepeatable(database: Database, organizationId: string, id: string): Promise<Repeatable> {
  const entry = await getLedgerEntry(database, organizationId, id);
  if (entry.outcome === null) throw new ConflictError(`ledger entry ${id} is not finished yet`);
  const of = entry.outcome === "duplicate" ? entry.originalId : id;
  const { rows } = await database.pool.query<Repeatable>(
    `select 'trigger' as kind, automation.id as "automationId", trigger_id as "triggerId", automation.paused, automation.macro,
       automation.priority, payload, job.repository_ids as "repositoryIds",
       -- Whose event it was is found by the job that it repeats.
       null as "eventId"
     from job join automation on automation.id = job.automation_id and automation.deleted_at is null
     where job.id = $2 and job.organization_id = $1`,
    [organizationId, of],
  );
  const repeatable = rows[0] ?? (await readArrival(database, organizationId, of));
  if (repeatable === undefined) {
    throw new ConflictError(`ledger entry ${id} can't be replayed: its payload or its automation is gone`);
  }
  return repeatable;
}

/** Entries that started no job. */
async function readArrival(
  database: Database,
  organizationId: string,
  id: string | null,
): Promise<Repeatable | undefined> {
  const { rows } = await database.pool.query<Repeatable>(
    `select case when automation.id is null then 'event' else 'trigger' end as kind, automation.id as "automationId",
       trigger_id as "triggerId", automation.paused, automation.macro, automation.priority, payload,
       arrival.repository_ids as "repositoryIds", arrival.event_id as "eventId", connection_id as "connectionId", arrival.name, subject
     from arrival left join automation on automation.id = arrival.automation_id
     where arrival.id = $2 and arrival.organization_id = $1 and payload is not null and automation.deleted_at is null`,
    [organizationId, id],
  );
  return rows[0];
}

/** Records in the ledger that a trigger was sent again for which job `jobId` exists already. */
export async function noteDuplicate(database: Database, organizationId: string, jobId: string): Promise<void> {
  await database.pool.query(
    `insert into arrival (id, organization_id, automation_id, outcome, reason, original_id)
     select gen_random_uuid(), organization_id, automation_id, 'duplicate', 'sent again under the same Idempotency-Key', id
     from job where id = $2 and organization_id = $1`,
    [organizationId, jobId],
  );
}
