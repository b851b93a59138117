import type { GitCredentials } from "../../forges/forge.ts";
import type { Collision } from "./join.ts";

/** A repository of a session as it is requested from its remote: its address and the relevant branches. */
export interface RemoteRepository {
  readonly id: string;
  readonly url: string;
  /** Its folder in the workspace. */
  readonly directory: string;
  /** The work branch. */
  readonly branch: string;
  /** The branch that the work is for; null: the remote's default branch. */
  readonly targetBranch: string | null;
  /** The branch in the repository's own settings, never from a request; null or omitted: the remote's default branch. */
  readonly configuredBranch?: string | null;
  /** Target of the session's open pull request; used instead of `targetBranch` if the remote still has it. */
  readonly formerTarget?: string | null;
  /** The base of an earlier attempt; null if there was none. */
  readonly baseSha: string | null;
  /** The head at the end of the last attempt; null if there was none. */
  readonly headSha: string | null;
  /** Whether the operator named its host. */
  readonly named: boolean;
  readonly credentials: () => Promise<GitCredentials | null>;
  /** How a submodule at this URL is reached, or why it is not; if omitted, submodules are left empty. */
  readonly submodule?: (url: string) => Promise<SubmoduleAccess | { readonly problem: string }>;
  /** Folders that a new clone has; everything, if omitted or empty. */
  readonly sparse?: readonly string[];
  /** The pull request whose commits a new clone has in addition to its branches; omitted: none. */
  readonly pullRequest?: WantedPullRequest;
}

/** A pull request that a session is about, whoever opened it. */
export interface WantedPullRequest {
  readonly number: number;
  /** Full name of the remote's ref that has its newest commit; null: the remote has none. */
  readonly ref: string | null;
  /** The branch that it is to be merged into; null: that is not known. */
  readonly target: string | null;
}

/** How the server reaches a submodule's repository. */
export interface SubmoduleAccess extends Pick<RemoteRepository, "url" | "named" | "credentials"> {
  /** The remedy if it can't be reached, as a sentence; may be empty. */
  readonly hint: string;
}

/** A submodule of a session's clone. */
export interface Submodule {
  /** Its folder in the clone. */
  readonly path: string;
  /** The commit that its superproject records. */
  readonly sha: string;
  /** Where it was fetched from; null if its address was not used. */
  readonly url: string | null;
  /** Why its folder is empty, as a sentence or the end of one; null if it is checked out. */
  readonly problem: string | null;
  /** As of the clone itself. */
  readonly lfsProblem?: string | null;
  /**
   * Its folder is still to be brought to that commit, which others recorded while the session went on, with its address in .gitmodules;
   * omitted: it is not.
   */
  readonly renewing?: { readonly written: string | null };
}

/** The submodules that are checked out, with what they were fetched from. */
export function keptOf(submodules: readonly Submodule[]): { path: string; sha: string; url: string }[] {
  return submodules.flatMap(({ path, sha, url, problem, renewing }) =>
    url === null || problem !== null || renewing !== undefined ? [] : [{ path, sha, url }],
  );
}

/** The commits that a session's clone started from. */
export interface CloneStart {
  /** Commit of the target branch when the session started; the diff is against it. */
  readonly baseSha: string;
  /** Commit where the work began: the base, or the tip of a work branch that existed already. */
  readonly headSha: string;
  readonly targetBranch: string;
  /**
   * The commit whose setup may use secrets: the tip of the repository's configured branch, when the remote was asked. Null if
   * the session's target is another commit; omitted in records of earlier versions.
   */
  readonly trusted?: TrustedCommit | null;
  /** The submodules of the clone that was made at `headSha`; omitted in records of earlier versions. */
  readonly submodules?: readonly Submodule[];
  /**
   * Commits of the remote that were taken into the clone since: others' commits to the work branch, and the target
   * branch. Omitted if there are none.
   */
  readonly theirs?: readonly string[];
  /** The join that the agent is to do by hand in the clone; null or omitted if there is none. */
  readonly joining?: Joining | null;
  /** Why files in LFS are pointers in the clone, in sentences; null or omitted if they are not, or if there are none. */
  readonly lfsProblem?: string | null;
  /** Folders that the clone was made with; omitted if it has everything. */
  readonly sparse?: readonly string[];
}

/** A join of two lines of work that an agent is to do by hand, from before its clone is in the middle of it until it is done. */
export interface Joining extends Collision {
  /** The commit of the session's work. */
  readonly ours: string;
  /** The branch that the other one is on. */
  readonly branch: string;
  /** Whether that is the target branch; if not, it is the work branch. */
  readonly isTarget: boolean;
}

/** A commit that only the repository's own configured branch determines, never a request. */
export interface TrustedCommit {
  readonly sha: string;
  readonly branch: string;
  /** Whether the branch is the remote's default one because the repository's settings name none. */
  readonly isDefault: boolean;
}

/** A repository's work in a checkpoint, with its packs on this disk. */
export interface CheckpointWork {
  readonly start: CloneStart;
  /** The session's last exported commit when the attempt that took it began; null if none or unknown. */
  readonly exported: string | null;
  /** The agent's HEAD. */
  readonly head: string;
  /** The commit on top of it with all of the agent's files. */
  readonly commit: string;
  /** The commit with the state of a merge that was under way; null or omitted if none was. */
  readonly merge?: string | null;
  /** A pack on this disk with commits of `start` that the remote may have lost since; null or omitted if there is none. */
  readonly held?: { readonly file: string; readonly commits: readonly string[] } | null;
  /** Files of the packs, in order, each with the last commit that it holds. */
  readonly packs: readonly { readonly file: string; readonly commit: string }[];
}

/** The commits that a session started from or took from the remote since: every copy of the repository has them. */
export function knownOf({ baseSha, headSha, theirs = [] }: CloneStart): string[] {
  return [...new Set([baseSha, headSha, ...theirs])];
}
