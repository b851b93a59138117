import { z } from "zod";

/** Names of forge events, which triggers of type `forge` may list. */
export const forgeEventNames = [
  "issue.opened",
  "issue.labeled",
  "issue.assigned",
  "issue.commented",
  "issue.closed",
  "pullRequest.opened",
  "pullRequest.updated",
  "pullRequest.labeled",
  "pullRequest.reviewRequested",
  "pullRequest.reviewSubmitted",
  "pullRequest.reviewDismissed",
  "pullRequest.commented",
  "pullRequest.merged",
  "pullRequest.closed",
  "push",
  "checks.failed",
  "checks.passed",
  "release.published",
] as const;
/** See `forgeEventNames`. */
export type ForgeEventName = (typeof forgeEventNames)[number];

const text = z.string();
/** A person, a team or a program on a forge. */
const account = z.object({
  /** The forge's stable id of it, as text; empty if the delivery does not say it. */
  id: text,
  login: text,
  isBot: z.boolean(),
});
/** See `account`. */
export type ForgeAccount = z.infer<typeof account>;

const issue = z.object({
  number: z.number().int(),
  title: text,
  body: text,
  url: text,
  state: z.enum(["open", "closed"]),
  labels: z.array(text),
  assignees: z.array(account),
  author: account.nullable(),
});

const pullRequest = z.object({
  number: z.number().int(),
  title: text,
  body: text,
  url: text,
  state: z.enum(["open", "merged", "closed"]),
  draft: z.boolean(),
  /** null if the delivery does not say it, as on a comment on GitHub. */
  head: z.object({ branch: text, sha: text, repositoryUrl: text.nullable().describe("null if it is gone") }).nullable(),
  /** null if the delivery does not say it. */
  target: text.nullable(),
  labels: z.array(text),
  author: account.nullable(),
  /** The commit on the target branch that it became, or its beginning. Absent: it is not merged, or the delivery does not say it. */
  mergeSha: text.optional(),
});

const comment = z.object({
  id: text,
  body: text,
  url: text.nullable(),
  author: account.nullable(),
  /** For a comment on lines of the change. */
  path: text.nullable(),
  line: z.number().int().nullable(),
  /** Of a comment on several lines the first; `line` is the last. Absent: it is on one, or the delivery does not say it. */
  firstLine: z.number().int().optional(),
  hunk: text.nullable(),
  /** The thread that a reply must name; null if comments have none. */
  threadId: text.nullable(),
  /** The review that a comment on lines is of. Absent: the forge does not say it. */
  reviewId: text.nullable().optional(),
});

/**
 * An event of a forge as conditions and templates see it: the same fields for all forges. Fields that an event is not about are
 * absent. `payload` is the delivery as the forge sent it.
 */
export const forgeEventSchema = z.object({
  name: z.enum(forgeEventNames),
  forge: z.enum(["github", "gitlab", "gitea", "bitbucket", "bitbucketDataCenter", "azure"]),
  repository: z.object({ url: text, fullName: text, defaultBranch: text.nullable() }).nullable(),
  /** The actor. */
  actor: account.nullable(),
  /**
   * Whether not everybody who may read the repository may read it: a confidential issue, or an internal comment. Absent in events of the
   * version before.
   */
  confidential: z.boolean().optional(),
  issue: issue.optional(),
  pullRequest: pullRequest.optional(),
  /** Of `issue.opened` and `pullRequest.opened`: whether it is new, was closed before, or was a draft. */
  transition: z.enum(["opened", "reopened", "readyForReview"]).optional(),
  /** Of `issue.opened`: whether it was moved here from another repository. Absent: it was not, or the forge does not say it. */
  transferred: z.boolean().optional(),
  comment: comment.optional(),
  review: z
    .object({
      /** null if the forge does not say it. */
      id: text.nullable(),
      state: z.enum(["approved", "changesRequested", "commented", "dismissed"]),
      /** When it came to be so, in the forge's own words. Absent or null: the forge does not say it. */
      at: text.nullable().optional(),
      body: text,
      url: text.nullable(),
      author: account.nullable(),
    })
    .optional(),
  /** The label that was added. */
  label: text.optional(),
  /** Who was assigned, or asked for a review. */
  assignee: account.optional(),
  push: z
    .object({
      branch: text,
      before: text.nullable(),
      after: text.nullable(),
      created: z.boolean(),
      deleted: z.boolean(),
      commits: z.array(z.object({ sha: text, message: text, author: text })),
    })
    .optional(),
  checks: z
    .object({
      /** The kind of check: a check suite, a workflow, a pipeline, a status. */
      kind: text,
      id: text,
      name: text,
      url: text.nullable(),
      sha: text,
      branch: text.nullable(),
      pullRequests: z.array(z.number().int()),
    })
    .optional(),
  release: z.object({ tag: text, name: text, body: text, url: text, prerelease: z.boolean() }).optional(),
  payload: z.record(z.string(), z.unknown()),
});
/** See `forgeEventSchema`. */
export type ForgeEvent = z.infer<typeof forgeEventSchema>;
