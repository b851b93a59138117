import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { addCheckout, whileWithin, type DiskBounds, type WrittenFiles } from "../disk/checkout-size.ts";
import { git, hasCommit, mustGit } from "../git/git.ts";
import { isWithin } from "../git/join.ts";
import { fetchBranch, keepLatest } from "../git/mirrors/fetch-commits.ts";
import { lookUpHeads } from "../git/mirrors/ask-remote.ts";
import type { Mirror } from "../git/mirrors/mirror.ts";
import { copyTags, keepTags } from "../git/mirrors/tags.ts";
import { initClone } from "../checkouts/init-clone.ts";
import {
  knownOf,
  type CheckpointWork,
  type CloneStart,
  type RemoteRepository,
  type TrustedCommit,
} from "../git/remote-repository.ts";

/** Receives the progress of a fetch; fraction is from 0 to 1. */
export type ReportProgress = (progress: { text: string; fraction?: number }) => void;

/** Makes progress of the lines that git and git-lfs write. */
export function reportLines(progress: ReportProgress): (line: string) => void {
  return (line) => {
    const percent = /(\d+)%/u.exec(line)?.[1];
    progress({ text: line.slice(0, 200), ...(percent !== undefined && { fraction: Number(percent) / 100 }) });
  };
}

/** The remote's heads when it was asked. */
export interface Heads extends CloneStart {
  readonly branchSha: string | null;
  readonly trusted: TrustedCommit | null;
}

/**
 * Fetches the commits that the session starts from, and pins them in the mirror with refs of Offstage's.
 * @param progress receives git's progress; fraction is from 0 to 1
 * @throws SessionError target_branch_not_found, branch_protected, resources_exhausted, repository_*
 */
export async function fetchHeads(
  mirror: Mirror,
  sessionId: string,
  repository: RemoteRepository,
  progress: (progress: { text: string; fraction?: number }) => void,
  signal: AbortSignal,
): Promise<Heads> {
  const { targetBranch, targetSha, branchSha, trusted, tags } = await lookUpHeads(mirror, repository, signal);
  const pin = `refs/offstage/${sessionId}/${repository.directory}`;
  const report = reportLines(progress);
  await fetchBranch(mirror, { branch: targetBranch, sha: targetSha, into: `${pin}/target` }, report, signal);
  await keepLatest(mirror, targetBranch, targetSha, signal);
  if (branchSha !== null) {
    await fetchBranch(mirror, { branch: repository.branch, sha: branchSha, into: `${pin}/start` }, report, signal);
  }
  await keepTags(mirror, tags, signal);
  const { sparse = [] } = repository;
  return { baseSha: await baseOf(), headSha: branchSha ?? targetSha, targetBranch, branchSha, trusted, sparse };

  /** The recorded base, if the work branch continues from it; after a rewrite of the target branch it does not. */
  async function baseOf(): Promise<string> {
    if (branchSha === null || repository.baseSha === null) return targetSha;
    const { code } = await git(["merge-base", repository.baseSha, branchSha], { cwd: mirror.path, signal });
    return code === 0 ? repository.baseSha : targetSha;
  }
}

/** The disk that a session's clones may use together. */
export interface Room {
  /** The session's folder, which is watched during a checkout. */
  readonly disk: string;
  readonly bounds: DiskBounds;
  /** The space in use; each clone adds its own. */
  readonly written: WrittenFiles;
}

/**
 * Makes the session's clone of a repository: its objects are borrowed from the mirror, its work branch is checked out, or the
 * folders of it that the start names.
 * @param folder of the clone
 * @param contents fetches the contents of files in LFS. @returns as `fetchForFolder`
 * @returns the same
 * @throws SessionError resources_exhausted, if possible before anything is written
 */
export async function createClone(
  mirror: Mirror,
  folder: string,
  { url, branch }: Pick<RemoteRepository, "url" | "branch">,
  { headSha, targetBranch, baseSha, sparse = [] }: CloneStart,
  { disk, bounds, written }: Room,
  contents: () => Promise<string | null>,
  signal: AbortSignal,
): Promise<string | null> {
  await addCheckout(written, mirror.path, headSha, bounds, signal, sparse);
  const options = { cwd: folder, signal };
  await initClone(mirror.path, folder, { url, sha: headSha, sparse, branch }, signal);
  await copyTags(mirror.path, join(folder, ".git"));
  await mustGit(["update-ref", `refs/remotes/origin/${targetBranch}`, baseSha], options);
  const lfsProblem = await contents();
  await whileWithin(disk, bounds, signal, async (watched) => {
    await mustGit(["reset", "--quiet", "--hard", headSha], {
      ...options,
      signal: watched,
      fileBytes: bounds.diskBytes,
    });
  });
  if (!existsSync(join(folder, ".git/HEAD"))) throw new Error(`the clone in ${folder} was not made`);
  return lfsProblem;
}

/**
 * Whether a checkpoint can be continued from: the attempt that took it did not push the branch afterwards. A push of an earlier
 * attempt is in the checkpoint.
 */
export function goesOnFrom(
  { start, exported, head }: CheckpointWork,
  { headSha: recorded }: RemoteRepository,
  { branchSha }: Heads,
): boolean {
  if (branchSha === null || branchSha !== recorded) return true;
  return [start.headSha, exported, head].includes(branchSha);
}

/** Whether a mirror has the commits that a clone started from. */
export async function hasStart(mirror: Mirror, start: CloneStart, signal: AbortSignal): Promise<boolean> {
  for (const sha of knownOf(start)) {
    if (!(await hasCommit(sha, { cwd: mirror.path, signal }))) return false;
  }
  return true;
}

/**
 * The trusted commit of a session that continues on another worker: the one that it began with, so that a branch that moved on
 * costs no second setup. If the repository is configured for another branch by now, or that branch was rewritten, it is the
 * current one.
 */
export async function trustedSince(
  mirror: Mirror,
  { trusted: recorded = null }: CloneStart,
  { trusted: now }: Heads,
  signal: AbortSignal,
): Promise<TrustedCommit | null> {
  if (now === null || recorded === null) return now;
  if (recorded.branch !== now.branch || recorded.isDefault !== now.isDefault) return now;
  return (await isWithin(recorded.sha, now.sha, { cwd: mirror.path, signal })) ? recorded : now;
}

/**
 * Whether a session may have refs in a mirror: each is a file, or in the list of packed ones (gitrepository-layout(5)).
 */
async function mayHavePins(mirror: string, sessionId: string): Promise<boolean> {
  if (existsSync(join(mirror, "refs/offstage", sessionId))) return true;
  const packed = await readFile(join(mirror, "packed-refs"), "utf8").catch(() => "");
  return packed.includes(sessionId);
}

/** Deletes a session's refs in a mirror, so that the mirror may be removed. @param mirror its path */
export async function unpin(mirror: string, sessionId: string): Promise<void> {
  if (!(await mayHavePins(mirror, sessionId))) return;
  const options = { cwd: mirror, signal: AbortSignal.timeout(60_000) };
  const { code, stdout } = await git(["for-each-ref", "--format=%(refname)", `refs/offstage/${sessionId}/`], options);
  if (code !== 0) return;
  for (const ref of stdout.split("\n").filter((name) => name !== "")) await mustGit(["update-ref", "-d", ref], options);
}
