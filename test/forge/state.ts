import type { RegisteredApp } from "./github-app.ts";
import type { Refs } from "./refs.ts";
import type { LfsState } from "./lfs.ts";

/** A repository on the forge. */
export interface Place {
  readonly webUrl: string;
  readonly owner: string;
  readonly name: string;
}

/** A pull request as the forge keeps it; its head is whatever the refs say, as long as it is open. */
export interface TestPullRequest {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly head: string;
  readonly base: string;
  readonly state: "open" | "closed" | "merged";
}

/** The user that has the token. */
export const tokenUser = "tester";

/** With what the forge knows beside. Times are of `performance.now()`. */
export interface KeptPullRequest extends TestPullRequest {
  /** Owner of the fork that has the head; null: the repository's own. */
  readonly headOwner: string | null;
  /** The target's commit when it was opened. */
  readonly baseSha: string;
  /** The head when it was closed; null while it is open. */
  readonly endedSha: string | null;
  /** From when on lists show it. */
  readonly shownFrom: number;
  /** From when on lists show that it is not open any more. */
  readonly endShownFrom: number;
}

/** Something that goes wrong the next time. */
export type Failure =
  | { readonly kind: "rejectPush"; readonly owner: string; readonly name: string; readonly message: string }
  /** An answer with this status, of the API for pull requests; `repository`: of that for a repository's rights. */
  | { readonly kind: "status"; readonly status: number; readonly at?: "repository" }
  /** A request is taken and never answered; `api`: one of the API for pull requests. */
  | { readonly kind: "hang"; readonly at: "fetch" | "push" | "lfs" | "api" | "repository" }
  /** The pull request is opened, and the connection cut before the answer. */
  | { readonly kind: "loseAnswer" }
  /** The limit of requests in an hour is used up (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api). */
  | { readonly kind: "primaryLimit"; readonly resetInSeconds: number; readonly status?: 403 | 429 }
  /** Too much at once; without a time, as GitHub often is. */
  | { readonly kind: "secondaryLimit"; readonly retryAfterSeconds: number | null };

/** A failure of the API alone. */
export type ApiFailure = Exclude<Failure, { kind: "rejectPush" }>;

/** What the forge says of a repository; omitted as on a forge that does not say. */
export interface RepositoryFacts {
  readonly archived?: boolean;
  readonly disabled?: boolean;
  readonly mirror?: boolean;
  readonly hasPullRequests?: boolean;
  readonly push?: boolean;
  readonly allowForking?: boolean;
  /** Owner of the repository that this is a fork of. */
  readonly forkOf?: string;
  /** Set on GitLab once its deletion is planned. */
  readonly markedForDeletion?: boolean;
  /** On GitLab: as to an administrator who is no member. */
  readonly silentOnRole?: boolean;
  /** Logs of CI jobs, by their ids. */
  readonly logs?: Readonly<Record<string, string>>;
  /** Numbers of its issues. */
  readonly issues?: readonly number[];
  /** Ids of threads in reviews. */
  readonly threads?: readonly string[];
  /** What people may do, by their name. */
  readonly people?: Readonly<Record<string, "admin" | "write" | "read" | "none">>;
  /** Whether the token may ask what people may do; Gitea tells administrators alone. */
  readonly tellsRights?: boolean;
  /** On GitLab: when a fork has its copy of the repository, as of `performance.now()`. */
  readonly copiedFrom?: number;
  /**
   * Rules of GitHub for each branch of it, by type, with a pattern of branch names if it is given. On GitLab: protected branches,
   * with the role that may push, or the one user.
   */
  readonly rules?: readonly {
    readonly type: string;
    readonly pattern?: string;
    readonly level?: number | null;
    readonly userId?: number;
  }[];
}

/** What a forge was told about one repository. */
export interface KeptFeedback {
  readonly comments: KeptComment[];
  /** As `issues/1 eyes`, `comments/7 eyes`; no forge keeps one twice. */
  readonly reactions: Set<string>;
  /** The last one for each commit and name. */
  readonly statuses: Map<string, KeptStatus>;
}

export interface KeptComment {
  readonly id: number;
  readonly number: number;
  readonly body: string;
  /** The thread of a review; null: it stands alone. */
  readonly thread: string | null;
  readonly createdAt: string;
  readonly shownFrom: number;
}

export interface KeptStatus {
  readonly sha: string;
  readonly name: string;
  readonly state: string;
  readonly description: string;
  readonly url: string;
}

export interface ForgeState {
  readonly root: string;
  readonly token: string;
  /** Every token that is good: the one above, and those given to the App. */
  readonly tokens: Set<string>;
  app: RegisteredApp | null;
  /** Apps that were registered from a manifest, by the code that is worth them once. */
  readonly registered: Map<string, { readonly name: string; readonly manifest: Record<string, unknown> }>;
  /** Commits of which it was asked whether they can be merged. */
  readonly mergeableAsked: Set<string>;
  /** Scopes of the token, as a classic one of GitHub's has them; null: it is fine-grained. */
  scopes: string | null;
  /** Permissions to write of the token, as a fine-grained one has them, such as `contents`; null: all. */
  granted: readonly string[] | null;
  /** Scopes of the token at Gitea, such as `write:repository`; null: all. */
  giteaScopes: readonly string[] | null;
  /** What GitLab says of the token: its scopes, and the day on which it ends, as 2026-12-31. */
  gitLabToken: { readonly scopes: readonly string[]; readonly expiresOn: string | null };
  /** Most items of a page, whatever is asked for: Gitea's MAX_RESPONSE_ITEMS. */
  maxResponseItems: number;
  /** Shortest and longest time until a change shows, in ms. */
  lag: { readonly shortestMs: number; readonly longestMs: number };
  readonly refs: Refs;
  readonly pulls: Map<string, KeptPullRequest[]>;
  readonly facts: Map<string, RepositoryFacts>;
  readonly failures: ApiFailure[];
  /** The API requests so far, as `GET /repos/…`. */
  readonly asked: string[];
  /** What was said, by repository. */
  readonly feedback: Map<string, KeptFeedback>;
  /** What GitLab was made to do by lines of texts. */
  readonly quickActions: string[];
  readonly lfs: LfsState;
  url: string;
}

/** How long the next change takes to show, in ms. */
export function nextLagMs({ lag: { shortestMs, longestMs } }: Pick<ForgeState, "lag">): number {
  return shortestMs + (longestMs - shortestMs) * Math.random();
}

/** The state of a pull request as lists show it. */
export function shownState({ state, endShownFrom }: KeptPullRequest): TestPullRequest["state"] {
  return performance.now() < endShownFrom ? "open" : state;
}

export const gitEnvironment = {
  PATH: process.env["PATH"],
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Forge",
  GIT_AUTHOR_EMAIL: "forge@localhost",
  GIT_COMMITTER_NAME: "Forge",
  GIT_COMMITTER_EMAIL: "forge@localhost",
};
