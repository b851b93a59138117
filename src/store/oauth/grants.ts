import type { Database, Queryable } from "../../database/database.ts";
import { NotFoundError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { grantable, type Grant, type Resource } from "../../domain/people/grant.ts";
import type { Principal, Scope } from "../../domain/people/key.ts";
import { scopesOf, scopesOfKey, type Role } from "../../domain/people/user.ts";
import { cursorColumn, isoTime, pageOf, readCursor, withoutCursor, type WithCursor } from "../cursor.ts";
import { hashOf, randomToken } from "../people/tokens.ts";

/**
 * The prefix of access tokens: by this the API distinguishes them from keys, and a secret scanner from other texts.
 */
export const accessPrefix = "ofa_";
const refreshPrefix = "ofr_";
/** Seconds for which an access token is good. */
export const accessSeconds = 3_600;
/**
 * Seconds for which a refresh token may be exchanged again: two processes of one program may do so at once, or an answer may be lost.
 * A later exchange is a theft (OAuth 2.1, section 4.3.1), and ends the grant.
 */
const reuseSeconds = 60;

/** Tokens of a grant: each is stored as its hash, and known only now. */
export interface IssuedTokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly scopes: readonly Scope[];
}

/** A program's request to exchange its code. */
export interface CodeExchange {
  readonly code: string;
  readonly clientId: string;
  readonly redirectUri: string;
  /** Challenge that follows from the verifier of PKCE. */
  readonly challenge: string;
  /** The resource of the tokens; null: not given. */
  readonly resource: Resource | null;
}

interface AllowedRequest {
  client_id: string;
  client_name: string;
  redirect_uri: string;
  resource: Resource;
  challenge: string;
  organization_id: string;
  user_id: string | null;
  key_id: string | null;
  granted: Scope[];
  address: string | null;
  grant_id: string | null;
  fresh: boolean;
}

/**
 * Exchanges a code for the first tokens of a grant, once. A second exchange ends the grant: the code was stolen.
 * @param days for which the grant is good unless it is used
 * @returns null if the code is unknown, used or expired, or was made for another program, address or resource
 */
export function exchangeCode(database: Database, exchange: CodeExchange, days: number): Promise<IssuedTokens | null> {
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<AllowedRequest>(
      `select *, expires_at > now() as fresh from oauth_request where code_hash = $1 for update`,
      [hashOf(exchange.code)],
    );
    const [request] = rows;
    if (request === undefined) return null;
    if (request.grant_id !== null) {
      await transaction.query("delete from oauth_grant where id = $1", [request.grant_id]);
      return null;
    }
    const isMeant =
      request.fresh &&
      request.client_id === exchange.clientId &&
      request.redirect_uri === exchange.redirectUri &&
      request.challenge === exchange.challenge &&
      (exchange.resource === null || request.resource === exchange.resource);
    if (!isMeant) {
      // A request with a wrong verifier has the code, so the code has leaked: it is deleted.
      await transaction.query("delete from oauth_request where code_hash = $1", [hashOf(exchange.code)]);
      return null;
    }
    const id = crypto.randomUUID();
    await transaction.query(
      `insert into oauth_grant (id, organization_id, user_id, key_id, client_id, client_name, scopes, resource, address, expires_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + $10 * interval '1 day')`,
      [
        id,
        request.organization_id,
        request.user_id,
        request.key_id,
        request.client_id,
        request.client_name,
        request.granted,
        request.resource,
        request.address,
        days,
      ],
    );
    await transaction.query("update oauth_request set grant_id = $2 where code_hash = $1", [hashOf(exchange.code), id]);
    await transaction.query("update oauth_client set used_at = now() where id::text = $1", [request.client_id]);
    return issue(transaction, { id, scopes: request.granted, days });
  });
}

/**
 * Exchanges a refresh token for new tokens of its grant.
 * @param days for which the grant is then good unless it is used
 * @returns null if the token is unknown, used long ago or expired, another program's, or its person may do nothing any more
 */
