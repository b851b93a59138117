import { z } from "zod";

/** The issue or pull request that a comment, an answer or a run is about. */
export interface Subject {
  readonly kind: "issue" | "pullRequest";
  readonly number: number;
}

/** A thread of comments, as deliveries name it (`comment.threadId`). */
export interface Thread {
  readonly subject: Subject;
  readonly id: string;
}

/** The target of a reaction: the subject itself, or a comment on it. */
export interface ReactionTarget {
  readonly subject: Subject;
  readonly commentId: string | null;
  /** Whether it is a comment on lines of the change, which GitHub counts apart. */
  readonly isOnLines: boolean;
  /** A review's own words, on forges that name reviews; omitted: none. */
  readonly reviewId?: string;
}

/** The reactions that all forges have. */
export type Reaction = "eyes" | "+1" | "-1" | "rocket" | "confused";

/** A status shown at a commit. */
export interface CommitStatus {
  readonly state: "pending" | "success" | "failure";
  /** Its identity among others at the same commit: a later one with the same name replaces it. */
  readonly name: string;
  readonly description: string;
  readonly url: string;
}

/**
 * The set of comments within which a comment's id is unique, on forges where it is not unique among all of a repository: GitHub numbers
 * comments on lines of a change apart from the others, Bitbucket those of issues apart from those of pull requests, and Azure DevOps those
 * of each thread.
 */
export type IdScope = "lines" | "conversation" | Subject["kind"] | `thread ${string}`;

/** The sets within which the id of a comment may be unique, one of which is right on each forge. @param comment as events have it */
export function idScopesOf(
  about: Subject["kind"],
  comment: { readonly path: string | null; readonly threadId: string | null },
): IdScope[] {
  const thread = comment.threadId === null ? [] : [`thread ${comment.threadId}` as const];
  return [about, comment.path === null ? "conversation" : "lines", ...thread];
}

/**
 * Kinds of answers: what is written on a forge, `resolution` for a thread that is marked as resolved, `settings` for labels,
 * reviewers and assignees of a pull request, and `service` for a message in Slack or a comment in Linear.
 */
export const answerKinds = ["comment", "reply", "resolution", "reaction", "status", "settings", "service"] as const;
/** Statuses of an answer. `refused`: no attempt can succeed; `dead`: the last attempt failed. */
export const answerStatuses = ["pending", "sent", "refused", "dead"] as const;

/** An answer as the API shows it. */
export const answerSchema = z.object({
  id: z.uuid(),
  sessionId: z.uuid(),
  kind: z.enum(answerKinds),
  service: z.enum(["slack", "linear"]).nullable(),
  repositoryId: z.uuid().nullable(),
  subject: z
    .object({ kind: z.enum(["issue", "pullRequest"]), number: z.number().int() })
    .nullable()
    .meta({ description: "What is talked about on the forge; null for a commit's status and a service." }),
  text: z.string().meta({
    description:
      "Of a reaction its name, of a status its name and description, of settings what is set, of a resolution nothing.",
  }),
  status: z.enum(answerStatuses),
  attempts: z.number().int(),
  nextAttemptAt: z.iso.datetime().nullable(),
  url: z.string().nullable().meta({ description: "Where it is, if the forge or service says so." }),
  problem: z.string().nullable().meta({ description: "Why it was refused or given up, or is not there yet." }),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `answerSchema`. */
export type Answer = z.infer<typeof answerSchema>;
