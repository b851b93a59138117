import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { addCheckout, whileWithin, type DiskBounds, type Written } from "../disk/checkout-size.ts";
import { git, mustGit } from "../git/git.ts";
import { fetchBranch, keepLatest, lookUpHeads, type Mirror } from "../git/mirror.ts";
import {
  knownOf,
  type KeptCheckpoint,
  type PreparedRepository,
  type TrustedCommit,
  type WorkspaceRepository,
} from "../git/workspace-repository.ts";

/** What the remote had when it was looked at. */
export interface Heads extends PreparedRepository {
  readonly branchSha: string | null;
  readonly trusted: TrustedCommit | null;
}

/** Fetches what the session starts from, pinned in the mirror by names of ours. */
export async function fetchHeads(
  mirror: Mirror,
  sessionId: string,
  repository: WorkspaceRepository,
  progress: (progress: { text: string; fraction?: number }) => void,
  signal: AbortSignal,
): Promise<Heads> {
  const { targetBranch, targetSha, branchSha, trusted } = await lookUpHeads(mirror, repository, signal);
  const pin = `refs/offstage/${sessionId}/${repository.directory}`;
  const report = (line: string): void => {
    const percent = /(\d+)%/u.exec(line)?.[1];
    progress({ text: line.slice(0, 200), ...(percent !== undefined && { fraction: Number(percent) / 100 }) });
  };
  await fetchBranch(mirror, { branch: targetBranch, sha: targetSha, into: `${pin}/target` }, report, signal);
  await keepLatest(mirror, targetBranch, targetSha, signal);
  if (branchSha !== null) {
    await fetchBranch(mirror, { branch: repository.branch, sha: branchSha, into: `${pin}/start` }, report, signal);
  }
  return { baseSha: await baseOf(), headSha: branchSha ?? targetSha, targetBranch, branchSha, trusted };

  /** As before where the work goes on from there; a target branch that was rewritten no longer has it. */
  async function baseOf(): Promise<string> {
    if (branchSha === null || repository.baseSha === null) return targetSha;
    const { code } = await git(["merge-base", repository.baseSha, branchSha], { cwd: mirror.path, signal });
    return code === 0 ? repository.baseSha : targetSha;
  }
}

/** What a session's clones may take together. */
export interface Room {
  /** The session's folder, which is watched meanwhile. */
  readonly disk: string;
  readonly bounds: DiskBounds;
  /** By what is there already; each clone adds its own. */
  readonly written: Written;
}

/**
 * A clone of the session's own: its objects borrowed from the mirror, its work branch checked out.
 * @throws RunError resources_exhausted if there is no room for it, before anything is written
 */
export async function layOut(
  mirror: Mirror,
  folder: string,
  repository: WorkspaceRepository,
  { headSha, targetBranch, baseSha }: PreparedRepository,
  { disk, bounds, written }: Room,
  signal: AbortSignal,
): Promise<void> {
  await addCheckout(written, mirror.path, headSha, bounds, signal);
  await mkdir(folder, { recursive: true });
  const options = { cwd: folder, signal };
  await mustGit(["init", "--quiet", "--initial-branch", repository.branch], options);
  await writeFile(join(folder, ".git/objects/info/alternates"), `${join(mirror.path, "objects")}\n`);
  await mustGit(["remote", "add", "origin", repository.url], options);
  await mustGit(["update-ref", `refs/remotes/origin/${targetBranch}`, baseSha], options);
  await whileWithin(disk, bounds, signal, async (watched) => {
    await mustGit(["reset", "--quiet", "--hard", headSha], {
      ...options,
      signal: watched,
      fileBytes: bounds.diskBytes,
    });
  });
  if (!existsSync(join(folder, ".git/HEAD"))) throw new Error(`the clone in ${folder} was not made`);
}

/**
 * Whether a checkpoint's work can be gone on from here: what it began with is there, and the branch was not pushed by the
 * worker that died after it had been taken.
 */
export async function goesOnFrom(
  mirror: Mirror,
  { start, head }: KeptCheckpoint,
  { headSha: recorded }: WorkspaceRepository,
  { branchSha }: Heads,
  signal: AbortSignal,
): Promise<boolean> {
  for (const sha of knownOf(start)) {
    const { code } = await git(["cat-file", "-e", `${sha}^{commit}`], { cwd: mirror.path, signal });
    if (code !== 0) return false;
  }
  return branchSha === null || branchSha === start.headSha || branchSha === head || branchSha !== recorded;
}

/**
 * The trusted commit that a session goes on with on another worker: the one that it began with, so that a branch that moved on
 * costs no second setup, unless the repository is configured for another branch by now or that branch was rewritten.
 */
export async function trustedSince(
  mirror: Mirror,
  { trusted: recorded = null }: PreparedRepository,
  { trusted: now }: Heads,
  signal: AbortSignal,
): Promise<TrustedCommit | null> {
  if (now === null || recorded === null) return now;
  if (recorded.branch !== now.branch || recorded.isDefault !== now.isDefault) return now;
  const { code } = await git(["merge-base", "--is-ancestor", recorded.sha, now.sha], { cwd: mirror.path, signal });
  return code === 0 ? recorded : now;
}

/** Lets go of what a session kept from being pruned. */
export async function unpin(mirror: string, sessionId: string): Promise<void> {
  const options = { cwd: mirror, signal: AbortSignal.timeout(60_000) };
  const { code, stdout } = await git(["for-each-ref", "--format=%(refname)", `refs/offstage/${sessionId}/`], options);
  if (code !== 0) return;
  for (const ref of stdout.split("\n").filter((name) => name !== "")) await mustGit(["update-ref", "-d", ref], options);
}
