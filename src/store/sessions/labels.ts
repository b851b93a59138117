import type { Database } from "../../database/database.ts";
import { ConflictError, InvalidInputError } from "../../domain/errors/errors.ts";
import { labelLimit, type ChangeLabels } from "../../domain/sessions/labels.ts";
import { requireSession, type SessionRecord } from "./sessions.ts";
import { lockSession } from "./transition.ts";

/**
 * Sets a session's labels, or adds some and removes others.
 * @throws NotFoundError
 * @throws ConflictError if it would have too many
 */
export async function changeLabels(
  database: Database,
  organizationId: string,
  id: string,
  { labels, add = [], remove = [] }: ChangeLabels,
): Promise<SessionRecord> {
  await database.transaction(async (transaction) => {
    await lockSession(transaction, organizationId, id);
    await transaction.query(
      "delete from session_label where session_id = $1 and (label = any($2::text[]) or label <> all($3::text[]))",
      [id, labels === undefined ? remove : [], labels ?? null],
    );
    await transaction.query(
      `insert into session_label (session_id, label, organization_id, session_created_at)
       select id, label, organization_id, created_at from session, unnest($2::text[]) as label where id = $1
       on conflict do nothing`,
      [id, labels ?? add],
    );
    const { rows } = await transaction.query<{ count: number }>(
      "select count(*)::integer as count from session_label where session_id = $1",
      [id],
    );
    if ((rows[0]?.count ?? 0) > labelLimit) {
      throw new ConflictError(`session ${id} would have more than ${labelLimit} labels: remove some`);
    }
    await transaction.query("update session set updated_at = now() where id = $1", [id]);
  });
  database.notify("offstage_event", id);
  return requireSession(database, organizationId, id);
}

/**
 * The labels that an organization's sessions have, in the order of their letters. Each is one look into the index, however many sessions
 * have it.
 * @param query.prefix what they begin with
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listLabels(
  database: Database,
  organizationId: string,
  {
    prefix = "",
    limit,
    cursor,
  }: { readonly prefix?: string | undefined; readonly limit: number; readonly cursor?: string | undefined },
): Promise<{ readonly labels: string[]; readonly nextCursor: string | null }> {
  const after = cursor === undefined ? "" : Buffer.from(cursor, "base64url").toString();
  if (after.includes("\0") || !after.isWellFormed()) {
    throw new InvalidInputError("cursor: must be the nextCursor of the previous page");
  }
  const next = (condition: string): string =>
    `(select label from session_label where organization_id = $1 and ${condition} order by label limit 1)`;
  const { rows } = await database.pool.query<{ label: string }>(
    `with recursive found (label) as (
       select ${next("label >= $2 and label > $3")}
       union all
       select ${next("label > found.label")} from found where starts_with(found.label, $2))
     select label from found where starts_with(label, $2) limit $4`,
    [organizationId, prefix, after, limit + 1],
  );
  const labels = rows.slice(0, limit).map(({ label }) => label);
  const last = labels.at(-1);
  const isMore = rows.length > limit && last !== undefined;
  return { labels, nextCursor: isMore ? Buffer.from(last).toString("base64url") : null };
}
