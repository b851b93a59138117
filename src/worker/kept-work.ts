import { createReadStream, existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { takePack } from "./collect.ts";
import { mustGit } from "./git.ts";
import { inside, type InsidePlace } from "./inside.ts";
import type { Run } from "./run.ts";

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

const restoreScript = `
set -eu
objects="$(git rev-parse --path-format=absolute --git-path objects)"
mkdir -p "$objects/pack"
cp "$OFFSTAGE_KEPT"/objects/pack/pack-* "$objects/pack/"
git reset --quiet --hard "$OFFSTAGE_COMMIT"
git reset --quiet --mixed "$OFFSTAGE_HEAD"`;

/**
 * Puts a checkpoint's files into the session's clone, as the agent left them: not committed, on its own HEAD. A setup may have
 * run there, so it is done inside.
 */
export async function restoreKeptWork(run: Run, place: InsidePlace, work: WaitingWork): Promise<void> {
  const environment = { OFFSTAGE_KEPT: work.path, OFFSTAGE_COMMIT: work.commit, OFFSTAGE_HEAD: work.head };
  const command = { command: "sh", arguments: ["-c", restoreScript], environment };
  await inside(run, { ...place, readOnly: [...place.readOnly, work.path] }, command, (child) => {
    child.stdout.resume();
  });
}
