import type { Database } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import type { Environment } from "../../domain/environments/environment.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { allowedFindingsLimit, type AllowedFinding } from "../../domain/repositories/finding.ts";
import type { Repository, RepositoryLimits, UpdateRepository } from "../../domain/repositories/repository.ts";
import { isoTime, listRows } from "../cursor.ts";

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
 * repository that was disconnected comes back with its limits and other settings, so that nobody can remove a limit
 * by disconnecting and reconnecting it.
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

/** Those of `ids` that are connected repositories of the organization. */
export async function findRepositories(
  database: Database,
  organizationId: string,
  ids: readonly string[],
): Promise<RepositoryRecord[]> {
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
  const [row] = rows;
  if (row === undefined) throw new NotFoundError(`repository ${id} was not found`);
  return row;
}

/**
 * Reads a repository's limits.
 * @throws NotFoundError
 */
export async function getLimits(database: Database, organizationId: string, id: string): Promise<RepositoryLimits> {
  const { rows } = await database.pool.query<RepositoryLimits>(
    `select max_running_sessions as "maxRunningSessions" from repository
     where id = $1 and organization_id = $2 and deleted_at is null`,
    [id, organizationId],
  );
  if (rows[0] === undefined) throw new NotFoundError(`repository ${id} was not found`);
  return rows[0];
}

/**
 * Sets a repository's limits.
 * @throws NotFoundError
 */
export async function setLimits(
  database: Database,
  organizationId: string,
  id: string,
  { maxRunningSessions }: RepositoryLimits,
): Promise<RepositoryLimits> {
  await database.pool.query(
    `update repository set max_running_sessions = $3, updated_at = now()
     where id = $1 and organization_id = $2 and deleted_at is null`,
    [id, organizationId, maxRunningSessions],
  );
  // A higher limit may allow sessions to start now.
  database.notify("offstage_work", "");
  return getLimits(database, organizationId, id);
}

/**
 * Hosts that the repository's sandboxes may reach in addition to those that the server allows.
 * @throws NotFoundError
 */
export async function getEgress(database: Database, organizationId: string, id: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ egress: string[] }>(
    "select egress from repository where id = $1 and organization_id = $2 and deleted_at is null",
    [id, organizationId],
  );
  return egressOf(rows, id);
}

/**
 * Replaces the list of allowed hosts.
 * @throws NotFoundError
 */
export async function setEgress(
  database: Database,
  organizationId: string,
  id: string,
  egress: readonly string[],
): Promise<string[]> {
  const { rows } = await database.pool.query<{ egress: string[] }>(
    `update repository set egress = $3, updated_at = now()
     where id = $1 and organization_id = $2 and deleted_at is null returning egress`,
    [id, organizationId, egress],
  );
  return egressOf(rows, id);
}

/**
 * Adds a rule to the allowed hosts, if it is not there yet.
 * @throws NotFoundError
 */
export async function allowEgress(
  database: Database,
  organizationId: string,
  id: string,
  rule: string,
): Promise<string[]> {
  const { rows } = await database.pool.query<{ egress: string[] }>(
    `update repository set egress = case when $3 = any(egress) then egress else egress || $3::text end, updated_at = now()
     where id = $1 and organization_id = $2 and deleted_at is null returning egress`,
    [id, organizationId, rule],
  );
  return egressOf(rows, id);
}

/**
 * The allowed findings of a repository: findings of the secret scan that don't stop a push.
 * @throws NotFoundError
 */
export async function getAllowedFindings(
  database: Database,
  organizationId: string,
  id: string,
): Promise<AllowedFinding[]> {
  const { rows } = await database.pool.query<{ allowed: AllowedFinding[] }>(
    `select allowed_findings as allowed from repository where id = $1 and organization_id = $2 and deleted_at is null`,
    [id, organizationId],
  );
  return allowedOf(rows, id);
}

/**
 * Replaces the list of allowed findings.
 * @throws NotFoundError
 */
