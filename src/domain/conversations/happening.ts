import type { ForgeEvent } from "../automations/forge-event.ts";
import { commentMarkKey } from "../repositories/comment-mark.ts";
import { readMark, type PullRequestMark } from "../repositories/pull-request-mark.ts";
import type { ConversationSubject, FailedCheck, Speaker } from "./conversation.ts";
import type { Earlier } from "./facts.ts";

/** A comment or other text on the forge. */
export interface Said {
  readonly type: "said";
  /** Of this saying alone, however often it is delivered, edited or delivered by another connection. */
  readonly key: string;
  /**
   * The author that the forge names, never another sender of the delivery: the text is the instruction. Null: it names
   * none.
   */
  readonly by: Speaker | null;
  readonly body: string;
  /** Null: the issue's or pull request's own text, or a review. */
  readonly commentId: string | null;
  readonly isOnLines: boolean;
  readonly threadId: string | null;
  readonly path: string | null;
  readonly line: number | null;
  /** Of several lines the first; omitted: it is on one, or it is not known. */
  readonly firstLine?: number;
  readonly hunk: string | null;
  /** Earlier comments, the oldest first: no delivery has them. Omitted: it is not known. */
  readonly thread?: readonly Earlier[];
  /** The review that it is, or may be of: the forge's id, or whose it is; null: none. */
  readonly group: string | null;
  readonly asksForChanges: boolean;
  /** Whether an Offstage posted it, this one or another: people do not write the mark by hand. */
  readonly isMarked: boolean;
  /** Of the issue or pull request. */
  readonly state: "open" | "merged" | "closed";
  /** The mark of the Offstage that opened the pull request, as far as is known; null: none opened it. */
  readonly mark: PullRequestMark | null;
  /** Whether not everybody who may read the repository may read it. */
  readonly isConfidential: boolean;
  readonly about: { readonly title: string; readonly body: string; readonly author: string | null };
}

/** An event of a pull request or an issue that may start, change or end something. */
export type Happening =
  | Said
  | {
      readonly type: "checks";
      readonly outcome: "failed" | "passed";
      readonly sha: string;
      /** Whether the forge names pull requests that it is of. */
      readonly isOfPullRequest: boolean;
      readonly check: FailedCheck;
    }
  | {
      readonly type: "pushed";
      readonly sha: string | null;
      /** The commit at which the branch was until then. Omitted: the delivery does not say it. */
      readonly before?: string | null;
      readonly by: Speaker | null;
    }
  /**
   * A review was dismissed, or a vote taken back. @property key the review's, as it was said; null: it is a vote
   * @property group see `Said`
   */
  | {
      readonly type: "dismissed";
      readonly key: string | null;
      readonly group: string;
      /** The review's author. */
      readonly by: Speaker | null;
    }
  /** It was found that the pull request can't be merged. @property sha of the push that it was found of; null: it is not known */
  | { readonly type: "conflicted"; readonly sha: string | null }
  /** @property mergeSha the commit on the target branch that it became, if the forge says it */
  | { readonly type: "ended"; readonly state: "merged" | "closed"; readonly mergeSha?: string | undefined }
  | { readonly type: "reopened" }
  /** Time passed, or a run ended. */
  | { readonly type: "tick" };

/**
 * Which conversation an event belongs to: that of an issue or a pull request, that of the pull requests that a check names or whose head its
 * commit is (`checks`), or that of the pull request of a branch (`branch`).
 */
export type Where =
  | ConversationSubject
  | {
      readonly kind: "checks";
      readonly sha: string;
      readonly branch: string | null;
      readonly numbers: readonly number[];
    }
  | { readonly kind: "branch"; readonly branch: string };

/** An event as a happening of a conversation; null: no conversation is concerned by its kind. */
export function happeningOf(event: ForgeEvent): { readonly where: Where; readonly happening: Happening } | null {
  const { pullRequest, issue, checks, push } = event;
  switch (event.name) {
    case "issue.opened":
      // The person who reopens or moves it may not be its author, and others may have edited it: its text then counts
      // as no person's comment. What it says was said where it comes from, too.
      if (event.transition !== "opened" || event.transferred === true) return null;
      return issue === undefined ? null : aboutIssue(event, issue);
    case "issue.commented":
      return issue === undefined ? null : aboutIssue(event, issue);
    case "pullRequest.commented":
    case "pullRequest.reviewSubmitted":
      return pullRequest === undefined ? null : aboutPullRequest(event, pullRequest);
    case "pullRequest.reviewDismissed": {
      if (pullRequest === undefined || event.review === undefined) return null;
      const { id, author: by } = event.review;
      const { key, group } = id === null ? { key: null, group: ofPerson(by) } : reviewOf(id);
      return { where: of("pullRequest", pullRequest.number), happening: { type: "dismissed", key, group, by } };
    }
    case "pullRequest.opened":
      if (pullRequest === undefined || event.transition !== "reopened") return null;
      return { where: of("pullRequest", pullRequest.number), happening: { type: "reopened" } };
    case "pullRequest.updated":
      if (pullRequest?.head == null) return null;
      return {
        where: of("pullRequest", pullRequest.number),
        happening: { type: "pushed", sha: pullRequest.head.sha, by: event.actor },
      };
    case "pullRequest.merged":
    case "pullRequest.closed":
      if (pullRequest === undefined) return null;
      return {
        where: of("pullRequest", pullRequest.number),
        happening: {
          type: "ended",
          state: event.name === "pullRequest.merged" ? "merged" : "closed",
          mergeSha: pullRequest.mergeSha,
        },
      };
    case "push":
      if (push === undefined || push.deleted) return null;
      return {
        where: { kind: "branch", branch: push.branch },
        happening: { type: "pushed", sha: push.after, before: push.before, by: event.actor },
      };
    case "checks.failed":
    case "checks.passed": {
      if (checks === undefined) return null;
      const { sha, branch, pullRequests: numbers, kind, id, name, url } = checks;
      const outcome = event.name === "checks.failed" ? "failed" : "passed";
      return {
        where: { kind: "checks", sha, branch, numbers },
        happening: {
          type: "checks",
          outcome,
          sha,
          isOfPullRequest: numbers.length > 0,
          check: { kind, id, name, url },
        },
      };
    }
    default:
      return null;
  }
}

