import type { Database, Queryable } from "../../database/database.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Principal, Scope } from "../../domain/people/key.ts";
import type { Login } from "../../domain/people/login.ts";
import { scopesOf, scopesOfKey, type Role } from "../../domain/people/user.ts";
import { cursorColumn, isoTime, pageOf, readCursor, withoutCursor, type WithCursor } from "../cursor.ts";
import { hashOf, randomToken } from "./tokens.ts";
import { one } from "../one-row.ts";

/** A browser that signs in. `address` is its IP address. */
export interface Browser {
  /** Days that it stays signed in. */
  readonly days: number;
  readonly address: string | null;
  readonly userAgent: string | null;
}

const longestUserAgent = 300;

/**
 * Creates a link that signs in one browser, once.
 * @param options.ttlMs milliseconds for which the link is valid
 * @returns the link's token
 */
export async function createLoginLink(
  database: Database,
  organizationId: string,
  { scopes, ttlMs }: { readonly scopes: readonly Scope[]; readonly ttlMs: number },
): Promise<string> {
  const token = randomToken();
  await database.pool.query(
    `insert into login_link (hash, organization_id, scopes, expires_at)
     values ($1, $2, $3, now() + $4 * interval '1 millisecond')`,
    [hashOf(token), organizationId, scopes, ttlMs],
  );
  return token;
}

/**
 * Exchanges a link's token for a browser session; null if the token is unknown, used or expired, of a disabled
 * person, or of an organization that is being erased. The link of an invitation signs in the person who was invited.
 * @returns the value of the session's cookie
 */
export function redeemLoginLink(database: Database, token: string, browser: Browser): Promise<string | null> {
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<{ organization_id: string; user_id: string | null; scopes: Scope[] }>(
      `update login_link set used_at = now() where hash = $1 and used_at is null and expires_at > now()
         and not exists (select from user_account where id = login_link.user_id and disabled_at is not null)
         and not exists (select from erasure where erasure.organization_id = login_link.organization_id)
       returning organization_id, user_id, scopes`,
      [hashOf(token)],
    );
    const [link] = rows;
    if (link === undefined) return null;
    const { organization_id: organizationId, user_id: userId } = link;
    const scopes = userId === null ? link.scopes : await signedInBy(transaction, userId);
    return insertBrowserSession(
      transaction,
      { organizationId, keyId: null, userId, scopes, automationIds: null },
      browser,
    );
  });
}

/** Records that a person signed in by their link. @returns their scopes */
async function signedInBy(transaction: Queryable, userId: string): Promise<readonly Scope[]> {
  const { rows } = await transaction.query<{ role: Role }>(
    "update user_account set last_sign_in_at = now() where id = $1 returning role",
    [userId],
  );
  return scopesOf(one(rows, "user", userId).role);
}

/**
 * Signs in a browser that presented a key, or whose user signed in at a provider.
 * @param browser.issuer the provider's address, if one signed the user in
 * @returns the value of the session's cookie
 */
export function createBrowserSession(
  database: Database,
  principal: Principal,
  browser: Browser & { readonly issuer?: string },
): Promise<string> {
  return insertBrowserSession(database.pool, principal, browser);
}

async function insertBrowserSession(
  queryable: Queryable,
  { organizationId, keyId, userId, scopes }: Principal,
  { days, address, userAgent, issuer }: Browser & { readonly issuer?: string },
): Promise<string> {
  const token = randomToken();
  const named = userAgent?.slice(0, longestUserAgent).replaceAll("\0", "").toWellFormed();
  await queryable.query(
    `insert into browser_session (hash, organization_id, key_id, user_id, scopes, address, user_agent, expires_at, issuer)
     values ($1, $2, $3, $4, $5, $6, $7, now() + $8 * interval '1 day', $9)`,
    [hashOf(token), organizationId, keyId, userId, scopes, address, named, days, issuer],
  );
  return token;
}

/**
 * The principal that a browser's cookie belongs to; null if the cookie is unknown or expired, its key was revoked, its
 * user was disabled, or its organization is being erased. Records the time of use, at most once a minute.
 * @param days that a sign-in is valid; this also shortens sign-ins from a time when the setting was longer
 */
export async function findBrowserPrincipal(database: Database, token: string, days: number): Promise<Principal | null> {
  const { rows } = await database.pool.query<{
    organization_id: string;
    key_id: string | null;
    user_id: string | null;
    role: Role | null;
    key_owner_role: Role | null;
    scopes: Scope[];
    automation_ids: string[] | null;
    stale: boolean;
  }>({
    name: "find_browser_principal",
    text: `select browser.organization_id, browser.key_id, browser.user_id, account.role, browser.scopes,
             (select role from user_account where id = api_key.user_id) as key_owner_role,
             api_key.automation_ids, coalesce(browser.last_used_at < now() - interval '1 minute', true) as stale
           from browser_session browser left join api_key on api_key.id = browser.key_id
           left join user_account account on account.id = browser.user_id
           where browser.hash = $1 and browser.expires_at > now() and browser.created_at > now() - $2 * interval '1 day'
             and api_key.revoked_at is null
             and (api_key.expires_at is null or api_key.expires_at > now()) and account.disabled_at is null
             and not exists (select from user_account where id = api_key.user_id and disabled_at is not null)
             and not exists (select from erasure where erasure.organization_id = browser.organization_id)`,
    values: [hashOf(token), days],
  });
  const [row] = rows;
  if (row === undefined) return null;
  if (row.stale) {
    await database.pool.query("update browser_session set last_used_at = now() where hash = $1", [hashOf(token)]);
  }
  const { organization_id: organizationId, key_id: keyId, user_id: userId, role, automation_ids: automationIds } = row;
  // A changed role applies at once.
  const scopes = role === null ? scopesOfKey(row.scopes, row.key_owner_role) : scopesOf(role);
  return { organizationId, keyId, userId, scopes, automationIds };
}