export async function setAllowedFindings(
  database: Database,
  organizationId: string,
  id: string,
  allowed: readonly AllowedFinding[],
): Promise<AllowedFinding[]> {
  const { rows } = await database.pool.query<{ allowed: AllowedFinding[] }>(
    `update repository set allowed_findings = $3, updated_at = now()
     where id = $1 and organization_id = $2 and deleted_at is null returning allowed_findings as allowed`,
    [id, organizationId, JSON.stringify(allowed)],
  );
  return allowedOf(rows, id);
}

/**
 * Adds an allowed finding, if it is not there yet.
 * @throws NotFoundError
 * @throws ConflictError if the list is full
 */
export async function allowFinding(
  database: Database,
  organizationId: string,
  id: string,
  finding: AllowedFinding,
): Promise<AllowedFinding[]> {
  const { rows } = await database.pool.query<{ allowed: AllowedFinding[] }>(
    `update repository set updated_at = now(), allowed_findings = case
         when $3::jsonb -> 0 in (select jsonb_array_elements(allowed_findings))
         then allowed_findings else allowed_findings || $3::jsonb end
     where id = $1 and organization_id = $2 and deleted_at is null
       and (jsonb_array_length(allowed_findings) < $4 or $3::jsonb -> 0 in (select jsonb_array_elements(allowed_findings)))
     returning allowed_findings as allowed`,
    [id, organizationId, JSON.stringify([finding]), allowedFindingsLimit],
  );
  if (rows[0] !== undefined) return rows[0].allowed;
  await getAllowedFindings(database, organizationId, id);
  throw new ConflictError(
    `the repository allows ${allowedFindingsLimit} findings already: replace the list by one with patterns`,
  );
}

function allowedOf(rows: readonly { allowed: AllowedFinding[] }[], id: string): AllowedFinding[] {
  const [row] = rows;
  if (row === undefined) throw new NotFoundError(`repository ${id} was not found`);
  return row.allowed;
}

/**
 * The setup script and variables of a repository's sandboxes, and the folders that they have.
 * @throws NotFoundError
 */
export async function getEnvironment(database: Database, organizationId: string, id: string): Promise<Environment> {
  const { rows } = await database.pool.query<Environment>(
    `select ${environmentColumns} from repository where id = $1 and organization_id = $2 and deleted_at is null`,
    [id, organizationId],
  );
  if (rows[0] === undefined) throw new NotFoundError(`repository ${id} was not found`);
  return rows[0];
}

/**
 * Changes the given fields only.
 * @throws NotFoundError
 */
export async function updateEnvironment(
  database: Database,
  organizationId: string,
  id: string,
  { setupScript, variables, sparse }: { readonly [Field in keyof Environment]?: Environment[Field] | undefined },
): Promise<Environment> {
  const { rows } = await database.pool.query<Environment>(
    `update repository set setup_script = case when $3 then $4 else setup_script end,
       variables = coalesce($5, variables), sparse = coalesce($6, sparse), updated_at = now()
     where id = $1 and organization_id = $2 and deleted_at is null returning ${environmentColumns}`,
    [
      id,
      organizationId,
      setupScript !== undefined,
      setupScript,
      variables === undefined ? null : JSON.stringify(variables),
      sparse ?? null,
    ],
  );
  if (rows[0] === undefined) throw new NotFoundError(`repository ${id} was not found`);
  return rows[0];
}

const environmentColumns = 'setup_script as "setupScript", variables, sparse';

function egressOf(rows: readonly { egress: string[] }[], id: string): string[] {
  const [row] = rows;
  if (row === undefined) throw new NotFoundError(`repository ${id} was not found`);
  return row.egress;
}

/**
 * Disconnects a repository and deletes its secrets; sessions that used it keep their history.
 * @throws NotFoundError
 */
export async function deleteRepository(
  database: Database,
  organizationId: string,
  id: string,
): Promise<RepositoryRecord> {
  const { rows } = await database.pool.query<RepositoryRecord>(
    `with gone as (
       update repository set deleted_at = now(), updated_at = now()
       where id = $1 and organization_id = $2 and deleted_at is null returning ${columns}),
     secrets as (delete from secret using gone where secret.repository_id = gone.id)
     select * from gone`,
    [id, organizationId],
  );
  const [row] = rows;
  if (row === undefined) throw new NotFoundError(`repository ${id} was not found`);
  return row;
}
