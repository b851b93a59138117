import { existsSync } from "node:fs";
import { join } from "node:path";
import { isAddressProblem, parseRepositoryUrl } from "../../domain/repositories/repository.ts";
import type { FilesFrom } from "../../domain/sessions/workspace-file.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import type { StoredCheckpoint } from "../../store/checkpoints/checkpoints.ts";
import type { RecordedWorkspace, WorkspaceRepository } from "../../store/sessions/file-requests.ts";
import type { SessionFolders } from "../disk/session-folders.ts";
import { hasCommit } from "../git/git.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";

/** A commit with a session's files, in a repository of ours on this worker. */
export interface Snapshot {
  /** Path of the bare repository. */
  readonly repository: string;
  readonly commit: string;
  readonly from: FilesFrom;
}

/** Of what the files of a session are looked for. */
export interface SnapshotPlaces {
  readonly folders: Pick<SessionFolders, "checkpointPath">;
  readonly mirrors: Pick<Mirrors, "pathOf" | "use">;
}

/**
 * Calls `use` with the newest commit that this worker has of a session's files in one of its repositories: while its agent works the last
 * checkpoint's, then what was taken out of the sandbox last. Which commits these are is recorded, so that nothing is taken for the
 * session's that lies here of an earlier time.
 * @returns null if it has none
 */
export async function withSnapshot<T>(
  { folders, mirrors }: SnapshotPlaces,
  session: Pick<RecordedWorkspace, "status"> & { readonly id: string },
  part: WorkspaceRepository,
  checkpoint: StoredCheckpoint | null,
  signal: AbortSignal,
  use: (snapshot: Snapshot) => Promise<T>,
): Promise<T | null> {
  const address = part.url === null ? null : parseRepositoryUrl(part.url);
  if (address === null || isAddressProblem(address)) return null;
  const mirror = mirrors.pathOf(address.cloneUrl);
  return mirrors.use.whileUsed(mirror, async () => {
    const stored = checkpoint?.repositories.find(({ directory }) => directory === part.directory)?.commit ?? null;
    const kept = folders.checkpointPath(session.id, part.directory);
    const ofCheckpoint = { repository: kept, commit: stored, from: "checkpoint" } as const;
    const ofWork = { repository: mirror, commit: part.headSha, from: "work" } as const;
    const inTurn = isFinal(session.status) ? [ofWork, ofCheckpoint] : [ofCheckpoint, ofWork];
    // The commit that it began on has its files only if there never was anything else.
    const isUntouched = stored === null && part.headSha === null && part.pushedSha === null;
    const all = [
      ...inTurn,
      { repository: mirror, commit: part.pushedSha, from: "pushed" },
      { repository: mirror, commit: isUntouched ? part.baseSha : null, from: "start" },
    ] as const;
    for (const { repository, commit, from } of all) {
      if (commit === null || !existsSync(join(repository, "HEAD"))) continue;
      if (await hasCommit(commit, { cwd: repository, signal })) return use({ repository, commit, from });
    }
    return null;
  });
}
