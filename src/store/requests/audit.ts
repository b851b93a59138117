import type { Database } from "../../database/database.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { outcomeOf, type AuditEntry, type NewAuditEntry } from "../../domain/people/audit.ts";
import type { AuditOutcome } from "../../domain/people/audit-outcome.ts";
import { defaultOrganization } from "../../domain/people/organization.ts";
import { cursorColumn, isoTime, pageOf, readCursor, withoutCursor, type WithCursor } from "../cursor.ts";
import { removeRows } from "../prune.ts";

/** Appends entries to the audit log, in their order. */
export async function appendAudit(database: Database, entries: readonly NewAuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await database.pool.query({
    name: "append_audit",
    // Requests of an organization that was erased meanwhile are dropped, and must not fail others' entries.
    text: `insert into audit_entry (id, organization_id, actor, key_id, user_id, action, target, status, address, request_id)
           select gen_random_uuid(), entry.* from unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::text[], $6::text[],
             $7::integer[], $8::text[], $9::uuid[]) as entry (organization_id)
           where organization_id is null or exists (select from organization where id = entry.organization_id)`,
    values: [
      entries.map(({ organizationId }) => organizationId),
      entries.map(({ actor }) => actor),
      entries.map(({ keyId }) => keyId),
      entries.map(({ userId }) => userId),
      entries.map(({ action }) => action),
      entries.map(({ target }) => target),
      entries.map(({ status }) => status),
      entries.map(({ address }) => address),
      entries.map(({ requestId }) => requestId),
    ],
  });
}

const conditionOf: Readonly<Record<AuditOutcome, string>> = {
  allowed: "entry.status < 400",
  refused: "entry.status in (401, 403, 421, 429)",
  failed: "entry.status >= 400 and entry.status not in (401, 403, 421, 429)",
};

/**
 * Lists an organization's audit entries, newest first. The default organization also sees entries of unknown callers.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listAudit(
  database: Database,
  organizationId: string,
  {
    limit,
    cursor,
    action,
    outcome,
  }: PageQuery & { readonly action?: string | undefined; readonly outcome?: AuditOutcome | undefined },
): Promise<Page<AuditEntry>> {
  const after = readCursor(cursor);
  const { rows } = await database.pool.query<WithCursor<Omit<AuditEntry, "outcome">>>(
    `select entry.id, entry.actor, entry.key_id as "keyId", api_key.name || ' (' || api_key.prefix || '…)' as "keyName",
       entry.user_id as "userId", person.name as "userName", entry.action, entry.target, entry.status, entry.address,
       entry.request_id as "requestId", ${isoTime("entry.created_at")} as "createdAt", ${cursorColumn("entry")}
     from audit_entry entry left join api_key on api_key.id = entry.key_id
       left join user_account person on person.id = entry.user_id
     where (entry.organization_id = $1
         or (entry.organization_id is null and exists (select 1 from organization where id = $1 and name = $6)))
       and ($3::timestamptz is null or (entry.created_at, entry.id) < ($3::timestamptz, $4::uuid))
       and ($5::text is null or entry.action = $5)
       ${outcome === undefined ? "" : `and ${conditionOf[outcome]}`}
     order by entry.created_at desc, entry.id desc limit $2`,
    [organizationId, limit + 1, after?.createdAt, after?.id, action, defaultOrganization],
  );
  return pageOf(rows, limit, (row) => ({ ...withoutCursor(row), outcome: outcomeOf(row.status) }));
}

/**
 * Deletes entries older than `days` days, until `signal` aborts.
 * @returns how many
 */
export function pruneAudit(database: Database, days: number, signal: AbortSignal): Promise<number> {
  const condition = "created_at < now() - $1 * interval '1 day'";
  return removeRows(database, "audit_entry", { condition, values: [days] }, signal);
}
