import type { Database } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { LedgerEntry, LedgerOutcome } from "../../domain/automations/ledger.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { cursorColumn, isoTime, pageOf, readCursor, withoutCursor, type WithCursor } from "../cursor.ts";

const columns = `id, automation_id as "automationId", outcome, reason, session_id as "sessionId",
  original_id as "originalId", ${isoTime("created_at")} as "createdAt", ${isoTime("updated_at")} as "updatedAt"`;

/** Jobs, and accepted triggers that created no job, as one list. */
const entries = `(
  select id, organization_id, automation_id,
    case status when 'completed' then 'fired' when 'cancelled' then 'filtered'
      when 'failed' then case when dead then 'dead-lettered' else 'failed' end end as outcome,
    error as reason, session_id, replay_of as original_id, created_at, updated_at from job
  union all
  select id, organization_id, automation_id, outcome, reason, null, original_id, created_at, created_at from arrival
) as entry`;

/**
 * Lists every trigger that was accepted for an automation, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listLedger(
  database: Database,
  organizationId: string,
  query: PageQuery & { readonly automationId?: string | undefined; readonly outcome?: LedgerOutcome | undefined },
): Promise<Page<LedgerEntry>> {
  const after = readCursor(query.cursor);
  const { rows } = await database.pool.query<WithCursor<LedgerEntry>>(
    `select ${columns}, ${cursorColumn("entry")} from ${entries}
     where organization_id = $1 and ($3::timestamptz is null or (created_at, id) < ($3::timestamptz, $4::uuid))
       and ($5::uuid is null or automation_id = $5) and ($6::text is null or outcome = $6)
     order by created_at desc, id desc limit $2`,
    [organizationId, query.limit + 1, after?.createdAt, after?.id, query.automationId, query.outcome],
  );
  return pageOf(rows, query.limit, withoutCursor);
}

/**
 * Reads one ledger entry of the organization.
 * @throws NotFoundError
 */
export async function getLedgerEntry(database: Database, organizationId: string, id: string): Promise<LedgerEntry> {
  const { rows } = await database.pool.query<LedgerEntry>(
    `select ${columns} from ${entries} where id = $2 and organization_id = $1`,
    [organizationId, id],
  );
  if (rows[0] === undefined) throw new NotFoundError(`ledger entry ${id} was not found`);
  return rows[0];
}

/** The trigger of a ledger entry, complete enough to send it again. */
export interface Repeatable {
  readonly automationId: string;
  readonly paused: boolean;
  readonly macro: string;
  readonly priority: number;
  readonly payload: EventContext;
}

/**
 * Reads what is needed to trigger the automation of a ledger entry again.
 * @throws NotFoundError
 * @throws ConflictError if the entry is not finished, or its payload or automation no longer exists
 */
export async function readRepeatable(database: Database, organizationId: string, id: string): Promise<Repeatable> {
  const entry = await getLedgerEntry(database, organizationId, id);
  if (entry.outcome === null) throw new ConflictError(`ledger entry ${id} is not finished yet`);
  const { rows } = await database.pool.query<Repeatable>(
    `select automation.id as "automationId", automation.paused, automation.macro, automation.priority, job.payload from job
     join automation on automation.id = job.automation_id and automation.deleted_at is null
     where job.id = $2 and job.organization_id = $1`,
    [organizationId, entry.outcome === "duplicate" ? entry.originalId : id],
  );
  if (rows[0] === undefined) {
    throw new ConflictError(`ledger entry ${id} can't be replayed: its payload or its automation is gone`);
  }
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