/** Selects sign-ins: all of an organization, those of one user or one key, or that of one browser. */
export type LoginOwner =
  | { readonly all: true }
  | { readonly userId: string }
  | { readonly keyId: string }
  | { readonly token: string };

/**
 * Lists valid sign-ins, newest first.
 * @param query.days days that a sign-in is valid
 * @param query.current the cookie's value of the browser that asks
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listLogins(
  database: Database,
  organizationId: string,
  query: PageQuery & { readonly of: LoginOwner; readonly days: number; readonly current: string | null },
): Promise<Page<Login>> {
  const after = readCursor(query.cursor);
  const { rows } = await database.pool.query<WithCursor<Login>>(
    `select ${columns("$3")}, ${cursorColumn("browser")} from ${joined}
     where browser.organization_id = $1 and ${isGood("$4")} and ${isOf}
       and ($8::timestamptz is null or (browser.created_at, browser.id) < ($8::timestamptz, $9::uuid))
     order by browser.created_at desc, browser.id desc limit $2`,
    [
      organizationId,
      query.limit + 1,
      query.current === null ? null : hashOf(query.current),
      query.days,
      ...ownerValues(query.of),
      after?.createdAt,
      after?.id,
    ],
  );
  return pageOf(rows, query.limit, withoutCursor);
}

/**
 * Signs out a browser.
 * @throws NotFoundError if the sign-in does not exist or `of` does not include it
 */
export async function revokeLogin(
  database: Database,
  organizationId: string,
  id: string,
  { of, days, current }: { readonly of: LoginOwner; readonly days: number; readonly current: string | null },
): Promise<Login> {
  const { rows } = await database.pool.query<Login>(
    `with gone as (
       delete from browser_session using (select browser.hash from ${joined}
         where browser.id = $2 and browser.organization_id = $1 and ${isGood("$4")} and ${isOf}) meant
       where browser_session.hash = meant.hash returning browser_session.*)
     select ${columns("$3")} from gone browser ${joins}`,
    [organizationId, id, current === null ? null : hashOf(current), days, ...ownerValues(of)],
  );
  return one(rows, "sign-in", id);
}

const joins = `left join api_key on api_key.id = browser.key_id
  left join user_account account on account.id = browser.user_id`;
const joined = `browser_session browser ${joins}`;
const columns = (current: string): string =>
  `browser.id, case when browser.user_id is not null then 'user' when browser.key_id is not null then 'key' else 'link' end as by,
   browser.user_id as "userId", browser.key_id as "keyId", coalesce(account.name, api_key.name) as name,
   coalesce(browser.hash = ${current}, false) as current, browser.address, browser.user_agent as "userAgent",
   ${isoTime("browser.created_at")} as "createdAt", ${isoTime("browser.last_used_at")} as "lastUsedAt",
   ${isoTime("browser.expires_at")} as "expiresAt"`;
const isGood = (days: string): string =>
  `browser.expires_at > now() and browser.created_at > now() - ${days} * interval '1 day' and api_key.revoked_at is null
   and (api_key.expires_at is null or api_key.expires_at > now()) and account.disabled_at is null`;
/** An owner sets one of the three parameters; `all` sets none. */
const isOf = `($5::uuid is null or browser.user_id = $5) and ($6::uuid is null or browser.key_id = $6)
  and ($7::bytea is null or browser.hash = $7)`;

function ownerValues(of: LoginOwner): (string | Buffer | null)[] {
  return ["userId" in of ? of.userId : null, "keyId" in of ? of.keyId : null, "token" in of ? hashOf(of.token) : null];
}

/** Signs out the browser that has this cookie value. An unknown value changes nothing. */
export async function deleteBrowserSession(database: Database, token: string): Promise<void> {
  await database.pool.query("delete from browser_session where hash = $1", [hashOf(token)]);
}

/**
 * Deletes expired login links and sign-ins.
 * @returns how many
 */
export async function pruneLogins(database: Database): Promise<number> {
  const links = await database.pool.query("delete from login_link where expires_at < now()");
  const sessions = await database.pool.query("delete from browser_session where expires_at < now()");
  return (links.rowCount ?? 0) + (sessions.rowCount ?? 0);
}
