import type { Database } from "../../database/database.ts";
import type { Environment } from "../../domain/environments/environment.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import { allowedFindingsLimit, type AllowedFinding } from "../../domain/repositories/finding.ts";
import type { RepositoryLimits } from "../../domain/repositories/repository.ts";
import { one } from "../one-row.ts";

const environmentColumns = 'setup_script as "setupScript", variables, sparse';

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
  return one(rows, "repository", id);
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
  return one(rows, "repository", id).egress;
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
  return one(rows, "repository", id).egress;
}

/**
 * Adds a rule to the allowed hosts, unless they have it.
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
  return one(rows, "repository", id).egress;
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
  return one(rows, "repository", id).allowed;
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
  return one(rows, "repository", id).allowed;
}

/**
 * Adds an allowed finding, unless the list has it.
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

/**
 * The setup script and variables of a repository's sandboxes, and the folders that they have.
 * @throws NotFoundError
 */
export async function getEnvironment(database: Database, organizationId: string, id: string): Promise<Environment> {
  const { rows } = await database.pool.query<Environment>(
    `select ${environmentColumns} from repository where id = $1 and organization_id = $2 and deleted_at is null`,
    [id, organizationId],
  );
  return one(rows, "repository", id);
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
  return one(rows, "repository", id);
}
