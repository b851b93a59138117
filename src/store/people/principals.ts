import type { Database } from "../../database/database.ts";
import type { Principal } from "../../domain/people/key.ts";
import { scopesOfKey, type Role } from "../../domain/people/user.ts";
import { createBatcher } from "../batcher.ts";
import { createKnown, type Valid } from "../known.ts";
import { hashOf } from "./tokens.ts";

/** Finds whose a key is; null if it is unknown, revoked or expired, its owner is disabled, or its organization is being erased. */
export type FindPrincipal = (key: string) => Promise<Principal | null>;

/** Notifies every node that a key or its owner lost rights. */
const keysChannel = "offstage_keys";
const mostKnown = 10_000;

/**
 * Notifies all nodes to read keys again; called after the commit that revoked one, or changed what an owner may. This
 * process drops them at once.
 */
export function forgetKeys(database: Pick<Database, "notifyAtOnce">): void {
  database.notifyAtOnce(keysChannel, "");
}

/**
 * Finds whose keys are. What was found is known until a notification says that keys changed, for ten seconds at most, and only while
 * notifications arrive; what is asked for at once is asked of the database in one statement. Records the time of use, about once a minute.
 * @param options.now a clock in milliseconds that never goes back
 */
export function createPrincipalFinder(
  database: Database,
  options: { readonly now?: () => number } = {},
): FindPrincipal {
  const ask = createBatcher<Buffer, Valid<Principal> | null>((hashes) => findPrincipals(database, hashes), {
    atOnce: 2,
    most: 100,
    isOnesOwn: () => false,
  });
  const known = createKnown(database, (name) => ask(Buffer.from(name, "latin1")), {
    channel: keysChannel,
    most: mostKnown,
    ...options,
  });
  // The key itself is not kept.
  return (key) => known.find(hashOf(key).toString("latin1"));
}

async function findPrincipals(database: Database, hashes: readonly Buffer[]): Promise<(Valid<Principal> | null)[]> {
  interface Row extends Omit<Principal, "userId"> {
    readonly keyId: string;
    readonly hash: Buffer;
    readonly stale: boolean;
    readonly leftMs: number | null;
    readonly role: Role | null;
  }
  const { rows } = await database.pool.query<Row>({
    name: "find_principals",
    text: `select id as "keyId", organization_id as "organizationId", scopes, automation_ids as "automationIds", hash,
             coalesce(last_used_at < now() - interval '1 minute', true) as stale,
             extract(epoch from expires_at - now())::float8 * 1000 as "leftMs",
             (select role from user_account where id = api_key.user_id) as role
           from api_key where hash = any($1) and revoked_at is null and (expires_at is null or expires_at > now())
             and not exists (select from user_account where id = api_key.user_id and disabled_at is not null)
             and not exists (select from erasure where erasure.organization_id = api_key.organization_id)`,
    values: [hashes],
  });
  const stale = rows.filter((row) => row.stale).map(({ keyId }) => keyId);
  if (stale.length > 0)
    await database.pool.query("update api_key set last_used_at = now() where id = any($1)", [stale]);
  return hashes.map((wanted) => {
    const row = rows.find(({ hash }) => hash.equals(wanted));
    if (row === undefined) return null;
    const { keyId, organizationId, scopes, automationIds, leftMs, role } = row;
    return {
      value: { keyId, organizationId, scopes: scopesOfKey(scopes, role), automationIds, userId: null },
      validMs: leftMs ?? Number.POSITIVE_INFINITY,
    };
  });
}
