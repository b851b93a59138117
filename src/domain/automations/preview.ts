import { z } from "zod";
import { text } from "../fields/text.ts";
import { eventContextSchema, updateAutomationSchema } from "./automation.ts";
import { triggerTypes } from "./trigger.ts";

/** Body of `POST /automation/preview`: an automation that is saved, a draft of one, or a saved one with changes. */
export const previewDraftSchema = updateAutomationSchema
  .pick({ name: true, instructions: true, title: true, triggers: true })
  .extend({
    automation: text(200).optional().meta({ description: "Macro or id of a saved one; the other fields change it." }),
    event: eventContextSchema.optional().meta({ description: "A sample payload; default: the empty object." }),
    ledgerId: z.uuid().optional().meta({ description: "Instead of `event`: the payload of this entry of the ledger." }),
    sample: text(200).optional().meta({
      description:
        "Instead of `event`: a sample event, `<source>/<event>` or `<template>/<sample>`, such as `sentry/issue.created`.",
    }),
  })
  .refine(({ automation, instructions }) => automation !== undefined || instructions !== undefined, {
    path: ["automation"],
    message: "name a saved automation, or send instructions",
  })
  .refine(({ event, ledgerId, sample }) => [event, ledgerId, sample].filter((each) => each !== undefined).length <= 1, {
    path: ["event"],
    message: "send only one of event, ledgerId and sample",
  });
/** See `previewDraftSchema`. */
export type PreviewDraft = z.infer<typeof previewDraftSchema>;

/** The decision of one trigger about the event. */
const triggerPreviewSchema = z.object({
  id: z.uuid().nullable().meta({ description: "null: it is not saved." }),
  type: z.enum(triggerTypes),
  enabled: z.boolean(),
  listsEvent: z.boolean().nullable().meta({ description: "null: its type has no list of events." }),
  listsRepository: z.boolean().nullable().meta({ description: "null: its type has no list of repositories." }),
  passes: z.boolean().nullable().meta({ description: "Whether its condition holds; null: see `problem`." }),
  problem: z.string().nullable().meta({ description: "Why its condition or its key can't be evaluated." }),
  concurrencyKey: z.string().nullable().meta({ description: "null: it has none, or its condition does not hold." }),
});
/** See `triggerPreviewSchema`. */
export type TriggerPreview = z.infer<typeof triggerPreviewSchema>;

/** Answer of `POST /automation/preview`. */
export const previewSchema = z.object({
  prompt: z.string().nullable().meta({ description: "null: see `problem`." }),
  title: z.string().nullable().meta({ description: "null: see `problem`." }),
  problem: z.string().nullable().meta({ description: "Why the instructions or the title can't be rendered." }),
  event: eventContextSchema.meta({
    description: "With what they were rendered; the organization's secrets are masked.",
  }),
  eventName: z.string().nullable(),
  repository: z
    .object({ name: z.string(), url: z.string() })
    .nullable()
    .meta({ description: "What conditions of triggers of type `forge` see as `repository`." }),
  triggers: z.array(triggerPreviewSchema).meta({ description: "In the order of the automation's list." }),
});
/** See `previewSchema`. */
export type Preview = z.infer<typeof previewSchema>;