const of = (kind: ConversationSubject["kind"], number: number): ConversationSubject => ({ kind, number });

const silent = {
  commentId: null,
  isOnLines: false,
  threadId: null,
  path: null,
  line: null,
  hunk: null,
  group: null,
  asksForChanges: false,
} as const;

function aboutIssue({ name, comment, confidential }: ForgeEvent, issue: NonNullable<ForgeEvent["issue"]>) {
  const shared = {
    ...silent,
    type: "said",
    state: issue.state,
    mark: null,
    isConfidential: confidential === true,
    about: { title: issue.title, body: issue.body, author: issue.author?.login ?? null },
  } as const;
  const where = of("issue", issue.number);
  if (name === "issue.opened") {
    const body = `${issue.title}\n\n${issue.body}`;
    const said = { ...shared, key: "text", by: issue.author, body, isMarked: commentMarkKey(issue.body) !== null };
    return { where, happening: said };
  }
  if (comment === undefined) return null;
  const { id, body, author: by, threadId } = comment;
  const said = { ...shared, key: `comment:${id}`, by, body, commentId: id, threadId };
  return { where, happening: { ...said, isMarked: commentMarkKey(body) !== null } };
}

/**
 * Forges whose reviews are votes: what a reviewer has to say comes as comments, on lines or not, and nothing says of which review they are.
 */
const forgesOfVotes: ReadonlySet<string> = new Set(["gitlab", "bitbucket", "bitbucketDataCenter", "azure"]);

function aboutPullRequest(
  { forge, comment, review, confidential }: ForgeEvent,
  pullRequest: NonNullable<ForgeEvent["pullRequest"]>,
): { where: Where; happening: Happening } | null {
  const { number, title, body: text, author, state } = pullRequest;
  const shared = {
    ...silent,
    type: "said",
    state,
    mark: readMark(text),
    isConfidential: confidential === true,
    about: { title, body: text, author: author?.login ?? null },
  } as const;
  const where = of("pullRequest", number);
  if (comment !== undefined) {
    const { id, body, author: by, path, line, firstLine, hunk, threadId, reviewId = null } = comment;
    const isOnLines = path !== null;
    const mayBeOfReview = isOnLines || forgesOfVotes.has(forge);
    const group = !mayBeOfReview ? null : reviewId === null ? ofPerson(by) : reviewOf(reviewId).group;
    const key = `${isOnLines ? "lines" : "comment"}:${id}`;
    const lines = { path, line, ...(firstLine !== undefined && { firstLine }), hunk };
    const said = { ...shared, key, by, body, commentId: id, isOnLines, threadId, ...lines, group };
    return { where, happening: { ...said, isMarked: commentMarkKey(body) !== null } };
  }
  if (review === undefined) return null;
  const { id, body, author: by, state: says, at = null } = review;
  // Without an id, the same person's same words on the same commit at the same time are the same review.
  const which = [by?.id, pullRequest.head?.sha, says, body, ...(at === null ? [] : [at])].join(" ");
  const vote = { key: `review:${which}`, group: ofPerson(by) };
  const { key, group } = id === null ? vote : reviewOf(id);
  const asksForChanges = says === "changesRequested";
  const said = { ...shared, key, by, body, group, asksForChanges, isMarked: commentMarkKey(body) !== null };
  return { where, happening: said };
}

/** The key and the group of a review that the forge names by an id. */
function reviewOf(id: string): { readonly key: string; readonly group: string } {
  return { key: `review:${id}`, group: `review:${id}` };
}

/** The group of notes on a forge whose comments don't say of which review they are. */
function ofPerson(by: Speaker | null): string {
  return `by:${by?.id ?? ""}`;
}
