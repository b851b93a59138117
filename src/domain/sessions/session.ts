import { z } from "zod";
import { dollarsSchema } from "../fields/dollars.ts";
import { isBranchName } from "../fields/git-ref.ts";
import { shortId } from "../fields/short-id.ts";
import { cutAtWord, text } from "../fields/text.ts";
import { pullRequestSchema } from "../repositories/pull-request.ts";
import { pullRequestSettingsSchema } from "../repositories/pull-request-settings.ts";
import { attentionSchema } from "./attention.ts";
import { failureSchema, retrySchema } from "./event.ts";
import { labelsSchema } from "./labels.ts";
import { sessionStatuses } from "./status.ts";

/** Maximum characters of a prompt, a description or a message. */
export const promptLimit = 100_000;
const prompt = text(promptLimit);

const branch = z.string().refine(isBranchName, "is not a valid git branch name (see git-check-ref-format)").nullish();

/** An agent as `<provider>:<model>`; the model's name may itself have colons. */
export const agentNameSchema = text(200).regex(/^[^:\s]+:\S.*$/u, "must be written <provider>:<model>");

/** The meaning of `pullRequestsTogether`, for the API's description. */
export const pullRequestsTogetherWords =
  "Open no pull request until the work on every repository is pushed; if one push is refused, open none.";

/** Body of `POST /session/create`. Unknown keys are accepted, so that a notice of the session can name them. */
export const createSessionSchema = z
  .looseObject({
    prompt: prompt.optional().meta({ description: "What the session should do." }),
    description: prompt.optional().meta({ description: "Further detail, or an alternative to prompt." }),
    agent: agentNameSchema.optional().meta({ description: "Agent to use, written as <provider>:<model>." }),
    repositories: z.array(text(2_000)).optional().meta({ description: "URLs of code repositories, at most 20." }),
    codeRepoIds: z.array(text(200)).optional().meta({ description: "Ids of the organization's repositories." }),
    targetBranch: branch.meta({ description: "Branch against which the pull request is opened." }),
    branchName: branch.meta({ description: "Branch name to use for the work." }),
    pullRequest: pullRequestSettingsSchema.nullish().meta({
      description: "How its pull requests are opened: as drafts, with labels, reviewers, assignees.",
    }),
    budgetUsd: dollarsSchema.nullish().meta({
      description:
        "Limit of what it spends on models, in US dollars; above the organization's, it is an admin's to set.",
    }),
    labels: labelsSchema.optional().meta({ description: "What it is found by, beside its words." }),
    queueRightAway: z.boolean().nullish().meta({ description: "Default true: queue the session at once." }),
    pullRequestsTogether: z
      .boolean()
      .nullish()
      .meta({
        description: `${pullRequestsTogetherWords} Default false: a repository whose push is refused holds back no other.`,
      }),
  })
  .refine((body) => body.prompt !== undefined || body.description !== undefined, {
    message: "or description is required: say what the session should do",
    path: ["prompt"],
  })
  .refine((body) => body.branchName == null || body.branchName !== body.targetBranch, {
    message: "must differ from targetBranch",
    path: ["branchName"],
  })
  .meta({ anyOf: [{ required: ["prompt"] }, { required: ["description"] }] });
/** See `createSessionSchema`. */
export type CreateSession = z.infer<typeof createSessionSchema>;
/** Names of the fields that `POST /session/create` knows. */
export const createSessionFields: ReadonlySet<string> = new Set(Object.keys(createSessionSchema.shape));

/** The specification's Session: the answer to a creation, and an entry of the older `/task` lists. */
export const sessionSchema = z.object({
  id: z.uuid(),
  title: z.string(),
  description: z.string(),
  status: z.enum(sessionStatuses),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  organizationId: z.uuid(),
  htmlUrl: z.url(),
});
/** See `sessionSchema`. */
export type Session = z.infer<typeof sessionSchema>;

/** Who asked for a session: a user, signed in or by their own key, or a key without an owner. */
const requesterSchema = z.object({ type: z.enum(["user", "key"]), id: z.uuid(), name: z.string() });

/**
 * A session as `GET /session/{id}` and the `/session` lists show it. Fields with a default are not in the answers of nodes of the
 * version before, which the page and the client of this one may meet during an upgrade.
 */
