import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { askRemote, branchNames } from "./ask-remote.ts";
import { targetNotFound } from "./branch-refusals.ts";
import { fetchObjects } from "./fetch.ts";
import { replaced } from "./fetch-commits.ts";
import { hasCommit, mustGit } from "./git.ts";
import { ensureMirror } from "./make-mirror.ts";
import { remoteOptions, transferLimits, type Mirror } from "./mirror.ts";

/** Bytes of a list of paths that are read; of a longer one, the rest is left out. */
const longestList = 8 * 1024 ** 2;

/** The paths of all files of a branch. */
export interface BranchTree {
  readonly branch: string;
  readonly commit: string;
  readonly paths: readonly string[];
}

/** The branches of a remote, and which one is its default. */
export async function listBranches(
  mirror: Mirror,
  signal: AbortSignal,
): Promise<{ readonly names: readonly string[]; readonly defaultBranch: string | null }> {
  const options = { ...(await remoteOptions(mirror, signal)), outsideRepositories: true };
  const { branches, defaultBranch } = await askRemote(mirror, ["HEAD", "refs/heads/*"], options);
  return { names: branches, defaultBranch };
}

/** The commit at which a branch is now. @param branch null: the remote's default one @throws SessionError target_branch_not_found */
export async function headOfBranch(
  mirror: Mirror,
  branch: string | null,
  signal: AbortSignal,
): Promise<{ readonly branch: string; readonly commit: string }> {
  const options = { ...(await remoteOptions(mirror, signal)), outsideRepositories: true };
  const ref = branch === null ? "HEAD" : `refs/heads/${branch}`;
  const { defaultBranch, shaOf } = await askRemote(mirror, ["HEAD", ref], options);
  const name = branch ?? defaultBranch;
  const commit = shaOf(ref);
  if (name === null || commit === null) {
    throw targetNotFound(mirror.url, branch, { defaultBranch, names: await branchNames(mirror, options) });
  }
  return { branch: name, commit };
}

/**
 * Lists the files of a branch without any of their contents: only the folders of its newest commit are fetched, into a repository
 * that is gone afterwards. A server that knows no filters sends the files of that commit, too.
 * @param source where it is; its path is a folder, in which that repository is made
 * @throws SessionError resources_exhausted, repository_*
 */
export async function listTree(
  source: Mirror,
  { branch, commit }: { readonly branch: string; readonly commit: string },
  signal: AbortSignal,
): Promise<BranchTree> {
  const folder = await mkdtemp(join(source.path, "tree-"));
  try {
    const scratch = { ...source, path: join(folder, "tree.git") };
    await ensureMirror(scratch, signal);
    await fetchObjects({
      mirror: scratch.path,
      url: scratch.url,
      ref: `refs/heads/${branch}`,
      limits: transferLimits(scratch),
      options: await remoteOptions(scratch, signal),
      onlyTrees: true,
    });
    if (!(await hasCommit(commit, { cwd: scratch.path, signal }))) throw replaced(source, branch);
    const options = { cwd: scratch.path, signal, maximumOutput: longestList };
    const listed = await mustGit(["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit], options);
    // What follows the last NUL is empty, or the beginning of a path that did not fit.
    return { branch, commit, paths: listed.split("\0").slice(0, -1) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
