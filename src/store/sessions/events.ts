import type { Database, Queryable } from "../../database/database.ts";
import { storableJson } from "../../domain/fields/text.ts";
import type { EventPage, NewEvent, SessionEvent } from "../../domain/sessions/event.ts";
import { isoTime } from "../cursor.ts";

type EventRow = SessionEvent & { readonly allFound: number };

/**
 * Limit in bytes of one page of events; only a first event may be larger. A page is read, serialized and sent as one
 * piece on the event loop that serves all clients, and an agent decides how large its events are.
 */
const pageBytes = 1024 * 1024;

/** The events after number `after`, oldest first; null if the organization has no such session. */
export async function listEvents(
  database: Database,
  organizationId: string,
  sessionId: string,
  after: number,
  limit: number,
): Promise<EventPage | null> {
  const { rows } = await database.pool.query<EventRow>({
    name: "list_events",
    // The stored size of a compressed value says nothing about its real size. `with_remedy` is for events that nodes of the
    // version before write during an upgrade.
    text: `with found as (
             select seq, type, data, created_at,
               case when pg_column_compression(data) is null then pg_column_size(data)
                 else octet_length(data::text) end as bytes
             from event
             where session_id = (select id from session where id = $1 and organization_id = $2) and seq > $3
             order by seq limit $4),
           counted as (
             select *, sum(bytes) over (order by seq) - bytes as before, count(*) over () as all_found from found)
           select seq::float8 as seq, type, ${isoTime("created_at")} as "createdAt", all_found::float8 as "allFound",
             case when type in ('session.status', 'step.failed') and data ? 'failure'
               then jsonb_set(data, '{failure}', with_remedy(data -> 'failure')) else data end as data
           from counted where before < $5 order by counted.seq`,
    values: [sessionId, organizationId, after, limit + 1, pageBytes],
  });
  if (rows.length === 0 && !(await sessionExists(database, organizationId, sessionId))) return null;
  const events = rows
    .slice(0, limit)
    .map(({ seq, type, data, createdAt }) => ({ seq, type, data, createdAt }) as SessionEvent);
  const isMore = (rows[0]?.allFound ?? 0) > events.length;
  return { events, nextCursor: isMore ? String(events.at(-1)?.seq) : null };
}

async function sessionExists(database: Database, organizationId: string, id: string): Promise<boolean> {
  const { rowCount } = await database.pool.query("select 1 from session where id = $1 and organization_id = $2", [
    id,
    organizationId,
  ]);
  return rowCount === 1;
}

/**
 * Appends events to a session. The caller's transaction must have locked the session's row, which counts the events:
 * so their numbers have no gaps and follow the order of commits.
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
