import type { Database } from "../../database/database.ts";
import { removeRows } from "../prune.ts";
import { requireSession } from "../sessions/sessions.ts";
import { isUnread } from "../sessions/unread.ts";
import type { NotifiedPerson } from "./person.ts";

/** Most that are counted. */
const countedAtMost = 100;

/**
 * Which of these sessions have an outcome that the person has not looked at. Only a person's own sessions can be
 * unread.
 * @param userId the signed-in user, or null
 * @param keyId the key whose owner counts, or null; if both are null, no session is unread
 */
export async function unreadAmong(
  database: Database,
  { userId, keyId }: { readonly userId: string | null; readonly keyId: string | null },
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0 || (userId === null && keyId === null)) return new Set();
  const { rows } = await database.pool.query<{ id: string }>({
    name: "unread_among",
    text: `select session.id from session, (select coalesce($1, (select user_id from api_key where id = $2)) as id) as person
           where session.id = any($3::uuid[]) and ${isUnread("session", "person.id")}`,
    values: [userId, keyId, ids],
  });
  return new Set(rows.map(({ id }) => id));
}

/** How many sessions of a person have an outcome that they have not looked at, up to a hundred. */
export async function countUnread(
  database: Database,
  { userId }: NotifiedPerson,
): Promise<{ count: number; more: boolean }> {
  const { rows } = await database.pool.query<{ count: number }>({
    name: "count_unread",
    text: `select count(*)::integer as count from (
             select from session where ${isUnread("session", "$1")}
             limit ${countedAtMost + 1}) as unread`,
    values: [userId],
  });
  const count = rows[0]?.count ?? 0;
  return { count: Math.min(count, countedAtMost), more: count > countedAtMost };
}

/** Records that a person looked at a session. @throws NotFoundError */
export async function markRead(database: Database, person: NotifiedPerson, sessionId: string): Promise<void> {
  await requireSession(database, person.organizationId, sessionId);
  const { rowCount } = await database.pool.query(
    `insert into session_read (user_id, session_id) select $1, id from session where id = $2 for key share
     on conflict (user_id, session_id) do update set read_at = excluded.read_at`,
    [person.userId, sessionId],
  );
  // It was deleted a moment ago.
  if (rowCount === 0) await requireSession(database, person.organizationId, sessionId);
}

/** Records that a person looked at all ended sessions. */
export async function markAllRead(database: Database, { userId }: NotifiedPerson): Promise<void> {
  await database.pool.query("update user_account set read_until = now() where id = $1", [userId]);
  await database.pool.query("delete from session_read where user_id = $1 and read_at <= now()", [userId]);
}

/** Outcomes of this age, in days, count as looked at. */
const unreadDays = 90;

/**
 * Deletes old read marks; those sessions count as read by their age.
 * @returns how many marks
 */
export async function pruneReadMarks(database: Database, signal: AbortSignal): Promise<number> {
  await database.pool.query(
    "update user_account set read_until = now() - $1 * interval '1 day' where read_until < now() - ($1 + 1) * interval '1 day'",
    [unreadDays],
  );
  const condition = "read_at < now() - $1 * interval '1 day'";
  return removeRows(database, "session_read", { condition, values: [unreadDays] }, signal);
}
