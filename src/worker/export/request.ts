import type { OverlayChanges } from "../checkouts/changes.ts";
import type { ResourceLimits, Sandbox } from "../../sandboxes/sandbox.ts";
import type { Identity } from "../git/git.ts";
import type { Mirror } from "../git/mirrors/mirror.ts";
import type { Signer } from "../git/signer.ts";

/** The export of one repository. */
export interface RepositoryExport {
  readonly sandbox: Sandbox;
  /** Path of the mirror that receives the commits. */
  readonly mirror: string;
  readonly folders: {
    readonly workspace: string;
    readonly home: string;
    readonly readOnly: readonly string[];
    readonly directory: string;
    /** See `SandboxRequest`. */
    readonly disk?: string;
  };
  /** The changes in the clone's overlay; null or omitted: it is a plain folder, or they are not known. */
  readonly changes?: OverlayChanges | null;
  readonly sessionId: string;
  /** The session's work branch, on which the agent began. */
  readonly branch: string;
  readonly start: {
    readonly baseSha: string;
    readonly headSha: string;
    /** Commits of the remote that the clone has taken in since; none if omitted. */
    readonly theirs?: readonly string[];
    /** Folders that the clone was made with; everything, if omitted. */
    readonly sparse?: readonly string[];
  };
  /**
   * The mirror with its remote, which is asked for new commits that are not the agent's own: it merged what it fetched itself.
   * `branch` is the one that the work is for. If omitted, all new commits are the agent's.
   */
  readonly origin?: { readonly mirror: Mirror; readonly branch: string };
  /** The session's commit in a join that the agent is to do by hand in the clone; null or omitted if there is none. */
  readonly ours?: string | null;
  /** Whether the agent's turn did not end by itself: a merge that is under way then stays so. False if omitted. */
  readonly isInterrupted?: boolean;
  /** Whether branches are named that have more than what is taken out, each once; false if omitted. */
  readonly tellsLeftOut?: boolean;
  readonly identity: {
    readonly author: Identity;
    /** The author, if omitted. */
    readonly committer?: Identity;
    /** Signs every new commit, the agent's own too; null or omitted: they stay as they are. */
    readonly signer?: Signer | null;
    readonly message: string;
    readonly coAuthor: Identity | null;
  };
  /** Limits of the commands that take the work out. They run what the agent configured, for example git filters. */
  readonly limits: ResourceLimits;
  /** Most time of these commands, in ms; 30 minutes if omitted. */
  readonly limitMs?: number;
  readonly signal: AbortSignal;
}
