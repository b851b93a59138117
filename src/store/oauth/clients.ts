import type { Database } from "../../database/database.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import type { OAuthClient } from "../../domain/people/oauth-client.ts";

/** Registers a program (RFC 7591). It needs no credential, so a client without a grant is deleted after a week. */
export async function registerClient(
  database: Database,
  { name, redirectUris }: Omit<OAuthClient, "id">,
): Promise<OAuthClient & { readonly createdAt: Date }> {
  const id = crypto.randomUUID();
  const { rows } = await database.pool.query<{ created_at: Date }>(
    `insert into oauth_client (id, name, redirect_uris) values ($1, $2, $3) returning created_at`,
    [id, name, redirectUris],
  );
  return { id, name, redirectUris, createdAt: rows[0]?.created_at ?? new Date(0) };
}

/** The program that registered and got this id; null if there is none. */
export async function findClient(database: Database, id: string): Promise<OAuthClient | null> {
  if (!isUuid(id)) return null;
  const { rows } = await database.pool.query<OAuthClient>(
    `select id, name, redirect_uris as "redirectUris" from oauth_client where id = $1`,
    [id],
  );
  return rows[0] ?? null;
}

/**
 * Deletes programs that got no grant within a week after they registered, or whose last grant has ended.
 * @returns how many
 */
export async function pruneClients(database: Database): Promise<number> {
  const { rowCount } = await database.pool.query(
    `delete from oauth_client where created_at < now() - interval '7 days'
       and (used_at is null or not exists (select from oauth_grant where client_id = oauth_client.id::text))`,
  );
  return rowCount ?? 0;
}
