import type { Database, Queryable } from "../../database/database.ts";
import type { NoticeChannel, NoticeKind, NoticeScope, NoticeSettings } from "../../domain/notices/notice.ts";
import type { NotifiedPerson } from "./person.ts";

/** A person's choices, and the address that their identity provider verified. */
export async function readPreferences(
  database: Database,
  { userId }: NotifiedPerson,
): Promise<{ readonly settings: NoticeSettings; readonly email: string | null }> {
  const { rows } = await database.pool.query<{ settings: NoticeSettings | null; email: string | null }>(
    `select settings, email from user_account left join notice_preference on user_id = id where id = $1`,
    [userId],
  );
  return { settings: rows[0]?.settings ?? {}, email: rows[0]?.email ?? null };
}

/** Enables notices for a person: from then on changes are recorded for them. */
export async function enterPerson(queryable: Queryable, { organizationId, userId }: NotifiedPerson): Promise<void> {
  await queryable.query(
    "insert into notice_preference (user_id, organization_id) values ($1, $2) on conflict (user_id) do nothing",
    [userId, organizationId],
  );
}

/** A setting to change. */
export interface ChangedSetting {
  readonly kind: NoticeKind;
  readonly channels: { readonly [Channel in NoticeChannel]?: NoticeScope | undefined };
}

/** Changes the given settings only. */
export async function updatePreferences(
  database: Database,
  person: NotifiedPerson,
  changes: readonly ChangedSetting[],
): Promise<void> {
  await database.transaction(async (transaction) => {
    await enterPerson(transaction, person);
    const { rows } = await transaction.query<{ settings: NoticeSettings }>(
      "select settings from notice_preference where user_id = $1 for update",
      [person.userId],
    );
    const settings: Partial<Record<NoticeKind, NoticeSettings[NoticeKind]>> = { ...rows[0]?.settings };
    for (const { kind, channels } of changes) {
      const given = Object.entries(channels).filter(([, scope]) => scope !== undefined);
      settings[kind] = { ...settings[kind], ...(Object.fromEntries(given) as NoticeSettings[NoticeKind]) };
    }
    await transaction.query("update notice_preference set settings = $2, updated_at = now() where user_id = $1", [
      person.userId,
      JSON.stringify(settings),
    ]);
  });
}
