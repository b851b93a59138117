import type { Database } from "../../database/database.ts";
import type { Resource } from "../../domain/people/grant.ts";
import type { Principal, Scope } from "../../domain/people/key.ts";
import { hashOf, randomToken } from "../people/tokens.ts";

/** A program asks a person to let it act for them. */
export interface OAuthRequest {
  readonly clientId: string;
  readonly clientName: string;
  readonly redirectUri: string;
  readonly state: string | null;
  readonly scopes: readonly Scope[];
  readonly resource: Resource;
  /** Challenge of PKCE, by S256. */
  readonly challenge: string;
  /** The address of this server that the program knows. */
  readonly issuer: string;
}

const columns = `client_id as "clientId", client_name as "clientName", redirect_uri as "redirectUri", state, scopes, resource,
  challenge, issuer`;

/**
 * Keeps a request for ten minutes.
 * @returns the token by which the page that asks the person names it
 */
export async function beginGrantRequest(database: Database, request: OAuthRequest): Promise<string> {
  const token = randomToken();
  const { clientId, clientName, redirectUri, state, scopes, resource, challenge, issuer } = request;
  await database.pool.query(
    `insert into oauth_request (hash, client_id, client_name, redirect_uri, state, scopes, resource, challenge, issuer, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + interval '10 minutes')`,
    [hashOf(token), clientId, clientName, redirectUri, state, scopes, resource, challenge, issuer],
  );
  return token;
}

/** The request of this token, if it is not decided and has not expired; else null. */
export async function findRequest(database: Database, token: string): Promise<OAuthRequest | null> {
  const { rows } = await database.pool.query<OAuthRequest>(
    `select ${columns} from oauth_request where hash = $1 and code_hash is null and expires_at > now()`,
    [hashOf(token)],
  );
  return rows[0] ?? null;
}

/**
 * Allows a request, once.
 * @returns the code for the program, good for a minute; null if the request is unknown, decided or expired
 */
export async function allowRequest(
  database: Database,
  token: string,
  {
    person: { organizationId, userId, keyId },
    scopes,
    address,
  }: { readonly person: Principal; readonly scopes: readonly Scope[]; readonly address: string | null },
): Promise<string | null> {
  const code = randomToken();
  const { rowCount } = await database.pool.query(
    `update oauth_request set code_hash = $2, organization_id = $3, user_id = $4, key_id = $5, granted = $6, address = $7,
       expires_at = now() + interval '1 minute'
     where hash = $1 and code_hash is null and expires_at > now()`,
    [hashOf(token), hashOf(code), organizationId, userId, keyId, scopes, address],
  );
  return rowCount === 1 ? code : null;
}

/** Removes a request that a person refused. @returns the request; null if it is unknown, decided or expired */
export async function refuseRequest(database: Database, token: string): Promise<OAuthRequest | null> {
  const { rows } = await database.pool.query<OAuthRequest>(
    `delete from oauth_request where hash = $1 and code_hash is null and expires_at > now() returning ${columns}`,
    [hashOf(token)],
  );
  return rows[0] ?? null;
}

/**
 * Deletes requests that have expired, an hour later: until then a second exchange of a code is known.
 * @returns how many
 */
export async function pruneGrantRequests(database: Database): Promise<number> {
  const { rowCount } = await database.pool.query(
    "delete from oauth_request where expires_at < now() - interval '1 hour'",
  );
  return rowCount ?? 0;
}
