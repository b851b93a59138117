import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Principal } from "../../domain/people/key.ts";
import { mostShareLinks, type ListedShare, type Share } from "../../domain/sessions/share.ts";
import { isoTime, listRows } from "../cursor.ts";
import { one } from "../one-row.ts";
import { hashOf, randomToken } from "./tokens.ts";

/** Beginning of the token of a share link, by which it is distinguished from an API key. */
export const sharePrefix = "ofsh_";
/** Days after which a link that shows nothing any more is forgotten. */
const forgottenDays = 30;

/** SQL for the user who made a link, signed in or by their own key. */
const maker = "coalesce(share_link.user_id, (select user_id from api_key where api_key.id = share_link.key_id))";

const columns = `id, session_id as "sessionId", ${isoTime("created_at")} as "createdAt", ${isoTime("expires_at")} as "expiresAt",
  ${isoTime("revoked_at")} as "revokedAt", ${isoTime("last_used_at")} as "lastUsedAt",
  (select jsonb_build_object('id', person.id, 'name', person.name) from user_account person
   where person.id = ${maker}) as "createdBy"`;

/** The maker of a link: a person, or a program for them. */
interface Maker extends Pick<Principal, "organizationId" | "userId" | "keyId"> {
  readonly grantId?: string | null | undefined;
}

/** A link to make, and for how many days it shows the session. */
interface NewShare {
  readonly id: string;
  readonly sessionId: string;
  readonly days: number;
}

/**
 * Makes a link that shows a session. One that a program makes goes with the program's grant. Idempotent by id, except that each call makes
 * another token.
 * @returns its record and its token, which is stored nowhere and shown only now
 * @throws NotFoundError if the organization has no such session
 * @throws ConflictError if the session has as many links as it may
 */
export function createShare(
  database: Database,
  { organizationId, userId, keyId, grantId = null }: Maker,
  { id, sessionId, days }: NewShare,
): Promise<{ readonly share: Share; readonly token: string }> {
  const token = `${sharePrefix}${randomToken()}`;
  return database.transaction(async (transaction) => {
    // One after the other, so that no two of them are the last that may be.
    const { rows: sessions } = await transaction.query<{ id: string }>(
      "select id from session where id = $1 and organization_id = $2 for no key update",
      [sessionId, organizationId],
    );
    one(sessions, "session", sessionId);
    const { rows } = await transaction.query<Share>(
      `insert into share_link (id, organization_id, session_id, hash, user_id, key_id, grant_id, expires_at)
       select $8::uuid, $1, $2, $3, $4, $5, $7, now() + $6 * interval '1 day'
       where (select count(*) from share_link
         where session_id = $2 and revoked_at is null and expires_at > now() and id <> $8) < ${mostShareLinks}
       on conflict (id) do update set hash = excluded.hash
       returning ${columns}`,
      [organizationId, sessionId, hashOf(token), userId, keyId, days, grantId, id],
    );
    const [share] = rows;
    if (share === undefined)
      throw new ConflictError(`the session has ${mostShareLinks} links that show it: revoke one of them first`);
    return { share, token };
  });
}

/**
 * Lists links that show a session, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listShares(
  database: Database,
  organizationId: string,
  sessionId: string,
  query: PageQuery,
): Promise<Page<Share>> {
  const ofSession = { condition: "session_id = $5", values: [sessionId] };
  return listRows<Share>(database, organizationId, query, { table: "share_link", columns, ...ofSession });
}

/**
 * Lists links that show any session of the organization, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listSharesOfAll(
  database: Database,
  organizationId: string,
  query: PageQuery,
): Promise<Page<ListedShare>> {
  return listRows<ListedShare>(database, organizationId, query, {
    table: "share_link",
    columns: `${columns}, (select title from session where session.id = share_link.session_id) as "sessionTitle"`,
  });
}

/** Ends what a link shows, at once: streams that are under way, too. @throws NotFoundError if the session has no such link */
export async function revokeShare(
  database: Database,
  organizationId: string,
  sessionId: string,
  id: string,
): Promise<Share> {
  const { rows } = await database.pool.query<Share>(
    `update share_link set revoked_at = coalesce(revoked_at, now())
     where id = $1 and session_id = $2 and organization_id = $3 returning ${columns}`,
    [id, sessionId, organizationId],
  );
  const share = one(rows, "share link", id);
  database.notify("offstage_event", sessionId);
  return share;
}

/** Ends the links that a key made, for the transaction that revokes it. */
export async function revokeSharesOfKey(transaction: Queryable, keyId: string): Promise<void> {
  await transaction.query("update share_link set revoked_at = now() where key_id = $1 and revoked_at is null", [keyId]);
}

/** Ends the links that a user made, signed in or by their own keys, for the transaction that signs them out. */
export async function revokeSharesOfUser(transaction: Queryable, userId: string): Promise<void> {
  await transaction.query(
    `update share_link set revoked_at = now() where revoked_at is null
     and (user_id = $1 or key_id in (select id from api_key where user_id = $1))`,
    [userId],
  );
}

/** Deletes links that have been invalid for a month. @returns how many */
export async function pruneShares(database: Database): Promise<number> {
  const { rowCount } = await database.pool.query(
    "delete from share_link where least(expires_at, revoked_at) < now() - $1 * interval '1 day'",
    [forgottenDays],
  );
  return rowCount ?? 0;
}

/**
 * The reader of a session by a link's token, who may read that one session; null if the token is wrong, revoked,
 * expired, or of another session, if the link's maker may not sign in any more, if the key or the grant that made it is
 * not valid any more, or if the organization is being erased. Records the time of use, at most once a minute.
 * @param sessionId a UUID
 */
export async function findShareReader(
  database: Database,
  token: string,
  sessionId: string,
): Promise<(Principal & { readonly shareId: string }) | null> {
  const { rows } = await database.pool.query<{ id: string; organizationId: string; stale: boolean }>({
    name: "find_share_reader",
    text: `select id, organization_id as "organizationId", coalesce(last_used_at < now() - interval '1 minute', true) as stale
      from share_link where hash = $1 and session_id = $2 and revoked_at is null and expires_at > now()
        and not exists (select from api_key
          where api_key.id = share_link.key_id and (api_key.revoked_at is not null or api_key.expires_at <= now()))
        and not exists (select from oauth_grant where oauth_grant.id = share_link.grant_id and oauth_grant.expires_at <= now())
        and not exists (select from erasure where erasure.organization_id = share_link.organization_id)
        and not exists (select from user_account where user_account.id = ${maker} and disabled_at is not null)`,
    values: [hashOf(token), sessionId],
  });
  const [link] = rows;
  if (link === undefined) return null;
  const { id: shareId, organizationId, stale } = link;
  if (stale) await database.pool.query("update share_link set last_used_at = now() where id = $1", [shareId]);
  return { organizationId, keyId: null, userId: null, scopes: ["read"], automationIds: null, shareId };
}
