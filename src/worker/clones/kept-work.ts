import { createReadStream, existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { mustGit } from "../git/git.ts";
import { takePack } from "./collect.ts";

/**
 * A session's checkpoints as objects, beside its folders and out of the agent's reach: a bare repository that borrows from
 * the mirror. It is not in the mirror itself, which would keep what every session ever tried.
 */
export interface KeptWork {
  readonly path: string;
  readonly objects: string;
  /** Checks a pack and takes it, with all that `commit` needs. @throws RunError workspace_broken */
  take(pack: string, commit: string, known: readonly string[]): Promise<void>;
}

const ref = "refs/offstage/checkpoint";

/** @param anew forgets what was there */
export async function openKeptWork(
  path: string,
  mirror: string,
  { anew, signal }: { readonly anew: boolean; readonly signal: AbortSignal },
): Promise<KeptWork> {
  if (anew) await rm(path, { recursive: true, force: true });
  if (!existsSync(join(path, "HEAD"))) {
    await mkdir(dirname(path), { recursive: true });
    await mustGit(["init", "--quiet", "--bare", path], { cwd: dirname(path), signal });
    await writeFile(join(path, "objects/info/alternates"), `${join(mirror, "objects")}\n`);
  }
  const options = { cwd: path, signal };
  return {
    path,
    objects: join(path, "objects"),
    async take(pack, commit, known) {
      await takePack(createReadStream(pack), commit, known, options);
      await mustGit(["update-ref", ref, commit], options);
    },
  };
}

/** A repository's kept work that is still to be put into the session's clone. */
export interface WaitingWork {
  /** Folder in the workspace. */
  readonly directory: string;
  /** Of the repository that keeps it. */
  readonly path: string;
  readonly head: string;
  readonly commit: string;
}
