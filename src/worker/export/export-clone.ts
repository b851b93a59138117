import { listChanges } from "../checkouts/changes.ts";
import type { SharedCheckouts } from "../checkouts/shared-checkouts.ts";
import type { ResourceLimits, Sandbox } from "../../sandboxes/sandbox.ts";
import type { SandboxFolders } from "../sandboxed/run-command.ts";
import { git, mustGit, type Identity } from "../git/git.ts";
import { areUnrelated } from "../git/join.ts";
import type { Signer } from "../git/signer.ts";
import type { Clone } from "../clones/clone.ts";
import { folderGone, hasFolder } from "../clones/has-folder.ts";
import { exportRepository, type ExportedCommit } from "./export-repository.ts";
import type { LeftOut } from "./write-pack.ts";

/** One clone's work after it was taken out of the sandbox. */
export interface ExportedWork {
  readonly headSha: string;
  /** The commits that are new since the last time. */
  readonly commits: readonly ExportedCommit[];
  /** Whether the head differs from the last time, or from the start. */
  readonly isMoved: boolean;
  /** Whether it has commits that the base lacks. */
  readonly isAhead: boolean;
  /** The diff from the base; a part of it if `patchTruncated`. */
  readonly patch: string;
  readonly patchTruncated: boolean;
  /** Paths of submodules in which something was changed, which is not in the commits. */
  readonly changedSubmodules: readonly string[];
  /**
   * Files that collide in a merge that is under way in the clone, and are not resolved: perhaps none. Null if none is
   * under way. What the folder has beyond `headSha` is then not in this.
   */
  readonly unfinished: readonly string[] | null;
  readonly leftOut: LeftOut;
}

/** Dependencies for taking work out of a sandbox. */
export interface ExportServices {
  readonly checkouts: SharedCheckouts;
  readonly sandbox: Sandbox;
  readonly limits: ResourceLimits;
  /** Author of the commit of what the agent left uncommitted. */
  readonly author: Identity;
  /** Committer of that commit, and of every commit that is signed. */
  readonly committer: Identity;
  /** Null: commits are not signed. */
  readonly signer: Signer | null;
}

/** How to take the work out of one clone. */
export interface ExportRequest {
  readonly sessionId: string;
  readonly folders: SandboxFolders;
  /** Message of the commit of what the agent left uncommitted. */
  readonly message: string;
  readonly coAuthor: Identity | null;
  /** Most bytes of the diff. */
  readonly patchLimit: number;
  /** Whether the agent's turn did not end by itself: a merge that is under way then stays so. */
  readonly isInterrupted: boolean;
  /** Whether branches are named that have more, each once. */
  readonly tellsLeftOut: boolean;
  readonly signal: AbortSignal;
}

/**
 * Takes a clone's work out of the sandbox into its mirror, and compares it with the base.
 * @throws SessionError workspace_broken, resources_exhausted, sandbox_unavailable
 */
export async function exportClone(
  { checkouts, sandbox, limits, author, committer, signer }: ExportServices,
  { remote, mirror, folder, ...start }: Clone,
  { sessionId, folders, message, coAuthor, patchLimit, isInterrupted, tellsLeftOut, signal }: ExportRequest,
): Promise<ExportedWork> {
  const { baseSha } = start;
  if (!(await hasFolder({ folder }))) throw folderGone(remote.directory);
  const { headSha, commits, isMoved, changedSubmodules, unfinished, leftOut } = await exportRepository({
    sandbox,
    mirror: mirror.path,
    folders: { ...folders, directory: remote.directory },
    changes: await listChanges(checkouts, folder),
    sessionId,
    branch: remote.branch,
    start: { baseSha, headSha: start.headSha, theirs: start.theirs ?? [], sparse: start.sparse ?? [] },
    identity: { author, committer, signer, message, coAuthor },
    limits,
    ours: start.joining?.ours ?? null,
    origin: { mirror, branch: start.targetBranch },
    isInterrupted,
    tellsLeftOut,
    signal,
  });
  const options = { cwd: mirror.path, signal };
  // What the target has got since is no change of the session's. On a branch that others replaced by another history, everything is one.
  const range = `${baseSha}${(await areUnrelated(baseSha, headSha, options)) ? ".." : "..."}${headSha}`;
  const diffWith = (...more: readonly string[]) =>
    git(["diff", "--no-ext-diff", "--no-textconv", "--no-color", ...more, range], {
      ...options,
      maximumOutput: patchLimit,
    });
  // So that the patch can be applied. Without what is no text, perhaps all of it is short enough; nor does git then fail at a file of some
  // gigabytes.
  let diff = await diffWith("--binary");
  if (diff.truncated || diff.code !== 0) diff = await diffWith();
  const ahead = await mustGit(["rev-list", "--max-count=1", headSha, "--not", baseSha], options);
  return {
    headSha,
    commits,
    isMoved,
    isAhead: ahead !== "",
    patch: diff.stdout,
    patchTruncated: diff.truncated || diff.code !== 0,
    changedSubmodules,
    unfinished,
    leftOut,
  };
}
