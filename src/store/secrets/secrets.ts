import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import type { Secret, SecretPhase } from "../../domain/environments/secret.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { isoTime, listRows } from "../cursor.ts";
import { sealing } from "./rotation.ts";
import type { Sealed, Vault } from "./vault.ts";
import { one } from "../one-row.ts";

const columns = `id, name, phases, repository_id as "repositoryId", ${isoTime("created_at")} as "createdAt",
  ${isoTime("updated_at")} as "updatedAt"`;

/**
 * Creates a secret. Idempotent by id.
 * @throws NotFoundError if the organization has no such repository
 * @throws ConflictError if the name is taken
 */
export function createSecret(
  database: Database,
  vault: Vault,
  organizationId: string,
  input: {
    readonly id: string;
    readonly name: string;
    readonly value: string;
    readonly phases: readonly SecretPhase[];
    readonly repositoryId: string | null;
  },
): Promise<Secret> {
  const { id, name, value, phases, repositoryId } = input;
  return sealing(database, async (transaction) => {
    if (repositoryId !== null) await requireRepository(transaction, organizationId, repositoryId);
    const { sealed, masterKey } = await vault.seal(id, value);
    const { rows } = await transaction
      .query<Secret>(
        `insert into secret (id, organization_id, repository_id, name, phases, sealed, master_key)
         values ($1, $2, $3, $4, $5, $6, $7) on conflict (id) do nothing returning ${columns}`,
        [id, organizationId, repositoryId, name, phases, sealed, masterKey],
      )
      .catch((error: unknown) => {
        if (!isUniqueViolation(error)) throw error;
        throw new ConflictError(`name: a secret ${name} already exists: update it`);
      });
    return rows[0] === undefined ? readSecret(transaction, organizationId, id) : rows[0];
  });
}

async function readSecret(queryable: Queryable, organizationId: string, id: string): Promise<Secret> {
  const { rows } = await queryable.query<Secret>(
    `select ${columns} from secret where id = $1 and organization_id = $2`,
    [id, organizationId],
  );
  return one(rows, "secret", id);
}

async function requireRepository(queryable: Queryable, organizationId: string, id: string): Promise<void> {
  const { rowCount } = await queryable.query(
    "select 1 from repository where id = $1 and organization_id = $2 and deleted_at is null",
    [id, organizationId],
  );
  if (rowCount !== 1) throw new NotFoundError(`repository ${id} was not found`);
}

/**
 * Lists the organization's secrets, newest first, or only those of the repository `repositoryId`.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listSecrets(
  database: Database,
  organizationId: string,
  { repositoryId, ...query }: PageQuery & { readonly repositoryId?: string | undefined },
): Promise<Page<Secret>> {
  const condition = "($5::uuid is null or repository_id = $5)";
  return listRows<Secret>(database, organizationId, query, {
    table: "secret",
    columns,
    condition,
    values: [repositoryId],
  });
}

/**
 * Changes the given fields only.
 * @throws NotFoundError
 */
export function updateSecret(
  database: Database,
  vault: Vault,
  organizationId: string,
  id: string,
  changes: { readonly value?: string | undefined; readonly phases?: readonly SecretPhase[] | undefined },
): Promise<Secret> {
  return sealing(database, async (transaction) => {
    const sealed = changes.value === undefined ? null : await vault.seal(id, changes.value);
    const { rows } = await transaction.query<Secret>(
      `update secret set sealed = coalesce($3, sealed), master_key = coalesce($4, master_key),
         phases = coalesce($5, phases), updated_at = now()
       where id = $1 and organization_id = $2 returning ${columns}`,
      [id, organizationId, sealed?.sealed, sealed?.masterKey, changes.phases],
    );
    return one(rows, "secret", id);
  });
}

/**
 * Deletes a secret.
 * @throws NotFoundError
 */
export async function deleteSecret(database: Database, organizationId: string, id: string): Promise<Secret> {
  const { rows } = await database.pool.query<Secret>(
    `delete from secret where id = $1 and organization_id = $2 returning ${columns}`,
    [id, organizationId],
  );
  return one(rows, "secret", id);
}

/** A secret with its decrypted value. */
export interface OpenedSecret {
  readonly id: string;
  readonly name: string;
  readonly value: string;
  readonly phases: readonly SecretPhase[];
  readonly repositoryId: string | null;
  /** Changes if the value does. */
  readonly version: string;
}

/**
 * The decrypted secrets of the organization and of these repositories. Only a worker may call this.
 * @throws ConflictError if a secret can't be decrypted
 */
export async function openSecrets(
  database: Database,
  vault: Vault,
  organizationId: string,
  repositoryIds: readonly string[],
): Promise<OpenedSecret[]> {
  const { rows } = await database.pool.query<Secret & Sealed>(
    `select ${columns}, sealed, master_key as "masterKey" from secret
     where organization_id = $1 and (repository_id is null or repository_id = any($2::uuid[]))
     order by repository_id nulls first, name`,
    [organizationId, repositoryIds],
  );
  return Promise.all(
    rows.map(async ({ id, name, phases, repositoryId, updatedAt: version, sealed, masterKey }) => ({
      id,
      name,
      value: await vault.open(id, { sealed, masterKey }),
      phases,
      repositoryId,
      version,
    })),
  );
}

/**
 * The decrypted values of all secrets of an organization, of its registries' and people's tokens, and of what its webhooks sign with, to
 * mask them.
 * @throws ConflictError if one can't be decrypted
 */
export async function openAllSecrets(database: Database, vault: Vault, organizationId: string): Promise<string[]> {
  const { rows } = await database.pool.query<Sealed & { readonly id: string }>(
    ["secret", "registry", "forge_account", "webhook"]
      .map((table) => `select id, sealed, master_key as "masterKey" from ${table} where organization_id = $1`)
      .join(" union all "),
    [organizationId],
  );
  return Promise.all(rows.map(({ id, ...sealed }) => vault.open(id, sealed)));
}
