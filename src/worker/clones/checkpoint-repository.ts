import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { mustGit } from "../git/git.ts";
import { formatIn } from "../git/object-format.ts";
import type { Clone } from "./clone.ts";
import { importPack } from "./import-pack.ts";

/**
 * A bare repository with the objects of a session's checkpoints, beside its folders and out of the agent's reach. It borrows
 * from the mirror. The objects are not in the mirror itself, which would keep all that any session ever tried.
 */
export interface CheckpointRepository {
  readonly path: string;
  /** Its object folder, below `path`. */
  readonly objects: string;
  /**
   * Checks a pack and takes it, with everything that its commits need.
   * @throws SessionError workspace_broken
   */
  take(pack: string, commits: readonly string[], known: readonly string[]): Promise<void>;
}

const ref = "refs/offstage/checkpoint";

/**
 * Opens the checkpoint repository, or makes it.
 * @param path of the bare repository
 * @param mirror path of the mirror that it borrows from
 * @param fresh whether to delete it first
 */
export async function openCheckpointRepository(
  path: string,
  mirror: string,
  { fresh, signal }: { readonly fresh: boolean; readonly signal: AbortSignal },
): Promise<CheckpointRepository> {
  if (fresh) await rm(path, { recursive: true, force: true });
  if (!existsSync(join(path, "HEAD"))) {
    await mkdir(dirname(path), { recursive: true });
    await mustGit(["init", "--quiet", `--object-format=${await formatIn(mirror)}`, "--bare", path], {
      cwd: dirname(path),
      signal,
    });
    await writeFile(join(path, "objects/info/alternates"), `${join(mirror, "objects")}\n`);
  }
  const options = { cwd: path, signal };
  return {
    path,
    objects: join(path, "objects"),
    async take(pack, commits, known) {
      await importPack(pack, commits, known, options);
      for (const [index, commit] of commits.entries())
        await mustGit(["update-ref", index === 0 ? ref : `${ref}-${index}`, commit], options);
    },
  };
}

/** A repository's checkpoint that is still to be restored into the session's clone. */
export interface PendingRestore {
  readonly clone: Clone;
  /** Path of the checkpoint repository. */
  readonly path: string;
  readonly head: string;
  readonly commit: string;
  /** The commit with the state of a merge that was under way; null if none was. */
  readonly merge: string | null;
}
