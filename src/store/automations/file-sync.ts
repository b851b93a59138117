import type { Database, Queryable } from "../../database/database.ts";
import type { AutomationFiles } from "../../domain/automations/automation-file.ts";
import { NotFoundError } from "../../domain/errors/errors.ts";
import { storable } from "../../domain/fields/text.ts";
import { isoTime } from "../cursor.ts";
import { forgetAutomations } from "./automations.ts";
import { one } from "../one-row.ts";

/** How many of one organization's repositories are read at once, so that slow ones don't delay those of others. */
const mostOfOrganization = 2;
/** Pause between two scheduled polls, in seconds: the longest delay after a lost delivery. */
const lookEverySeconds = 600;
/** Least time between two polls, in seconds, however many pushes there are. */
const shortestPauseSeconds = 5;

/** A repository's automations in files. @throws NotFoundError */
export async function getAutomationFiles(
  database: Database,
  organizationId: string,
  repositoryId: string,
): Promise<AutomationFiles> {
  const { rows } = await database.pool.query<AutomationFiles>(
    `select coalesce(enabled, false) as enabled, sync.branch, commit, ${isoTime("synced_at")} as "syncedAt", problem, coalesce((
       select jsonb_agg(jsonb_build_object('path', path, 'url', file.url, 'problem', file.problem, 'automationId', automation_id) order by path)
       from automation_file file where file.repository_id = repository.id), '[]') as files
     from repository left join automation_sync sync on sync.repository_id = repository.id
     where repository.id = $1 and repository.organization_id = $2 and deleted_at is null`,
    [repositoryId, organizationId],
  );
  return one(rows, "repository", repositoryId);
}

/**
 * Switches a repository's automations in files on, which are then read soon, or off, which deletes them.
 * @throws NotFoundError
 */
export async function setAutomationFiles(
  database: Database,
  organizationId: string,
  repositoryId: string,
  enabled: boolean,
): Promise<AutomationFiles> {
  await database.transaction(async (transaction) => {
    // "share": it is not disconnected meanwhile.
    const found = await transaction.query(
      "select from repository where id = $1 and organization_id = $2 and deleted_at is null for share",
      [repositoryId, organizationId],
    );
    if (found.rowCount !== 1) throw new NotFoundError(`repository ${repositoryId} was not found`);
    await transaction.query(
      `insert into automation_sync (repository_id, organization_id, enabled) values ($1, $2, $3)
       on conflict (repository_id) do update set enabled = excluded.enabled, due_at = now(), lease_until = null,
         attempt = automation_sync.attempt + 1, updated_at = now()`,
      [repositoryId, organizationId, enabled],
    );
    if (!enabled) await switchOffFiles(transaction, organizationId, repositoryId);
  });
  if (enabled) database.notify("offstage_work", "automation-files");
  return getAutomationFiles(database, organizationId, repositoryId);
}

/**
 * Switches a repository's automations in files off and deletes them, within a transaction. A worker that is looking at them
 * changes nothing any more. Does nothing if the repository is not the organization's.
 */
export async function switchOffFiles(
  transaction: Queryable,
  organizationId: string,
  repositoryId: string,
): Promise<void> {
  // First, since a look under way holds this row while it changes automations.
  await transaction.query(
    `update automation_sync set enabled = false, attempt = attempt + 1, lease_until = null, branch = null, commit = null,
       synced_at = null, problem = null, updated_at = now()
     where repository_id = $1 and organization_id = $2`,
    [repositoryId, organizationId],
  );
  await lockAutomations(transaction, repositoryId);
  await deleteFiles(transaction, { organizationId, repositoryId }, []);
}

/** Requests a read of a repository's files soon, if they are switched on. @param key of its address (`Forges.keyOf`) */
export async function askForSync(database: Database, organizationId: string, key: string): Promise<void> {
  const { rowCount } = await database.pool.query(
    `update automation_sync set due_at = least(due_at, greatest(now(), claimed_at + $3 * interval '1 second'))
     where enabled and repository_id in (
       select id from repository where organization_id = $1 and address_key = $2 and deleted_at is null)`,
    [organizationId, key, shortestPauseSeconds],
  );
  if (rowCount !== 0) database.notify("offstage_work", "automation-files");
}

/** A repository whose files a worker reads. `attempt` is the fence. */
export interface ClaimedSync {
  readonly repositoryId: string;
  readonly organizationId: string;
  readonly attempt: number;
  readonly url: string;
  /** The branch in the repository's settings; null: the remote's default branch. */
  readonly configuredBranch: string | null;
  /** Of the last look. */
  readonly commit: string | null;
  readonly files: readonly KnownFile[];
}

/** A file as it was read last. */
export interface KnownFile {
  readonly path: string;
  readonly blob: string | null;
  readonly automationId: string | null;
  /** Of its automation. */
  readonly macro: string | null;
  readonly problem: string | null;
}

/**
 * Claims a repository whose files are due to be read; null if none is.
 * @param leaseMs after that another worker may read them, unless the claim is renewed
 */
