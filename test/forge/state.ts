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
  /** Whose token opened it. */
  readonly author: string;
}

/** The user that has the token. */
export const tokenUser = "tester";

/** A person with their own token. */
export interface Person {
  readonly login: string;
  readonly token: string;
  /** How they are refused to open pull requests; null: they may. */
  refusal: { readonly status: number; readonly words: string } | null;
  /** What was asked with their token, as `GET /api/v3/user`. */
  readonly asked: string[];
}

/** Whose a token is. */
export function loginOf({ people }: Pick<ForgeState, "people">, token: string): string {
  return people.get(token)?.login ?? tokenUser;
}

/** With what the forge knows beside. Times are of `performance.now()`. */
export interface KeptPullRequest extends TestPullRequest {
  /** Owner of the fork that has the head; null: the repository's own. */
  readonly headOwner: string | null;
  /** The target's commit when it was opened. */
  readonly baseSha: string;
  /** The head when it was closed; null while it is open. */
  readonly endedSha: string | null;
  /** When it was opened, in ISO 8601. */
  readonly openedOn: string;
  /** How often its text was changed. */
  readonly version?: number;
  readonly draft?: boolean;
  readonly labels?: readonly string[];
  readonly assignees?: readonly string[];
  /** People who were asked to review it. */
  readonly reviewers?: readonly string[];
  /** From when on lists show it. */
  readonly shownFrom: number;
  /** From when on lists show that it is not open any more. */
  readonly endShownFrom: number;
}

/** Something that goes wrong the next time. */
export type Failure =
  | { readonly kind: "rejectPush"; readonly owner: string; readonly name: string; readonly message: string }
  /**
   * An answer with this status, of the API for pull requests; `repository`: of that for a repository's rights. To a question about the
   * named repository, or about any.
   */
  | {
      readonly kind: "status";
      readonly status: number;
      readonly at?: "repository";
      readonly name?: string;
      /** Its body, if not that of an error of the server. */
      readonly body?: unknown;
    }
  /** Another's page, or nothing, in the place of an answer of the API, with status 200. */
  | { readonly kind: "page"; readonly text: string }
  /** A request is taken and never answered; `api`: one of the API for pull requests. */
  | { readonly kind: "hang"; readonly at: "fetch" | "push" | "lfs" | "api" | "repository" }
  /** An answer of the server of git or of LFS with this status. `late`: not of the first request, but of the one for the pack. */
  | {
      readonly kind: "refuseGit";
      readonly at: "fetch" | "push" | "lfs";
      readonly late?: boolean;
      readonly status: number;
      readonly retryAfter?: string;
    }
  /**
   * Something is made, such as a pull request, and the connection cut before the answer; `comment`: a comment or a reply. With `as` this
   * text is answered in its place, with status 201.
   */
  | { readonly kind: "loseAnswer"; readonly at?: "comment"; readonly as?: string }
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
  /** False: git takes no push, whatever the API says of the token's user. */
  readonly gitPush?: boolean;
  readonly allowForking?: boolean;
  /** Owner of the repository that this is a fork of. */
  readonly forkOf?: string;
  /** Set on GitLab once its deletion is planned. */
  readonly markedForDeletion?: boolean;
  /** On GitLab: as to an administrator who is no member. */
  readonly silentOnRole?: boolean;
  /** Logs of CI jobs, by their ids. */
  readonly logs?: Readonly<Record<string, string>>;
  /** Ids of the jobs of CI runs that failed, by the run's id. */
  readonly jobs?: Readonly<Record<string, readonly string[]>>;
  /** On GitLab: ids of jobs whose failure lets no pipeline fail. */
  readonly allowedJobs?: readonly string[];
  /** How many jobs of each run of its CI passed. */
  readonly passedJobs?: number;
  /** On Gitea: of runs of its CI, by their ids, the commit and the number that their addresses have. */
  readonly runs?: Readonly<Record<string, { readonly sha: string; readonly number: number }>>;
  /** On GitLab: the commits to which merge requests were squashed, by their numbers. */
  readonly squashes?: Readonly<Record<string, string>>;
  /** Numbers of its issues. */
  readonly issues?: readonly number[];
  /** Ids of threads in reviews. */
  readonly threads?: readonly string[];
  /** Ids of reviews. */
  readonly reviews?: readonly string[];
  /** Whether the forge is too old to resolve a thread. */
  readonly resolvesNothing?: boolean;
  /** What people may do, by their name. */
  readonly people?: Readonly<Record<string, "admin" | "write" | "read" | "none">>;
  /** Labels that the repository has, where there are no others. */
  readonly labels?: readonly string[];
  /** Whether its pull requests may be drafts. */
  readonly hasDrafts?: boolean;
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
  /**
   * Who may approve what is opened in it; on GitHub by a ruleset, unless it is a classic protection, as shown to an
   * administrator.
   */
  readonly approvals?: {
    readonly excludesPusher?: boolean;
    readonly excludesAuthor?: boolean;
    readonly pushDismisses?: boolean;
    readonly isClassic?: boolean;
  };
}

