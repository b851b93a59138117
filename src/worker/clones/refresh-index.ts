import { lchown, lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { git } from "../git/git.ts";
import type { Clone } from "./clone.ts";

/** Longest time for one index, in ms. Without it the session begins all the same, and is slower. */
const limitMs = 20_000;

/**
 * Lets the indexes of a fresh clone and its submodules say of the files what the file system says by now: since the checkout they have
 * another owner. git would take each for one that may have changed. It would read all of them at each `git status` until one writes the
 * index, which checkpoints never do. At a `git add --all` it would store all contents once more, since it can't mark those of a
 * read-only mirror as used: with 100,000 files that took 20 s and 500 MB, and this takes 1.4 s.
 * @param folder of a clone that belongs to the sandbox's user, but that no agent has seen yet
 */
export async function refreshIndexes(
  { folder, submodules = [] }: Pick<Clone, "folder" | "submodules">,
  signal: AbortSignal,
): Promise<void> {
  const { uid, gid } = await lstat(folder);
  if (uid === process.getuid?.()) return;
  const inside = submodules.filter(({ problem }) => problem === null).map(({ path }) => join(folder, path));
  for (const path of [...inside, folder]) await refreshIndex(path, { uid, gid }, signal);
}

async function refreshIndex(
  folder: string,
  { uid, gid }: { readonly uid: number; readonly gid: number },
  signal: AbortSignal,
): Promise<void> {
  const overtime = AbortSignal.timeout(limitMs);
  // Named like this, the repository may belong to somebody else.
  const command = ["--git-dir=.git", "--work-tree=.", "update-index", "-q", "--refresh"];
  try {
    // The code tells of files that differ from their commit, such as those whose line ends git would convert: they may.
    await git(command, { cwd: folder, signal: AbortSignal.any([signal, overtime]) });
  } catch (error) {
    signal.throwIfAborted();
    if (!overtime.aborted) throw error;
    await rm(join(folder, ".git/index.lock"), { force: true });
  }
  await lchown(join(folder, ".git/index"), uid, gid);
}