export async function claimSync(database: Database, leaseMs: number): Promise<ClaimedSync | null> {
  const { rows } = await database.pool.query<ClaimedSync>(
    `update automation_sync set lease_until = now() + $1 * interval '1 millisecond', claimed_at = now(),
       due_at = now() + $2 * interval '1 second', attempt = automation_sync.attempt + 1
     from repository where repository.id = automation_sync.repository_id and automation_sync.repository_id = (
       select sync.repository_id from automation_sync sync join repository on repository.id = sync.repository_id
       where enabled and due_at <= now() and (lease_until is null or lease_until < now()) and repository.deleted_at is null
         and (select count(*) from automation_sync other
              where other.enabled and other.organization_id = sync.organization_id and other.lease_until > now()) < $3
       order by due_at limit 1 for update of sync skip locked)
     returning repository_id as "repositoryId", automation_sync.organization_id as "organizationId", attempt, repository.url,
       repository.branch as "configuredBranch", commit, coalesce((
         select jsonb_agg(jsonb_build_object('path', path, 'blob', blob, 'automationId', automation_id, 'problem', problem,
           'macro', (select macro from automation where id = automation_id and deleted_at is null)))
         from automation_file file where file.repository_id = automation_sync.repository_id), '[]') as files`,
    [leaseMs, lookEverySeconds, mostOfOrganization],
  );
  return rows[0] ?? null;
}

/** Goes on with a claim. @returns false if it was lost: another worker has claimed the repository, or it was switched off */
export async function renewSync(
  database: Database,
  { repositoryId, attempt }: ClaimedSync,
  leaseMs: number,
): Promise<boolean> {
  const { rowCount } = await database.pool.query(
    `update automation_sync set lease_until = now() + $3 * interval '1 millisecond'
     where repository_id = $1 and attempt = $2 and enabled`,
    [repositoryId, attempt, leaseMs],
  );
  return rowCount === 1;
}

/** Releases a claim whose read was broken off: any worker may read at once. A lost claim changes nothing. */
export async function releaseSync(database: Database, { repositoryId, attempt }: ClaimedSync): Promise<void> {
  const { rowCount } = await database.pool.query(
    "update automation_sync set lease_until = null, due_at = now() where repository_id = $1 and attempt = $2",
    [repositoryId, attempt],
  );
  if (rowCount !== 0) database.notify("offstage_work", "automation-files");
}

/**
 * Ends a look that found nothing new, or that failed. A claim that was lost changes nothing.
 * @param again whether the next look is in seconds, because the repository is not what the look failed for
 */
export async function endSync(
  database: Database,
  { repositoryId, attempt }: ClaimedSync,
  problem: string | null,
  again = false,
): Promise<void> {
  await database.pool.query(
    `update automation_sync set problem = $3, lease_until = null, updated_at = now(),
       due_at = case when $4 then least(due_at, now() + $5 * interval '1 second') else due_at end
     where repository_id = $1 and attempt = $2`,
    [repositoryId, attempt, problem === null ? null : storable(problem), again, shortestPauseSeconds],
  );
}

/**
 * The outcome in the status of a repository's automation files at a commit; null: there is none, or it is of another
 * commit by now.
 */
export async function outcomeOfFiles(
  database: Database,
  repositoryId: string,
  commit: string,
): Promise<"failed" | "passed" | null> {
  const { rows } = await database.pool.query<{ hasProblems: boolean }>(
    `select exists (select from automation_file where automation_file.repository_id = $1 and automation_file.problem is not null) as "hasProblems"
     from automation_sync where repository_id = $1 and commit = $2 and enabled`,
    [repositoryId, commit],
  );
  const [row] = rows;
  return row === undefined ? null : row.hasProblems ? "failed" : "passed";
}

/** Locks the automations of a repository's files in the order in which release_held_jobs does, so that neither waits in a circle. */
export async function lockAutomations(transaction: Queryable, repositoryId: string): Promise<void> {
  await transaction.query(
    `select from automation where id in (select automation_id from automation_file where repository_id = $1)
     order by id for no key update`,
    [repositoryId],
  );
}

/** Deletes the automations of a repository's files, except some, and the records of the files. */
export async function deleteFiles(
  transaction: Queryable,
  { organizationId, repositoryId }: Pick<ClaimedSync, "organizationId" | "repositoryId">,
  but: readonly string[],
): Promise<void> {
  const { rows } = await transaction.query<{ id: string }>(
    `update automation set deleted_at = now(), updated_at = now()
     where organization_id = $2 and deleted_at is null and id in (
       select automation_id from automation_file
       where repository_id = $1 and organization_id = $2 and automation_id is not null and not automation_id = any($3))
     returning id`,
    [repositoryId, organizationId, but],
  );
  await forgetAutomations(
    transaction,
    organizationId,
    rows.map(({ id }) => id),
  );
  await transaction.query("delete from automation_file where repository_id = $1 and organization_id = $2", [
    repositoryId,
    organizationId,
  ]);
}