export const sessionDetailSchema = sessionSchema.extend({
  prompt: z.string().nullable(),
  agent: z.string().nullable(),
  targetBranch: z.string().nullable(),
  branchName: z.string(),
  priority: z.number().int(),
  /** Sessions of the organization that will be claimed before this one; null unless the session is `queued`. */
  queuePosition: z.number().int().nullable(),
  /**
   * Estimated seconds until a worker claims it, from the durations of the organization's last sessions; null in lists,
   * and if there is nothing to estimate from.
   */
  estimatedWaitSeconds: z.number().int().nullable(),
  queuedAt: z.iso.datetime().nullable(),
  startedAt: z.iso.datetime().nullable(),
  finishedAt: z.iso.datetime().nullable(),
  failure: failureSchema.nullable(),
  /** The agent's last message, or a sentence that says that nothing was changed. */
  summary: z.string().nullable(),
  /** The person or key that asked for it; null: an automation did, or it is not known. */
  requestedBy: requesterSchema.nullable().default(null),
  automationId: z.uuid().nullable(),
  jobId: z.uuid().nullable(),
  /** False if the operator chose to run agents without a sandbox. */
  sandboxed: z.boolean(),
  /** Limit in US dollars on what the session spends on models in all; null: no limit. */
  budgetUsd: z.number().nullable(),
  spentUsd: z.number(),
  /** Title of the newest tool call of its agent; null unless the session is `running`. */
  activity: z.string().nullable().default(null),
  /** Reason of the wait; null unless the session is `waiting`. */
  waiting: z.object({ reason: z.enum(["budget"]), text: z.string() }).nullable(),
  /** When and why it is tried again after a failure that passes by itself; null unless it is `queued` for that. */
  retry: retrySchema.nullable().default(null),
  pullRequest: pullRequestSettingsSchema
    .nullable()
    .default(null)
    .meta({ description: "How its pull requests are opened." }),
  setupTrial: z
    .boolean()
    .default(false)
    .meta({ description: "Whether it only runs the setups of its repositories: no agent, no pull request." }),
  unread: z
    .boolean()
    .default(false)
    .meta({ description: "Whether it is over, you asked for it, and you have not looked at it since." }),
  labels: z.array(z.string()).default([]).meta({ description: "In the order of their letters." }),
  archivedAt: z.iso.datetime().nullable().default(null).meta({ description: "null: it is in the usual list." }),
  attention: z.array(attentionSchema).default([]).meta({ description: "Why it needs a person; empty: it does not." }),
  /** `seq` of the last event that was deleted because of its age; 0: all events exist. */
  eventsRemovedThrough: z.number().int(),
  repositories: z.array(z.object({ id: z.uuid(), name: z.string(), url: z.string() })),
  /** Whether no pull request is opened until the work on all repositories is pushed. */
  pullRequestsTogether: z.boolean().default(false),
  pullRequests: z.array(pullRequestSchema),
});
/** See `sessionDetailSchema`. */
export type SessionDetail = z.infer<typeof sessionDetailSchema>;

/** Body of a change of a session's budget. */
export const sessionBudgetSchema = z.object({
  budgetUsd: dollarsSchema.nullable().meta({ description: "US dollars in total; null: the organization's budget." }),
});

/** Body of a follow-up message. */
export const sendMessageSchema = z.object({ message: prompt.meta({ description: "What to do next." }) });

/** A session's changes, for each of its repositories. */
export const sessionDiffSchema = z.object({
  repositories: z.array(
    z.object({
      repositoryId: z.uuid().nullable(),
      name: z.string(),
      baseSha: z.string().nullable(),
      headSha: z.string().nullable(),
      /** Unified diff of base to head as `git diff` prints it. */
      patch: z.string(),
      /** True if the patch was longer than the stored maximum, and was cut. */
      truncated: z.boolean(),
    }),
  ),
});
/** See `sessionDiffSchema`. */
export type SessionDiff = z.infer<typeof sessionDiffSchema>;

/**
 * Maximum characters of the source that `titleOf` reads, and of one of its lines: removing marks takes time in
 * proportion to the square of a line's length.
 */
const titleSearch = 20_000;
const titleLine = 1_000;

/**
 * Derives a session's title: the first line that contains words, else the first that contains anything that is seen, without Markdown
 * marks and control characters, cut after a word to at most 80 characters. Reads only the first 20,000 characters, and the first 1,000 of each line.
 */
export function titleOf(source: string): string {
  let marks = "";
  for (const line of source.slice(0, titleSearch).split(/\r\n|[\n\r\u2028\u2029]/u)) {
    const plain = line
      .slice(0, titleLine)
      .replace(unshown, "")
      .replace(/^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+(?:\[[ xX]\]\s+)?|\d+[.)]\s+|```+\S*|~~~+\S*)+/u, "")
      .replace(/!?\[([^\]]*)\]\([^)]*\)/gu, "$1")
      .replace(/(\*\*|__|~~|`+)(.+?)\1/gu, "$2")
      .replace(/(^|\s)[*_](\S(?:.*?\S)?)[*_](?=\s|$|[.,;:!?])/gu, "$1$2")
      .replace(/\s+/gu, " ")
      .trim();
    if (/[^\p{P}\p{S}\p{Cf}\s]|\p{Extended_Pictographic}/u.test(plain)) return cutAtWord(plain, 80);
    marks ||= /[^\p{Cf}\s]/u.test(plain) ? plain : "";
  }
  return cutAtWord(marks || "Untitled session", 80);
}

/** Control characters, and those that turn the direction of all that follows, also beside the title. A tab is a blank. */
const unshown = /[\u202a-\u202e\u2066-\u2069]|(?!\t)\p{Cc}/gu;

/**
 * Returns `offstage/<slug of the title>-<last 8 digits of the id>`.
 * @param id a UUID whose last digits are random: two sessions with one title must not share a branch
 */
export function defaultBranchName(title: string, id: string): string {
  const slug = title
    // Far more than fits into the name: NFKD turns some characters into eighteen.
    .slice(0, 1_000)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/gu, "-")
    .slice(0, 48)
    .replace(/^-+|-+$/gu, "");
  return `offstage/${slug === "" ? "session" : slug}-${shortId(id)}`;
}

/** The session's first message to the agent: the prompt, then the description as further detail. */
export function firstMessage(body: { prompt?: string | undefined; description?: string | undefined }): string {
  if (body.prompt !== undefined && body.description !== undefined) return `${body.prompt}\n\n${body.description}`;
  return body.prompt ?? body.description ?? "";
}
