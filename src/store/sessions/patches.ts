import type { Database } from "../../database/database.ts";
import { requireSession } from "./sessions.ts";

/** The changes of a session in one of its repositories. */
export interface StoredPatch {
  readonly repositoryId: string | null;
  readonly name: string;
  /** Folder of its clone in the workspace. */
  readonly directory: string;
  /** Unified diff of base to head as `git diff --binary` prints it. */
  readonly patch: string;
  /** Whether it was longer than what is kept. */
  readonly truncated: boolean;
}

/**
 * A session's changes so far, in the order of its repositories.
 * @throws NotFoundError
 */
export async function listPatches(database: Database, organizationId: string, id: string): Promise<StoredPatch[]> {
  await requireSession(database, organizationId, id);
  const { rows } = await database.pool.query<StoredPatch>(
    `select part.repository_id as "repositoryId", coalesce(repository.name, part.directory) as name, part.directory,
       coalesce(part.patch, '') as patch, part.patch_truncated as truncated
     from session_repository part left join repository on repository.id = part.repository_id
     where part.session_id = $1 order by part.position`,
    [id],
  );
  return rows;
}
