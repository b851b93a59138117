import type { Database, Queryable } from "../database/database.ts";
import type { EventPage, NewEvent, SessionEvent } from "../domain/event.ts";
import { storableJson } from "../domain/text.ts";

interface EventRow {
  seq: string;
  type: SessionEvent["type"];
  data: SessionEvent["data"];
  created_at: Date;
}

/** The events after number `after`, oldest first; null where the organization has no such session. */
export async function listEvents(
  database: Database,
  organizationId: string,
  sessionId: string,
  after: number,
  limit: number,
): Promise<EventPage | null> {
  const { rows } = await database.pool.query<EventRow>({
    name: "list_events",
    text: `select seq, type, data, created_at from event
           where session_id = (select id from session where id = $1 and organization_id = $2) and seq > $3
           order by seq limit $4`,
    values: [sessionId, organizationId, after, limit + 1],
  });
  if (rows.length === 0 && !(await sessionExists(database, organizationId, sessionId))) return null;
  const events = rows.slice(0, limit).map(toEvent);
  return { events, nextCursor: rows.length > limit ? String(events.at(-1)?.seq) : null };
}

async function sessionExists(database: Database, organizationId: string, id: string): Promise<boolean> {
  const { rowCount } = await database.pool.query("select 1 from session where id = $1 and organization_id = $2", [
    id,
    organizationId,
  ]);
  return rowCount === 1;
}

function toEvent(row: EventRow): SessionEvent {
  return {
    seq: Number(row.seq),
    type: row.type,
    data: row.data,
    createdAt: row.created_at.toISOString(),
  } as SessionEvent;
}

/**
 * Appends to a session whose row the caller's transaction holds. The numbers come from the row's own count,
 * so that they have no gap and stand in the order of commits.
 */
export async function appendEvents(
  queryable: Queryable,
  sessionId: string,
  events: readonly NewEvent[],
): Promise<void> {
  if (events.length === 0) return;
  await queryable.query({
    name: "append_events",
    text: `with counted as (
             update session set last_event = last_event + jsonb_array_length($2::jsonb), updated_at = now()
             where id = $1 returning last_event - jsonb_array_length($2::jsonb) as before)
           insert into event (session_id, seq, type, data)
           select $1, counted.before + item.position, item.value ->> 'type', item.value -> 'data'
           from counted, jsonb_array_elements($2::jsonb) with ordinality as item (value, position)`,
    values: [sessionId, storableJson(events)],
  });
}
