import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import type { Registry, RegistryKind } from "../../domain/environments/registry.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { isoTime, listRows } from "../cursor.ts";
import { sealing } from "./rotation.ts";
import type { Sealed, Vault } from "./vault.ts";
import { one } from "../one-row.ts";

const columns = `id, kind, url, scope, username, ${isoTime("created_at")} as "createdAt",
  ${isoTime("updated_at")} as "updatedAt"`;

/**
 * Creates a registry with its credential. Idempotent by id.
 * @throws ConflictError if the organization has one for the same packages
 */
export function createRegistry(
  database: Database,
  vault: Vault,
  organizationId: string,
  input: {
    readonly id: string;
    readonly kind: RegistryKind;
    readonly url: string;
    readonly scope: string | null;
    readonly username: string | null;
    readonly token: string;
  },
): Promise<Registry> {
  const { id, kind, url, scope, username, token } = input;
  return sealing(database, async (transaction) => {
    const { sealed, masterKey } = await vault.seal(id, token);
    const { rows } = await transaction
      .query<Registry>(
        `insert into registry (id, organization_id, kind, url, scope, username, sealed, master_key)
         values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (id) do nothing returning ${columns}`,
        [id, organizationId, kind, url, scope, username, sealed, masterKey],
      )
      .catch((error: unknown) => {
        if (!isUniqueViolation(error)) throw error;
        throw new ConflictError(
          `scope: a registry of ${kind} for ${scope ?? "all packages"} already exists: update or delete it`,
        );
      });
    return rows[0] === undefined ? readRegistry(transaction, organizationId, id) : rows[0];
  });
}

async function readRegistry(queryable: Queryable, organizationId: string, id: string): Promise<Registry> {
  const { rows } = await queryable.query<Registry>(
    `select ${columns} from registry where id = $1 and organization_id = $2`,
    [id, organizationId],
  );
  return one(rows, "registry", id);
}

/**
 * Lists the organization's registries, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listRegistries(database: Database, organizationId: string, query: PageQuery): Promise<Page<Registry>> {
  return listRows<Registry>(database, organizationId, query, { table: "registry", columns });
}

/** Replaces a registry's token. @throws NotFoundError */
export function updateRegistry(
  database: Database,
  vault: Vault,
  organizationId: string,
  id: string,
  { token }: { readonly token: string },
): Promise<Registry> {
  return sealing(database, async (transaction) => {
    const { sealed, masterKey } = await vault.seal(id, token);
    const { rows } = await transaction.query<Registry>(
      `update registry set sealed = $3, master_key = $4, updated_at = now()
       where id = $1 and organization_id = $2 returning ${columns}`,
      [id, organizationId, sealed, masterKey],
    );
    return one(rows, "registry", id);
  });
}

/** Deletes a registry with its credential. @throws NotFoundError */
export async function deleteRegistry(database: Database, organizationId: string, id: string): Promise<Registry> {
  const { rows } = await database.pool.query<Registry>(
    `delete from registry where id = $1 and organization_id = $2 returning ${columns}`,
    [id, organizationId],
  );
  return one(rows, "registry", id);
}

/** A registry with its token, for the gateway alone. */
export interface OpenedRegistry extends Pick<Registry, "id" | "kind" | "url" | "scope" | "username"> {
  readonly token: string;
}

/**
 * The organization's registries with their tokens. Only a worker may call this.
 * @throws ConflictError if a token can't be decrypted
 */
export async function openRegistries(
  database: Database,
  vault: Vault,
  organizationId: string,
): Promise<OpenedRegistry[]> {
  const { rows } = await database.pool.query<Registry & Sealed>(
    `select ${columns}, sealed, master_key as "masterKey" from registry where organization_id = $1 order by created_at, id`,
    [organizationId],
  );
  return Promise.all(
    rows.map(async ({ id, kind, url, scope, username, sealed, masterKey }) => ({
      id,
      kind,
      url,
      scope,
      username,
      token: await vault.open(id, { sealed, masterKey }),
    })),
  );
}
