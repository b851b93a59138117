import type { Database, Queryable } from "../database/database.ts";
import type { Principal, Scope } from "../domain/key.ts";
import { scopesOf, type Role } from "../domain/user.ts";
import { hashOf, randomToken } from "./secret.ts";

/** How long a browser stays signed in. */
const browserSessionDays = 30;

/** @returns the token of a link that signs one browser in, once, within `ttlMs` milliseconds */
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

/** Trades a link's token for a browser session; null where it is unknown, used or too old. */
export function redeemLoginLink(database: Database, token: string): Promise<string | null> {
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<{ organization_id: string; scopes: Scope[] }>(
      `update login_link set used_at = now() where hash = $1 and used_at is null and expires_at > now()
       returning organization_id, scopes`,
      [hashOf(token)],
    );
    const [link] = rows;
    if (link === undefined) return null;
    const principal = {
      organizationId: link.organization_id,
      keyId: null,
      userId: null,
      scopes: link.scopes,
      automationIds: null,
    };
    return insertBrowserSession(transaction, principal);
  });
}

/** Signs a browser in that showed a key. @returns the cookie's value */
export function createBrowserSession(database: Database, principal: Principal): Promise<string> {
  return insertBrowserSession(database.pool, principal);
}

async function insertBrowserSession(queryable: Queryable, principal: Principal): Promise<string> {
  const token = randomToken();
  await queryable.query(
    `insert into browser_session (hash, organization_id, key_id, user_id, scopes, expires_at)
     values ($1, $2, $3, $4, $5, now() + $6 * interval '1 day')`,
    [hashOf(token), principal.organizationId, principal.keyId, principal.userId, principal.scopes, browserSessionDays],
  );
  return token;
}

/** Who a browser's cookie stands for; null where it is unknown, expired, or its key was revoked. */
export async function findBrowserPrincipal(database: Database, token: string): Promise<Principal | null> {
  const { rows } = await database.pool.query<{
    organization_id: string;
    key_id: string | null;
    user_id: string | null;
    role: Role | null;
    scopes: Scope[];
    automation_ids: string[] | null;
  }>({
    name: "find_browser_principal",
    text: `select browser.organization_id, browser.key_id, browser.user_id, account.role, browser.scopes,
             api_key.automation_ids
           from browser_session browser left join api_key on api_key.id = browser.key_id
           left join user_account account on account.id = browser.user_id
           where browser.hash = $1 and browser.expires_at > now() and api_key.revoked_at is null
             and (api_key.expires_at is null or api_key.expires_at > now()) and account.disabled_at is null`,
    values: [hashOf(token)],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { organization_id: organizationId, key_id: keyId, user_id: userId, role, automation_ids: automationIds } = row;
  // A role that was changed counts at once.
  return { organizationId, keyId, userId, scopes: role === null ? row.scopes : scopesOf(role), automationIds };
}

export async function deleteBrowserSession(database: Database, token: string): Promise<void> {
  await database.pool.query("delete from browser_session where hash = $1", [hashOf(token)]);
}

/** Forgets links and sign-ins that have expired. @returns how many */
export async function pruneLogins(database: Database): Promise<number> {
  const links = await database.pool.query("delete from login_link where expires_at < now()");
  const sessions = await database.pool.query("delete from browser_session where expires_at < now()");
  return (links.rowCount ?? 0) + (sessions.rowCount ?? 0);
}
