import { z } from "zod";
import { text } from "../fields/text.ts";
import { automationFields } from "./automation.ts";
import { fileTriggerSchema, mostTriggers } from "./trigger.ts";

/** Folder of a repository that has its automations. */
export const automationFolder = ".offstage/automations";
/** The commit status by which Offstage reports the outcome of the files. */
export const automationStatusName = "offstage/automations";
/** A repository has at most so many automation files. */
export const mostAutomationFiles = 50;
/** A file has at most so many bytes. */
export const longestAutomationFile = 64 * 1024;
/** The highest urgency of an automation from a file: the right to push must not let its sessions pass all others. */
const mostUrgentOfFile = 5;

/**
 * An automation as a file has it. It works on the repository that the file is in, and on no other; unknown fields are errors, so that
 * a misspelt one is found.
 */
export const automationFileSchema = z.strictObject({
  $schema: z.string().optional().meta({ description: "The address of this schema, for editors." }),
  name: automationFields.name,
  macro: automationFields.macro.optional().meta({
    description: "Its key in addresses, by which it stays the same if the file is renamed; default: the file's name.",
  }),
  instructions: automationFields.instructions,
  title: automationFields.title,
  agent: automationFields.agent,
  targetBranch: automationFields.targetBranch,
  priority: z
    .int()
    .min(mostUrgentOfFile, `must be ${mostUrgentOfFile} to 9: a file can't make its runs more urgent than usual`)
    .max(9)
    .default(mostUrgentOfFile)
    .meta({ description: "5 usual, 9 least urgent." }),
  paused: automationFields.paused.default(false),
  budgetUsd: automationFields.budgetUsd,
  pullRequest: automationFields.pullRequest,
  triggers: z.array(fileTriggerSchema).max(mostTriggers).default([]),
});
/** See `automationFileSchema`. */
export type AutomationFile = z.infer<typeof automationFileSchema>;

/** A file of an automation to start from: with what it is for, and sample events. */
export const automationTemplateFileSchema = automationFileSchema.extend({
  description: text(300),
  /** Whether its triggers give no repository, so that the person who uses it must name those to work on. */
  namesRepositories: z.boolean().default(false),
  samples: z
    .array(
      z.union([
        /** A delivery as the forge sends it. */
        z.strictObject({
          name: text(100),
          forge: z.enum(["github", "gitlab", "gitea"]),
          headers: z.record(z.string(), z.string()),
          payload: z.record(z.string(), z.unknown()),
        }),
        /** One of the samples that a source has itself. */
        z.strictObject({ name: text(100), source: z.literal("sentry"), event: text(100) }),
        /** The event itself: a tick, or one of Offstage's own. */
        z.strictObject({ name: text(100), event: z.record(z.string(), z.unknown()) }),
      ]),
    )
    .min(1),
});
/** A sample event of a template. */
export type TemplateSample = z.infer<typeof automationTemplateFileSchema>["samples"][number];

/** A template as the API shows it. */
export const automationTemplateSchema = z.object({
  id: z.string(),
  description: z.string(),
  namesRepositories: z
    .boolean()
    .meta({ description: "Whether no trigger tells a repository: name those that it is to work on." }),
  automation: automationFileSchema
    .omit({ $schema: true })
    .extend({ macro: z.string() })
    .meta({ description: "As `POST /automation/create` takes it." }),
  samples: z
    .array(z.string())
    .meta({ description: "Names of sample events, as `POST /automation/preview` takes them." }),
});
/** See `automationTemplateSchema`. */
export type AutomationTemplate = z.infer<typeof automationTemplateSchema>;
/** Answer of `GET /automation/template/list`. */
export const automationTemplatesSchema = z.object({ templates: z.array(automationTemplateSchema) });

/** Body of `POST /repository/{id}/automation-files`. */
export const setAutomationFilesSchema = z.object({
  enabled: z.boolean().meta({ description: "Whether whoever may push to the branch may define automations." }),
});

/** A repository's automations in files. */
export const automationFilesSchema = z.object({
  enabled: z.boolean(),
  branch: z.string().nullable().meta({ description: "The branch that was read; null: none was." }),
  commit: z.string().nullable(),
  syncedAt: z.iso.datetime().nullable(),
  problem: z.string().nullable().meta({ description: "Why the branch could not be read." }),
  files: z.array(
    z.object({
      path: z.string(),
      url: z.string().nullable(),
      automationId: z.uuid().nullable().meta({ description: "What its last good version made." }),
      problem: z.string().nullable().meta({ description: "Why its newest version does not count." }),
    }),
  ),
});
/** See `automationFilesSchema`. */
export type AutomationFiles = z.infer<typeof automationFilesSchema>;
