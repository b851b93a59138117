import type { Database } from "../../database/database.ts";
import { ForbiddenError } from "../../domain/errors/errors.ts";
import type { Principal } from "../../domain/people/key.ts";

/**
 * Checks that the person who began an action as an admin still is one: the key is not revoked, the user or the key's
 * owner not disabled or of another role, and the organization not being erased.
 * @throws ForbiddenError if not
 */
export async function requireStillAdmin(
  database: Database,
  { organizationId, keyId, userId }: Pick<Principal, "organizationId" | "keyId" | "userId">,
): Promise<void> {
  const { rowCount } = await database.pool.query(
    `select from organization where id = $1
       and not exists (select from erasure where organization_id = $1)
       and ($2::uuid is null or exists (select from api_key where id = $2 and organization_id = $1 and revoked_at is null
         and (expires_at is null or expires_at > now())
         and not exists (select from user_account where id = api_key.user_id and (disabled_at is not null or role <> 'admin'))))
       and ($3::uuid is null or exists (select from user_account where id = $3 and organization_id = $1 and disabled_at is null
         and role = 'admin'))`,
    [organizationId, keyId, userId],
  );
  if (rowCount === 0) throw new ForbiddenError("the person who began this is not an admin any more");
}
