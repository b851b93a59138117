import type { Database } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Repository, UpdateRepository } from "../../domain/repositories/repository.ts";
import { switchOffFiles } from "../automations/file-sync.ts";
import { isoTime, listRows } from "../cursor.ts";
import { one } from "../one-row.ts";

/** A repository as the database has it, without what the API adds. */
export type RepositoryRecord = Omit<Repository, "integration">;

const columns = `
  repository.id, repository.name, repository.url, repository.branch, repository.description,
  repository.organization_id as "organizationId", ${isoTime("repository.enabled_at")} as "enabledAt",
  ${isoTime("repository.created_at")} as "createdAt", ${isoTime("repository.updated_at")} as "updatedAt"`;

interface RepositoryInput {
  readonly url: string;
  readonly key: string;
  readonly name: string;
  readonly branch: string | null;
  readonly description: string | null;
}

/**
 * Connects a repository. If one with the same normalized address is connected already, that one is returned. A
 * repository that was disconnected comes back with its limits and other settings, so that a limit can't be removed by
 * disconnecting and reconnecting it.
 */
export async function createRepository(
  database: Database,
  organizationId: string,
  input: RepositoryInput,
): Promise<RepositoryRecord> {
  const row = await connect(database, organizationId, input).catch((error: unknown) => {
    // Another request disconnected or connected it at the same moment: the second try finds the row.
    if (isUniqueViolation(error)) return connect(database, organizationId, input);
    throw error;
  });
  if (row === undefined) throw new Error("the repository was not returned");
  return row;
}

/** The connected repository of a normalized address; null if there is none. */
export async function findRepositoryByKey(
  database: Database,
  organizationId: string,
  key: string,
): Promise<RepositoryRecord | null> {
  const { rows } = await database.pool.query<RepositoryRecord>(
    `select ${columns} from repository where organization_id = $1 and address_key = $2 and deleted_at is null`,
    [organizationId, key],
  );
  return rows[0] ?? null;
}

async function connect(
  database: Database,
  organizationId: string,
  { name, url, key, branch, description }: RepositoryInput,
): Promise<RepositoryRecord | undefined> {
  const { rows } = await database.pool.query<RepositoryRecord>({
    name: "create_repository",
    // On a conflict this updates without a change, because "do nothing" would not return the existing row.
    text: `with former as (
             select id from repository
             where organization_id = $2 and address_key = $5 and deleted_at is not null and not exists (
               select 1 from repository where organization_id = $2 and address_key = $5 and deleted_at is null)
             order by deleted_at desc limit 1),
           revived as (
             update repository set deleted_at = null, enabled_at = now(), updated_at = now(), url = $4,
               branch = coalesce($6, branch), description = coalesce($7, description)
             where id = (select id from former) returning ${columns}),
           made as (
             insert into repository (id, organization_id, name, url, address_key, branch, description)
             select $1, $2, $3, $4, $5, $6, $7 where not exists (select 1 from former)
             on conflict (organization_id, address_key) where deleted_at is null
               do update set address_key = excluded.address_key
             returning ${columns})
           select * from revived union all select * from made`,
    values: [crypto.randomUUID(), organizationId, name, url, key, branch, description],
  });
  return rows[0];
}

/**
 * Lists an organization's connected repositories, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listRepositories(
  database: Database,
  organizationId: string,
  query: PageQuery,
): Promise<Page<RepositoryRecord>> {
  return listRows<RepositoryRecord>(database, organizationId, query, {
    table: "repository",
    columns,
    condition: "deleted_at is null",
  });
}

/**
 * Reads a connected repository.
 * @throws NotFoundError
 */
export async function getRepository(database: Database, organizationId: string, id: string): Promise<RepositoryRecord> {
  return one(await findRepositories(database, organizationId, [id]), "repository", id);
}

/** Those of `ids` that are connected repositories of the organization. */
export async function findRepositories(
  database: Database,
  organizationId: string,
  ids: readonly string[],
): Promise<RepositoryRecord[]> {
  if (ids.length === 0) return [];
  const { rows } = await database.pool.query<RepositoryRecord>(
    `select ${columns} from repository where organization_id = $1 and deleted_at is null and id = any($2::uuid[])`,
    [organizationId, ids],
  );
  return rows;
}

/** Whether an organization has connected the repository with this key (`Forges.keyOf`). */
export async function isConnected(database: Database, organizationId: string, key: string): Promise<boolean> {
  const { rows } = await database.pool.query(
    "select 1 from repository where organization_id = $1 and address_key = $2 and deleted_at is null",
    [organizationId, key],
  );
  return rows.length > 0;
}

/** How many connected repositories of an organization have an address below this one, by http(s) or ssh. */
export async function countRepositoriesAt(database: Database, organizationId: string, webUrl: string): Promise<number> {
  const { host, pathname } = new URL(webUrl);
  const below = `${host.replace(/:\d+$/u, "")}${pathname.replace(/\/$/u, "")}/`.toLowerCase();
  const { rows } = await database.pool.query<{ count: string }>(
    `select count(*) from repository where organization_id = $1 and deleted_at is null
       and starts_with(regexp_replace(lower(address_key), '^([^/]*):[0-9]+/', '\\1/'), $2)`,
    [organizationId, below],
  );
  return Number(rows[0]?.count ?? 0);
}

/**
 * Changes the given fields only; null clears a field.
 * @throws NotFoundError
 */
export async function updateRepository(
  database: Database,
  organizationId: string,
  id: string,
  changes: UpdateRepository,
): Promise<RepositoryRecord> {
  const { rows } = await database.pool.query<RepositoryRecord>(
    `update repository set name = coalesce($3, name), branch = case when $4 then $5 else branch end,
       description = case when $6 then $7 else description end, updated_at = now()
     where id = $1 and organization_id = $2 and deleted_at is null returning ${columns}`,
    [
      id,
      organizationId,
      changes.name,
      changes.branch !== undefined,
      changes.branch,
      changes.description !== undefined,
      changes.description,
    ],
  );
  return one(rows, "repository", id);
}

/**
 * Disconnects a repository, and deletes its secrets and the automations of its files; sessions that used it keep their history.
 * Connected again, it has its files read only once an admin switches that on again.
 * @throws NotFoundError
 */
export async function deleteRepository(
  database: Database,
  organizationId: string,
  id: string,
): Promise<RepositoryRecord> {
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<RepositoryRecord>(
      `with gone as (
         update repository set deleted_at = now(), updated_at = now()
         where id = $1 and organization_id = $2 and deleted_at is null returning ${columns}),
       secrets as (delete from secret using gone where secret.repository_id = gone.id)
       select * from gone`,
      [id, organizationId],
    );
    const row = one(rows, "repository", id);
    await switchOffFiles(transaction, organizationId, id);
    return row;
  });
}
