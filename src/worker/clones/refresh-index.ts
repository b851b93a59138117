import { lchown, lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { settleDiffering } from "../checkouts/settle-index.ts";
import { git } from "../git/git.ts";
import type { Clone } from "./clone.ts";

/** Longest time for one index, in ms. Without it the session begins all the same, and is slower. */
const limitMs = 20_000;

/**
 * Refreshes the indexes of a fresh clone and its submodules: since the checkout the files have another owner, or are
 * copies, and git would take each for possibly changed. It would read all of them at each `git status` until one writes
 * the index, which checkpoints never do. At a `git add --all` it would store all contents once more, since it can't
 * mark those of a read-only mirror as used: with 100,000 files that took 20 s and 500 MB, and this takes 1.4 s.
 * @param folder of a clone that belongs to the sandbox's user, but that no agent has seen yet
 * Files that were committed against the attributes count as unchanged.
 * @param options.isCopied whether its files are copies; if not, and their owner is still the server's user, the rest is as it should be
 */
export async function refreshIndexes(
  { folder, submodules = [] }: Pick<Clone, "folder" | "submodules">,
  { isCopied, signal }: { readonly isCopied: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const { uid } = await lstat(folder);
  const isOthers = uid !== process.getuid?.();
  if (isOthers) await refreshSubmodules({ folder, submodules }, signal);
  if (isOthers || isCopied) await refreshIndex(folder, signal);
  else await settleDiffering({ cwd: folder, signal });
}

/** The same for a clone's submodules alone. */
export async function refreshSubmodules(
  { folder, submodules = [] }: Pick<Clone, "folder" | "submodules">,
  signal: AbortSignal,
): Promise<void> {
  for (const { path, problem } of submodules) if (problem === null) await refreshIndex(join(folder, path), signal);
}

async function refreshIndex(folder: string, signal: AbortSignal): Promise<void> {
  const overtime = AbortSignal.timeout(limitMs);
  const options = { cwd: folder, mayBeOthers: true, signal: AbortSignal.any([signal, overtime]) };
  try {
    await git(["update-index", "-q", "--refresh"], options);
    await settleDiffering(options);
  } catch (error) {
    signal.throwIfAborted();
    if (!overtime.aborted) throw error;
    await rm(join(folder, ".git/index.lock"), { force: true });
  }
  await giveIndex(folder);
}

/** Gives an index that git wrote for the server's user to the clone's owner. */
export async function giveIndex(folder: string): Promise<void> {
  const { uid, gid } = await lstat(folder);
  await lchown(join(folder, ".git/index"), uid, gid);
}