export function exchangeRefreshToken(
  database: Database,
  {
    refreshToken,
    clientId,
    resource,
  }: { readonly refreshToken: string; readonly clientId: string; readonly resource: Resource | null },
  days: number,
): Promise<IssuedTokens | null> {
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<{ id: string; scopes: Scope[]; stolen: boolean }>(
      `select held.id, held.scopes,
         coalesce(token.replaced_at < now() - $4 * interval '1 second', false) as stolen
       from oauth_token token join oauth_grant held on held.id = token.grant_id
         left join api_key on api_key.id = held.key_id left join user_account account on account.id = held.user_id
       where token.hash = $1 and token.kind = 'refresh' and token.expires_at > now() and held.client_id = $2
         and ($3::text is null or held.resource = $3) and ${isGood}
       for update of token`,
      [hashOf(refreshToken), clientId, resource, reuseSeconds],
    );
    const [held] = rows;
    if (held === undefined) return null;
    if (held.stolen) {
      await transaction.query("delete from oauth_grant where id = $1", [held.id]);
      return null;
    }
    await transaction.query("update oauth_token set replaced_at = coalesce(replaced_at, now()) where hash = $1", [
      hashOf(refreshToken),
    ]);
    await transaction.query("update oauth_grant set expires_at = now() + $2 * interval '1 day' where id = $1", [
      held.id,
      days,
    ]);
    return issue(transaction, { id: held.id, scopes: held.scopes, days });
  });
}

async function issue(
  transaction: Queryable,
  { id, scopes, days }: { readonly id: string; readonly scopes: readonly Scope[]; readonly days: number },
): Promise<IssuedTokens> {
  const accessToken = accessPrefix + randomToken();
  const refreshToken = refreshPrefix + randomToken();
  await transaction.query(
    `insert into oauth_token (hash, grant_id, kind, expires_at)
     values ($1, $2, 'access', now() + $4 * interval '1 second'), ($3, $2, 'refresh', now() + $5 * interval '1 day')`,
    [hashOf(accessToken), id, hashOf(refreshToken), accessSeconds, days],
  );
  return { accessToken, refreshToken, scopes };
}

/**
 * SQL condition: the person who gave the grant still has its rights themself. Needs the grant as `held`, its key as
 * `api_key` and its user as `account`.
 */
const isGood = `held.expires_at > now() and api_key.revoked_at is null and (api_key.expires_at is null or api_key.expires_at > now())
  and account.disabled_at is null
  and not exists (select from user_account where id = api_key.user_id and disabled_at is not null)
  and not exists (select from erasure where erasure.organization_id = held.organization_id)`;

/**
 * The principal that an access token belongs to; null if the token is unknown or expired, made for another resource, or its person may
 * do nothing any more. It has no scope that its person has lost. Records the time of use, at most once a minute.
 */
export async function findGrantPrincipal(
  database: Database,
  accessToken: string,
  resource: Resource,
): Promise<Principal | null> {
  const { rows } = await database.pool.query<{
    id: string;
    organization_id: string;
    key_id: string | null;
    user_id: string | null;
    role: Role | null;
    scopes: Scope[];
    key_scopes: Scope[] | null;
    key_owner_role: Role | null;
    automation_ids: string[] | null;
    stale: boolean;
  }>({
    name: "find_grant_principal",
    text: `select held.id, held.organization_id, held.key_id, held.user_id, account.role, held.scopes,
             api_key.scopes as key_scopes, api_key.automation_ids,
             (select role from user_account where id = api_key.user_id) as key_owner_role,
             coalesce(held.last_used_at < now() - interval '1 minute', true) as stale
           from oauth_token token join oauth_grant held on held.id = token.grant_id
             left join api_key on api_key.id = held.key_id left join user_account account on account.id = held.user_id
           where token.hash = $1 and token.kind = 'access' and token.expires_at > now() and held.resource = $2 and ${isGood}`,
    values: [hashOf(accessToken), resource],
  });
  const [row] = rows;
  if (row === undefined) return null;
  if (row.stale) await database.pool.query("update oauth_grant set last_used_at = now() where id = $1", [row.id]);
  const { organization_id: organizationId, key_id: keyId, user_id: userId, automation_ids: automationIds } = row;
  const held = row.role !== null ? scopesOf(row.role) : scopesOfKey(row.key_scopes ?? row.scopes, row.key_owner_role);
  return {
    organizationId,
    keyId,
    userId,
    scopes: grantable(row.scopes, { scopes: held }),
    automationIds,
    grantId: row.id,
  };
}