/** The feedback on one repository that a forge has. */
export interface KeptFeedback {
  readonly comments: KeptComment[];
  /** As `issues/1 eyes`, `comments/7 eyes`; no forge keeps one twice. */
  readonly reactions: Set<string>;
  /** The last one for each commit and name. */
  readonly statuses: Map<string, KeptStatus>;
  /** Ids of threads. */
  readonly resolved: Set<string>;
}

/** Lines of a change that something is said about. */
export interface Lines {
  readonly path: string;
  readonly line: number;
  readonly hunk: string;
}

export interface KeptComment {
  readonly id: number;
  readonly number: number;
  readonly body: string;
  /** The thread of a review; null: it stands alone. */
  readonly thread: string | null;
  /** The lines on which it begins a thread. */
  readonly lines?: Lines;
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

/** A review that asks for changes. */
export interface KeptReview {
  readonly by: string;
  /** Only GitHub's and Gitea's reviews have words of their own. */
  readonly body: string;
  readonly id: number;
}

/** A run of CI that ended. */
export interface CheckRun {
  readonly id: number;
  readonly sha: string;
  readonly branch: string;
  readonly conclusion: "success" | "failure";
}

/** CI of a repository: what runs over each commit that is pushed, and what came of it. */
interface Ci {
  /** Shell commands in a checkout of the commit; those that end with another code than 0 make it red. */
  readonly script: string;
  readonly runs: CheckRun[];
}

export interface ForgeState {
  /** Most files that the forge lists of a tree at once. */
  treeLimit: number;
  readonly root: string;
  readonly token: string;
  /** Every token that is good: the one above, and those given to the App. */
  readonly tokens: Set<string>;
  /** People by their tokens, which are good for the API alone. */
  readonly people: Map<string, Person>;
  /** Who makes the request that is being answered. */
  asking: string;
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
  /** Scopes of the token at Azure DevOps, such as `vso.code_write`; null: all. */
  azureScopes: readonly string[] | null;
  /** Scopes of the token at Bitbucket Cloud; null: it does not name them. */
  bitbucketScopes: readonly string[] | null;
  /** Whether the token at Bitbucket Data Center may write. */
  dataCenterWrites: boolean;
  /** What GitLab says of the token: its scopes, and the day on which it ends, as 2026-12-31. */
  gitLabToken: { readonly scopes: readonly string[]; readonly expiresOn: string | null };
  /** Most items of a page, whatever is asked for: Gitea's MAX_RESPONSE_ITEMS. */
  maxResponseItems: number;
  /** Shortest and longest time until a change shows, in ms. */
  lag: { readonly shortestMs: number; readonly longestMs: number };
  /** Time for each answer of the API, in ms. */
  answerMs: number;
  /** Before each further piece of git's answers. */
  gitPauseMs: number;
  /** Whether git speaks no version of its protocol but the first. */
  speaksOldGit: boolean;
  readonly refs: Refs;
  readonly pulls: Map<string, KeptPullRequest[]>;
  /** The commits that the refs of pull requests are at, by repository and number. */
  readonly shownHeads: Map<string, string>;
  readonly facts: Map<string, RepositoryFacts>;
  readonly failures: ApiFailure[];
  /** Comments and replies whose answer was lost. */
  lostComments: number;
  /** The API requests so far, as `GET /repos/…`. */
  readonly asked: string[];
  /** CI, by repository. */
  readonly ci: Map<string, Ci>;
  /** What was said, by repository. */
  readonly feedback: Map<string, KeptFeedback>;
  /** What GitLab was made to do by lines of texts. */
  readonly quickActions: string[];
  readonly lfs: LfsState;
  /** Called with each comment that is posted by the API. */
  commented: (place: Place, comment: KeptComment) => void;
  /** Called with each status that was set. */
  statusSet: (place: Place, status: KeptStatus) => void;
  /** Called with each review that asks for changes. */
  reviewed: (place: Place, number: number, review: KeptReview) => void;
  /** Called with each branch that was pushed to, by the token's user if none is named. */
  pushed: (place: Place, branch: string, before: string | null, after: string, by?: string) => void;
  /** Called with each pull request whose text was changed, and the text before. */
  edited: (place: Place, number: number, before: string) => void;
  /** Called with each pull request that was merged or closed. */
  ended: (place: Place, number: number) => void;
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
