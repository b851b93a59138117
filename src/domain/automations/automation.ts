import { z } from "zod";
import { dollarsSchema } from "../fields/dollars.ts";
import { isBranchName } from "../fields/git-ref.ts";
import { text } from "../fields/text.ts";
import { isUuid } from "../fields/uuid.ts";
import { pullRequestSettingsSchema } from "../repositories/pull-request-settings.ts";
import { agentNameSchema, pullRequestsTogetherWords, titleOf } from "../sessions/session.ts";
import { alertSchema, expectationSchema } from "./expectation.ts";
import { fanOutLimit } from "./run.ts";
import { triggerListSchema, triggerSchema } from "./trigger.ts";

/** An automation's short name, unique in its organization. It can be used for the id, so it must not look like one. */
export const macroSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/u, "must be 1 to 63 of a-z, 0-9 and -, and start with a letter or digit")
  .refine((macro) => !isUuid(macro), "must not look like a UUID");

/** Most characters of a gate. */
const longestGate = 20_000;

/** Fields that a client may set of an automation. */
export const automationFields = {
  name: text(200),
  macro: macroSchema,
  instructions: text(100_000).meta({ description: "A Liquid template; `event` is the trigger's body." }),
  title: text(1_000).nullish().meta({
    description: "A Liquid template of its sessions' titles; null: the first line of the rendered instructions.",
  }),
  gate: text(longestGate).nullish().meta({
    description:
      "A script that runs in the sandbox before the agent: a code other than 0 ends the run as filtered; what it prints is context. null: there is none.",
  }),
  agent: agentNameSchema.nullish(),
  codeRepoIds: z.array(text(200)),
  repositories: z.array(text(2_000)),
  targetBranch: z.string().refine(isBranchName, "is not a valid git branch name").nullish(),
  priority: z.number().int().min(1).max(9).meta({ description: "1 most urgent, 9 least; default 5." }),
  paused: z.boolean(),
  budgetUsd: dollarsSchema
    .nullish()
    .meta({ description: "What one run may spend on models; never more than the organization lets a run." }),
  failuresBeforePause: z.number().int().min(0).max(1_000).nullable().meta({
    description: "So many failed runs in a row pause it; 0 or null: any number may fail. Default 3.",
  }),
  fanOut: z.boolean().meta({
    description: `Each run has a session for each repository, at most ${fanOutLimit}, instead of one with all. Default false.`,
  }),
  pullRequestsTogether: z.boolean().meta({ description: `${pullRequestsTogetherWords} Default false.` }),
  expect: expectationSchema.nullable().meta({
    description: "How often it is expected to fire: if it does not, it raises an alert. Schedules need none for that.",
  }),
  pullRequest: pullRequestSettingsSchema.nullish().meta({
    description: "How the pull requests of its runs are opened: as drafts, with labels, reviewers, assignees.",
  }),
  triggers: triggerListSchema.meta({
    description:
      "What starts its runs, whole: triggers that are not in the list are removed. That of the API is always there.",
  }),
};

/** Body of `POST /automation/create`. */
export const createAutomationSchema = z.object({
  ...automationFields,
  codeRepoIds: automationFields.codeRepoIds.default([]),
  repositories: automationFields.repositories.default([]),
  priority: automationFields.priority.default(5),
  paused: automationFields.paused.default(false),
  failuresBeforePause: automationFields.failuresBeforePause.default(3),
  fanOut: automationFields.fanOut.default(false),
  pullRequestsTogether: automationFields.pullRequestsTogether.default(false),
  expect: automationFields.expect.default(null),
  triggers: automationFields.triggers.default([]),
});
/** See `createAutomationSchema`. */
export type CreateAutomation = z.infer<typeof createAutomationSchema>;

/** Body of an update: fields that are not sent keep their value. */
export const updateAutomationSchema = z.object(automationFields).partial();
/** See `updateAutomationSchema`. */
export type UpdateAutomation = z.infer<typeof updateAutomationSchema>;

/** An automation as the API shows it: instructions that a trigger renders to the prompt of a new session. */
export const automationSchema = z.object({
  id: z.uuid(),
  organizationId: z.uuid(),
  name: z.string(),
  macro: z.string(),
  instructions: z.string(),
  /** Nodes of the version before say none. */
  title: z.string().nullable().default(null),
  /** Nodes of the version before say none. */
  gate: z.string().nullable().default(null),
  agent: z.string().nullable(),
  repositories: z.array(z.object({ id: z.uuid(), name: z.string(), url: z.string() })),
  targetBranch: z.string().nullable(),
  priority: z.number().int(),
  paused: z.boolean(),
  /** Why Offstage paused it itself. Nodes of the version before say none of these. */
  pausedReason: z.string().nullable().default(null),
  failuresBeforePause: z.number().int().nullable().default(null),
  failedInARow: z.number().int().default(0).meta({
    description: "Runs that failed since one was completed, or since somebody resumed it.",
  }),
  fanOut: z.boolean().default(false),
  pullRequestsTogether: z.boolean().default(false),
  expect: expectationSchema.nullable().default(null),
  alert: alertSchema.nullable().default(null).meta({
    description: "It was expected to fire and did not; null: nothing is overdue.",
  }),
  budgetUsd: z.number().nullable(),
  /** Nodes of the version before say none. */
  pullRequest: pullRequestSettingsSchema.nullable().default(null),
  /** Nodes of the version before say none. */
  triggers: z.array(triggerSchema).default([]),
  /** Nodes of the version before say none. */
  file: z
    .object({
      repositoryId: z.uuid(),
      path: z.string(),
      url: z.string().nullable().meta({ description: "Its page on the forge, if there is one." }),
      problem: z.string().nullable().meta({ description: "Why its newest version does not count." }),
    })
    .nullable()
    .default(null)
    .meta({ description: "The file of a repository that it is kept in, in which alone it can be changed." }),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `automationSchema`. */
export type Automation = z.infer<typeof automationSchema>;

/**
 * The title of a session that an automation starts: that of its branch, commit and pull request too.
 * @param rendered the title template as rendered; null if there is none
 * @param prompt the instructions as rendered
 * @param name the automation's, for a run of which nothing else says what it is about
 */
export function titleOfRun(rendered: string | null, prompt: string, name: string): string {
  const source = [rendered, prompt].find((candidate) => candidate !== null && candidate.trim() !== "");
  return titleOf(source ?? name);
}

/** Body of a preview: renders the instructions without starting anything. */
export const previewAutomationSchema = z.object({
  event: z.record(z.string(), z.unknown()).default({}).meta({ description: "A sample payload." }),
});
/** Answer of a preview. */
export const automationPreviewSchema = z.object({ prompt: z.string(), title: z.string().default("") });

/** Body of a trigger, any JSON object: the automation's instructions see it as `event`. */
export const eventContextSchema = z.record(z.string(), z.unknown());
/** See `eventContextSchema`. */
export type EventContext = z.infer<typeof eventContextSchema>;