/** Selects grants: all of an organization, those of one user, or those of one key. */
export type GrantOwner = { readonly all: true } | { readonly userId: string } | { readonly keyId: string };

const shown = `held.id, held.client_id as "clientId", held.client_name as "clientName",
  case when held.user_id is not null then 'user' when held.key_id is not null then 'key' else 'link' end as by,
  held.user_id as "userId", held.key_id as "keyId", coalesce(account.name, api_key.name) as name, held.scopes, held.resource,
  held.address, ${isoTime("held.created_at")} as "createdAt", ${isoTime("held.last_used_at")} as "lastUsedAt",
  ${isoTime("held.expires_at")} as "expiresAt"`;
const joins = `left join api_key on api_key.id = held.key_id left join user_account account on account.id = held.user_id`;
/** An owner sets one of the two parameters; `all` sets none. */
const isOf = (user: string, key: string): string =>
  `(${user}::uuid is null or held.user_id = ${user}) and (${key}::uuid is null or held.key_id = ${key})`;
const ownerValues = (of: GrantOwner): (string | null)[] => [
  "userId" in of ? of.userId : null,
  "keyId" in of ? of.keyId : null,
];

/**
 * Lists grants that are good, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listGrants(
  database: Database,
  organizationId: string,
  query: PageQuery & { readonly of: GrantOwner },
): Promise<Page<Grant>> {
  const after = readCursor(query.cursor);
  const { rows } = await database.pool.query<WithCursor<Grant>>(
    `select ${shown}, ${cursorColumn("held")} from oauth_grant held ${joins}
     where held.organization_id = $1 and ${isGood} and ${isOf("$3", "$4")}
       and ($5::timestamptz is null or (held.created_at, held.id) < ($5::timestamptz, $6::uuid))
     order by held.created_at desc, held.id desc limit $2`,
    [organizationId, query.limit + 1, ...ownerValues(query.of), after?.createdAt, after?.id],
  );
  return pageOf(rows, query.limit, withoutCursor);
}

/**
 * Ends a grant: its tokens are refused from then on.
 * @throws NotFoundError if the grant does not exist or `of` does not include it
 */
export async function revokeGrant(
  database: Database,
  organizationId: string,
  id: string,
  of: GrantOwner,
): Promise<Grant> {
  const { rows } = await database.pool.query<Grant>(
    `with held as (delete from oauth_grant held where held.id = $2 and held.organization_id = $1 and ${isOf("$3", "$4")}
       returning held.*)
     select ${shown} from held ${joins}`,
    [organizationId, id, ...ownerValues(of)],
  );
  if (rows[0] === undefined) throw new NotFoundError(`grant ${id} was not found`);
  return rows[0];
}

/** Ends the grant of a token, access or refresh (RFC 7009). An unknown token changes nothing. */
export async function revokeToken(database: Database, token: string, clientId: string): Promise<void> {
  await database.pool.query(
    `delete from oauth_grant where client_id = $2 and id = (select grant_id from oauth_token where hash = $1)`,
    [hashOf(token), clientId],
  );
}

/**
 * Deletes grants and tokens that have ended.
 * @returns how many
 */
export async function pruneGrants(database: Database): Promise<number> {
  const grants = await database.pool.query("delete from oauth_grant where expires_at < now()");
  const tokens = await database.pool.query("delete from oauth_token where expires_at < now()");
  return (grants.rowCount ?? 0) + (tokens.rowCount ?? 0);
}
