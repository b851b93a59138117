import type { GitCredentials } from "../../forges/forge.ts";

/** A repository that a session works on, in its workspace. */
export interface WorkspaceRepository {
  readonly id: string;
  readonly url: string;
  /** Folder in the workspace. */
  readonly directory: string;
  /** The branch to work on. */
  readonly branch: string;
  /** Null: the remote's default branch. */
  readonly targetBranch: string | null;
  /** The repository's own setting, never a request's; null or omitted: the remote's default branch. */
  readonly configuredBranch?: string | null;
  /** Goes before that, where it is still there: what is open goes to it. */
  readonly formerTarget?: string | null;
  /** Where the session started, if it did before. */
  readonly baseSha: string | null;
  /** What it made of it by the end of its last run, if there was one. */
  readonly headSha: string | null;
  /** Its host is one that the operator named. */
  readonly named: boolean;
  readonly credentials: () => Promise<GitCredentials | null>;
}

export interface PreparedRepository {
  /** The target branch when the session started: what the diff is against. */
  readonly baseSha: string;
  /** Where the work began: the base, or the tip of a branch that was there already. */
  readonly headSha: string;
  readonly targetBranch: string;
  /**
   * The commit whose setup may have secrets: the tip of the branch that the repository itself is configured for, as the remote
   * had it when it was looked at. Null if the session's target is another commit; omitted in records of earlier versions.
   */
  readonly trusted?: TrustedCommit | null;
}

/** A commit that nobody but the repository's own configured branch decided. */
export interface TrustedCommit {
  readonly sha: string;
  readonly branch: string;
  /** Whether the branch is the remote's default one, because the repository's settings name none. */
  readonly isDefault: boolean;
}

/** A repository's work as another worker kept it. */
export interface KeptCheckpoint {
  readonly start: PreparedRepository;
  readonly head: string;
  readonly commit: string;
  /** In their order, each with the last commit that it holds. */
  readonly packs: readonly { readonly file: string; readonly commit: string }[];
}

/** What a session started from is known wherever its repository is. */
export function knownOf({ baseSha, headSha }: PreparedRepository): string[] {
  return [...new Set([baseSha, headSha])];
}
