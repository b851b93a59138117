import type { Database, Queryable } from "../../database/database.ts";
import type { EventPage, NewEvent, SessionEvent } from "../../domain/event.ts";
import { storableJson } from "../../domain/text.ts";

interface EventRow {
  seq: string;
  type: SessionEvent["type"];
  data: SessionEvent["data"];
  created_at: Date;
  all_found: string;
}

/**
 * Bytes of one page of events, but for a first event that is larger: a page is read, written and sent at once, on the event
 * loop that serves everybody, and what stands in events is an agent's.
 */
const pageBytes = 1024 * 1024;

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
    // What is compressed says nothing of its size.
    text: `with found as (
             select seq, type, data, created_at,
               case when pg_column_compression(data) is null then pg_column_size(data)
                 else octet_length(data::text) end as bytes
             from event
             where session_id = (select id from session where id = $1 and organization_id = $2) and seq > $3
             order by seq limit $4),
           counted as (
             select *, sum(bytes) over (order by seq) - bytes as before, count(*) over () as all_found from found)
           select seq, type, data, created_at, all_found from counted where before < $5 order by seq`,
    values: [sessionId, organizationId, after, limit + 1, pageBytes],
  });
  if (rows.length === 0 && !(await sessionExists(database, organizationId, sessionId))) return null;
  const events = rows.slice(0, limit).map(toEvent);
  const isMore = Number(rows[0]?.all_found ?? 0) > events.length;
  return { events, nextCursor: isMore ? String(events.at(-1)?.seq) : null };
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
