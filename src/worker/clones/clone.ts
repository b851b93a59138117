import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { ResourceLimits, Sandbox } from "../../sandboxes/sandbox.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import type { SharedCheckouts } from "../checkouts/shared-checkouts.ts";
import type { SessionFolders } from "../disk/session-folders.ts";
import type { Mirror } from "../git/mirrors/mirror.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";
import type { CloneStart, RemoteRepository } from "../git/remote-repository.ts";

/** A repository as the claim of its session has it. */
export type SessionRepository = ClaimedSession["repositories"][number];

/** Folders and bounds for making clones. */
export interface CloneServices {
  readonly folders: SessionFolders;
  readonly mirrors: Mirrors;
  readonly checkouts: SharedCheckouts;
  readonly sandbox: Pick<Sandbox, "makeWritable">;
  readonly limits: ResourceLimits;
}

/** One repository of a session and its clone on this disk: every step gets a list of these, in the session's order. */
export interface Clone extends CloneStart {
  readonly repository: SessionRepository;
  readonly address: RepositoryAddress;
  readonly remote: RemoteRepository;
  /** The bare mirror that the clone borrows its objects from. */
  readonly mirror: Mirror;
  /** Path of the clone. */
  readonly folder: string;
  /**
   * The commit of the work branch on the remote, if this attempt looked before a turn; null if the branch was not there. The target
   * branch's, if that has all of the work branch by a merged pull request.
   */
  readonly remoteSha?: string | null;
}

/** A repository whose clone is still to be made. */
export type CloneSource = Pick<Clone, "repository" | "address" | "remote">;

/** The commits that a clone started from, without the rest, as records and checkpoints store them. */
export function startOf({ baseSha, headSha, targetBranch, ...more }: CloneStart): CloneStart {
  const { trusted = null, submodules = [], lfsProblem = null, theirs = [], sparse = [], joining = null } = more;
  const common = { baseSha, headSha, targetBranch, trusted, submodules, lfsProblem };
  const taken = { ...(theirs.length > 0 && { theirs }), ...(joining !== null && { joining }) };
  return { ...common, ...taken, ...(sparse.length > 0 && { sparse }) };
}
