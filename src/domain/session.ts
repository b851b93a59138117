import { z } from "zod";
import { dollarsSchema } from "./dollars.ts";
import { failureSchema } from "./event.ts";
import { isBranchName } from "./git-ref.ts";
import { pullRequestSchema } from "./pull-request.ts";
import { sessionStatuses } from "./status.ts";
import { cutAtWord, text } from "./text.ts";

export const promptLimit = 100_000;
const prompt = text(promptLimit);

const branch = z.string().refine(isBranchName, "is not a valid git branch name (see git-check-ref-format)").nullish();

export const agentNameSchema = text(200).regex(/^[^:\s]+:\S.*$/u, "must be written <provider>:<model>");

/** Body of `POST /session/create`; keys that it does not know are let through, so that they can be named in a notice. */
export const createSessionSchema = z
  .looseObject({
    prompt: prompt.optional().meta({ description: "What the session should do." }),
    description: prompt.optional().meta({ description: "Further detail, or an alternative to prompt." }),
    agent: agentNameSchema.optional().meta({ description: "Agent to use, written as <provider>:<model>." }),
    repositories: z.array(text(2_000)).optional().meta({ description: "URLs of code repositories, at most 20." }),
    codeRepoIds: z.array(text(200)).optional().meta({ description: "Ids of the organization's repositories." }),
    targetBranch: branch.meta({ description: "Branch against which the pull request is opened." }),
    branchName: branch.meta({ description: "Branch name to use for the work." }),
    queueRightAway: z.boolean().nullish().meta({ description: "Default true: queue the session at once." }),
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
export type CreateSession = z.infer<typeof createSessionSchema>;
export const createSessionFields: ReadonlySet<string> = new Set(Object.keys(createSessionSchema.shape));

/** The specification's Session: what creation answers, and what the older `/task` lists hold. */
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
export type Session = z.infer<typeof sessionSchema>;

/** A session as `GET /session/{id}` and the lists of the newer noun show it. */
export const sessionDetailSchema = sessionSchema.extend({
  prompt: z.string().nullable(),
  agent: z.string().nullable(),
  targetBranch: z.string().nullable(),
  branchName: z.string(),
  priority: z.number().int(),
  /** Sessions of the organization that will be taken before this one; only while `queued`. */
  queuePosition: z.number().int().nullable(),
  /** Seconds until it may run, by how long the organization's last sessions took; null in lists, and where nothing is known. */
  estimatedWaitSeconds: z.number().int().nullable(),
  queuedAt: z.iso.datetime().nullable(),
  startedAt: z.iso.datetime().nullable(),
  finishedAt: z.iso.datetime().nullable(),
  failure: failureSchema.nullable(),
  /** The agent's last words, or that there was nothing to do. */
  summary: z.string().nullable(),
  automationId: z.uuid().nullable(),
  jobId: z.uuid().nullable(),
  /** False where the operator chose to run agents without a sandbox. */
  sandboxed: z.boolean(),
  /** US dollars that it may spend on models in all; null: no limit. */
  budgetUsd: z.number().nullable(),
  spentUsd: z.number(),
  /** What it waits for; only while `waiting`. */
  waiting: z.object({ reason: z.enum(["budget"]), text: z.string() }).nullable(),
  /** Number of the last event that was removed for its age; 0: all are there. */
  eventsRemovedThrough: z.number().int(),
  repositories: z.array(z.object({ id: z.uuid(), name: z.string(), url: z.string() })),
  pullRequests: z.array(pullRequestSchema),
});
export type SessionDetail = z.infer<typeof sessionDetailSchema>;

export const sessionBudgetSchema = z.object({
  budgetUsd: dollarsSchema.nullable().meta({ description: "US dollars in total; null: the organization's budget." }),
});

export const sendMessageSchema = z.object({ message: prompt.meta({ description: "What to do next." }) });

export const sessionDiffSchema = z.object({
  repositories: z.array(
    z.object({
      repositoryId: z.uuid().nullable(),
      name: z.string(),
      baseSha: z.string().nullable(),
      headSha: z.string().nullable(),
      /** Unified diff of base to head as `git diff` prints it. */
      patch: z.string(),
      /** True where the patch was longer than is kept, and was cut. */
      truncated: z.boolean(),
    }),
  ),
});
export type SessionDiff = z.infer<typeof sessionDiffSchema>;

/** How far a title is looked for, and how much of one line is read: stripping marks takes the square of a line's length. */
const titleSearch = 20_000;
const titleLine = 1_000;

/**
 * The first line that has words in it, Markdown marks stripped, cut at a word to at most 80 characters. Only the first
 * 20,000 characters are looked at, and of each line the first 1,000.
 */
export function titleOf(source: string): string {
  for (const line of source.slice(0, titleSearch).split(/\r\n|[\n\r\u2028\u2029]/u)) {
    const plain = line
      .slice(0, titleLine)
      .replace(/^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+(?:\[[ xX]\]\s+)?|\d+[.)]\s+|```+\S*|~~~+\S*)+/u, "")
      .replace(/!?\[([^\]]*)\]\([^)]*\)/gu, "$1")
      .replace(/(\*\*|__|~~|`+)(.+?)\1/gu, "$2")
      .replace(/(^|\s)[*_](\S(?:.*?\S)?)[*_](?=\s|$|[.,;:!?])/gu, "$1$2")
      .replace(/\s+/gu, " ")
      .trim();
    if (/[^\p{P}\p{S}\s]|\p{Extended_Pictographic}/u.test(plain)) return cutAtWord(plain, 80);
  }
  return cutAtWord(source.trim() || "Untitled session", 80);
}

/** `offstage/<slug of the title>-<first 8 of the id>`: ids are random (UUID v4), so that two sessions never share it. */
export function defaultBranchName(title: string, id: string): string {
  const slug = title
    // Far more than the name has room for: some characters become eighteen.
    .slice(0, 1_000)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/gu, "-")
    .slice(0, 48)
    .replace(/^-+|-+$/gu, "");
  return `offstage/${slug === "" ? "session" : slug}-${id.slice(0, 8)}`;
}

/** What the agent is told first: the prompt, then the description as further detail. */
export function firstMessage(body: { prompt?: string | undefined; description?: string | undefined }): string {
  if (body.prompt !== undefined && body.description !== undefined) return `${body.prompt}\n\n${body.description}`;
  return body.prompt ?? body.description ?? "";
}
