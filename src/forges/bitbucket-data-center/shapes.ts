/** Fields used of a repository (https://developer.atlassian.com/server/bitbucket/rest/, RestRepository). */
export interface Repository {
  readonly slug: string;
  readonly name?: string;
  readonly project: { readonly key: string };
  readonly archived?: boolean;
  readonly forkable?: boolean;
  readonly state?: string;
  readonly origin?: Repository;
}

/** Fields used of a pull request (RestPullRequest). */
export interface PullRequest {
  readonly id: number;
  /** Of the text: a change must name the one that it is about. */
  readonly version: number;
  readonly title: string;
  readonly description?: string | null;
  readonly state: "OPEN" | "MERGED" | "DECLINED";
  readonly draft?: boolean;
  readonly fromRef: Ref;
  readonly toRef: Ref;
  readonly reviewers?: readonly { readonly user: { readonly name?: string } }[];
}

interface Ref {
  readonly id: string;
  readonly displayId?: string;
  readonly latestCommit?: string;
  readonly repository: Repository;
}

/** Whether it can be merged (RestPullRequestMergeability); `canMerge` has approvals and checks in it, too. */
export interface Mergeability {
  readonly conflicted?: boolean;
  readonly outcome?: "CLEAN" | "CONFLICTED" | "UNKNOWN";
}

/** Fields used of a comment (RestComment). */
export interface Comment {
  readonly id: number;
  readonly text?: string;
  readonly author?: { readonly name?: string };
  readonly createdDate?: number;
  /** A change must name the one that it is about. */
  readonly version?: number;
  /** `BLOCKER`: it is a task. */
  readonly severity?: string;
  readonly state?: string;
  /** Servers before 8.9 don't have it. */
  readonly threadResolved?: boolean;
  readonly comments?: readonly Comment[];
}

/** A refusal (RestErrorMessage). */
export interface ErrorEntry {
  readonly message?: unknown;
  readonly exceptionName?: unknown;
  readonly existingPullRequest?: { readonly id?: unknown } | null;
}

/** The errors of a refusal. */
export function errorsIn(body: unknown): readonly ErrorEntry[] {
  const { errors } = (body ?? {}) as { readonly errors?: unknown };
  return Array.isArray(errors) ? errors.filter((each) => typeof each === "object" && each !== null) : [];
}
