import { createHash } from "node:crypto";
import type { Queryable } from "../../database/database.ts";
import { storable } from "../../domain/fields/text.ts";

/** An item that was taken up, and its outcome. */
export interface ConversationItem {
  readonly key: string;
  readonly eventId: string | null;
  readonly runId: string | null;
  readonly reason: string | null;
}

/** Records that something was taken up. */
export async function takeItem(
  transaction: Queryable,
  { id, organizationId }: { readonly id: string; readonly organizationId: string },
  { key, eventId, runId, reason }: ConversationItem,
): Promise<void> {
  await transaction.query(
    `insert into conversation_item (organization_id, conversation_id, key, event_id, run_id, reason)
     values ($1, $2, $3, $4, $5, $6) on conflict (conversation_id, key) do nothing`,
    [organizationId, id, keyOfItem(key), eventId, runId, reason === null ? null : storable(reason)],
  );
}

/** The stored outcome of an event that was decided before, as if its worker had died in between; null: none. */
export async function decidedBefore(
  queryable: Queryable,
  conversationId: string | null,
  { key, eventId }: { readonly key: string | null; readonly eventId: string },
): Promise<{ readonly reason: string | null } | null> {
  if (conversationId === null || key === null) return null;
  const { rows } = await queryable.query<{ reason: string | null }>(
    "select reason from conversation_item where conversation_id = $1 and key = $2 and event_id = $3",
    [conversationId, keyOfItem(key), eventId],
  );
  return rows[0] ?? null;
}

/**
 * The automation that an item called by its macro, and that has a run of it; null: none, or a replayed event is not
 * about that.
 */
export async function startedByMacro(
  queryable: Queryable,
  conversationId: string,
  key: string,
  { id: eventId, contentKey }: { readonly id: string; readonly contentKey: string | null },
): Promise<string | null> {
  const { rows } = await queryable.query<{ id: string }>(
    `select job.automation_id as id from conversation_item item join job on job.id = item.run_id
     where item.conversation_id = $1 and item.key = $2 and item.reason is null and (item.event_id = $3 or $4)`,
    [conversationId, keyOfItem(key), eventId, contentKey !== null],
  );
  return rows[0]?.id ?? null;
}

const longestKey = 200;

/** Some keys contain a person's text. */
export function keyOfItem(key: string | null): string | null {
  if (key === null || key.length <= longestKey) return key === null ? null : storable(key);
  return `sha256:${createHash("sha256").update(key).digest("base64url")}`;
}
