import type { Database } from "../../database/database.ts";
import type { Page } from "../../domain/fields/list.ts";
import type { SessionStatus } from "../../domain/sessions/status.ts";
import { cursorOf, pageOf, readCursor, timeOfCursor, withoutCursor, type WithCursor } from "../cursor.ts";
import { needingAttention } from "./attention.ts";
import { filtersOf, type Bind, type SessionFilter, type SessionListQuery } from "./conditions.ts";
import { sessionColumns, type SessionRecord } from "./session-record.ts";

/**
 * A page of a list reads so many sessions at most. If other filters leave too few of them, the page is shorter than it may be, and the
 * next one goes on from there: so no combination of filters has a request read millions.
 */
const scannedAtMost = 20_000;

/** Statuses that few sessions of an organization have: work that is due, or has begun. */
const rareStatuses: ReadonlySet<SessionStatus> = new Set(["draft", "queued", "running", "waiting"]);
/** Statuses that the index `session_ended_shown` has in the order of the list. */
const indexedStatuses: ReadonlySet<SessionStatus> = new Set(["draft", "failed", "cancelled"]);

/** The source of a list's sessions, in their order: the one filter that leaves fewest. */
interface Source {
  /** SQL, with `session` as the whole row. */
  readonly from: string;
  readonly condition: string;
  /** SQL of the columns of the order. */
  readonly createdAt: string;
  readonly id: string;
  /** The filters that it has seen to. */
  readonly seenTo: readonly (keyof SessionFilter)[];
}

/**
 * Lists sessions, newest first. A page can be shorter than its limit although there are more: `scannedAtMost`.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listSessions(
  database: Database,
  organizationId: string,
  query: SessionListQuery,
): Promise<Page<SessionRecord>> {
  const values: unknown[] = [organizationId];
  const bind: Bind = (value) => `$${values.push(value)}`;
  const source = await sourceOf(database, organizationId, query, bind);
  const { createdAt, id } = source;
  const conditions = ["session.organization_id = $1", source.condition];
  const after = readCursor(query.cursor);
  if (after !== null)
    conditions.push(`(${createdAt}, ${id}) < (${bind(after.createdAt)}::timestamptz, ${bind(after.id)}::uuid)`);
  const inOrder = `from ${source.from} where ${conditions.join(" and ")} order by ${createdAt} desc, ${id} desc`;
  const ofSource = values.length;
  const left = [...filtersOf(query)].filter(([name]) => !source.seenTo.includes(name));
  const others = left.map(([, sqlOf]) => sqlOf("session", bind));
  // By the source's own columns: by those of the session, all that may be read would be sorted first (266 ms instead of 4 for a
  // label that 60,000 of 6 million sessions have).
  const { rows } = await database.pool.query<WithCursor<SessionRecord>>(
    `with page as (
       select session.id from (
         select session.*, ${createdAt} as source_created_at, ${id} as source_id ${inOrder} limit ${scannedAtMost}) as session
       where ${["true", ...others].join(" and ")}
       order by session.source_created_at desc, session.source_id desc limit ${bind(query.limit + 1)})
     select ${sessionColumns}, ${timeOfCursor("session.created_at")} as cursor_time from page join session on session.id = page.id
     order by session.created_at desc, session.id desc`,
    values,
  );
  const page = pageOf(rows, query.limit, withoutCursor);
  if (page.nextCursor !== null || others.length === 0) return page;
  const last = await database.pool.query<{ id: string; at: string }>(
    `select ${id} as id, ${timeOfCursor(createdAt)} as at ${inOrder} offset ${scannedAtMost - 1} limit 1`,
    values.slice(0, ofSource),
  );
  const [row] = last.rows;
  return row === undefined ? page : { ...page, nextCursor: cursorOf({ createdAt: row.at, id: row.id }) };
}

async function sourceOf(database: Database, organizationId: string, query: SessionFilter, bind: Bind): Promise<Source> {
  const { status, label, repositoryId, archived } = query;
  const filters = filtersOf(query);
  const bySession = (...seenTo: (keyof SessionFilter)[]): Source => ({
    from: "session",
    condition: ["true", ...seenTo.map((name) => filters.get(name)?.("session", bind) ?? "true")].join(" and "),
    createdAt: "session.created_at",
    id: "session.id",
    seenTo,
  });
  if (status?.every((each) => rareStatuses.has(each)) === true) return bySession("status");
  if (query.unreadBy !== undefined) return bySession("unreadBy");
  if (query.attention !== undefined) {
    const condition = `session.id in (${needingAttention(query.attention)})`;
    // An archived session needs no attention: the list is then empty, by the other filter.
    return { ...bySession(), condition, seenTo: archived === true ? ["attention"] : ["attention", "archived"] };
  }
  if (label !== undefined && label.length > 0) {
    return {
      from: "session_label tagged join session on session.id = tagged.session_id",
      condition: `tagged.organization_id = $1 and tagged.label = ${bind(await rarestOf(database, organizationId, label))}`,
      createdAt: "tagged.session_created_at",
      id: "tagged.session_id",
      seenTo: label.length === 1 ? ["label"] : [],
    };
  }
  if (repositoryId !== undefined) {
    const isOrdered = await isFilledIn(database, repositoryId);
    return {
      from: "session_repository part join session on session.id = part.session_id",
      condition: `part.repository_id = ${bind(repositoryId)}`,
      createdAt: isOrdered ? "part.session_created_at" : "session.created_at",
      id: "part.session_id",
      seenTo: ["repositoryId"],
    };
  }
  if (query.requestedBy !== undefined) return bySession("requestedBy");
  if (query.automationId !== undefined) return bySession("automationId");
  const [only] = status ?? [];
  if (archived === false && status?.length === 1 && only !== undefined && indexedStatuses.has(only))
    return bySession("status", "archived");
  return bySession("archived");
}

/** Labels are counted only up to this number to find the rarest of several. */
const countedAtMost = 1_000;

/** The label that fewest sessions have; of some that many have, any. */
async function rarestOf(
  database: Database,
  organizationId: string,
  labels: readonly string[],
): Promise<string | undefined> {
  if (labels.length === 1) return labels[0];
  const { rows } = await database.pool.query<{ label: string }>(
    `select asked.label from unnest($2::text[]) as asked (label)
     order by (select count(*) from (
       select from session_label where organization_id = $1 and session_label.label = asked.label limit ${countedAtMost}) as few)
     limit 1`,
    [organizationId, labels],
  );
  return rows[0]?.label;
}

/** Whether housekeeping has filled in the order of a repository's sessions: src/store/sessions/repository-order.ts. */
async function isFilledIn(database: Database, repositoryId: string): Promise<boolean> {
  const { rowCount } = await database.pool.query(
    "select from session_repository where repository_id = $1 and session_created_at is null limit 1",
    [repositoryId],
  );
  return rowCount === 0;
}
