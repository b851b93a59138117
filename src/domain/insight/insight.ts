import { z } from "zod";
import { optionalText } from "../fields/text.ts";
import { insightDimensions } from "./dimension.ts";

/** The longest period, in days. */
export const mostInsightDays = 366;
/** Most groups of one answer: those with the most sessions. */
export const mostInsightGroups = 100;

const date = z.iso
  .date("must be a day such as 2030-01-31")
  .refine((day) => day >= "2000-01-01", "must not be before 2000-01-01");

/** Query of an insight. */
export const insightQuerySchema = z.object({
  from: date.optional().meta({ description: "The first day, in UTC. Default: 29 days before the last." }),
  to: date.optional().meta({ description: "The last day, in UTC. Default: today." }),
  by: z.enum(["day", "week"]).default("day").meta({ description: "Length of the periods. A week begins on Monday." }),
  groupBy: z.enum(insightDimensions).optional().meta({ description: "Figures of each of these too." }),
  key: optionalText(500).optional().meta({
    description: "Only what belongs to this one of `groupBy`: the key of one of its groups.",
  }),
  repositoryId: z.uuid("must be a repository's id").optional().meta({ description: "Only work on this repository." }),
});
/** See `insightQuerySchema`. */
export type InsightQuery = z.infer<typeof insightQuerySchema>;

const count = z.number().int();
const ms = (description: string) => z.number().int().nullable().meta({ description });

/** Figures of a period. docs/insight.md defines each. */
export const figuresSchema = z.object({
  sessions: count.meta({ description: "Created in the period." }),
  completed: count,
  failed: count,
  cancelled: count,
  underWay: count.meta({ description: "Not over yet." }),
  pullRequests: count.meta({ description: "Opened in the period." }),
  merged: count.meta({ description: "Of these, merged within 30 days of their opening." }),
  closed: count.meta({ description: "Of these, closed without being merged." }),
  shareMerged: z
    .number()
    .nullable()
    .meta({ description: "`merged` of `pullRequests`, from 0 to 1; null: none was opened." }),
  openingP50Ms: ms("Time from a session's creation to a pull request of it: half took at most this long."),
  openingP90Ms: ms("The same, of nine in ten."),
  mergingP50Ms: ms(
    "Time from a pull request's opening to its merge, of those in `merged`: half took at most this long.",
  ),
  mergingP90Ms: ms("The same, of nine in ten."),
  waitP50Ms: ms(
    "Time in the queue before a session first began, of those that are over: half waited at most this long.",
  ),
  waitP90Ms: ms("The same, of nine in ten."),
  reviewRounds: z.number().nullable().meta({
    description:
      "Messages to the session while its pull request was open, for each pull request; null: none was opened.",
  }),
  inputTokens: count.meta({ description: "Sent to models in the period, without what they had cached." }),
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count.meta({ description: "Part of `outputTokens`." }),
  costUsd: z.number().meta({ description: "What models cost in the period, as far as they have a price." }),
  costPerMergedUsd: z
    .number()
    .nullable()
    .meta({ description: "`costUsd` for each of `merged`; null: none was merged." }),
});
/** See `figuresSchema`. */
export type Figures = z.infer<typeof figuresSchema>;

/** An organization's figures of a time. */
export const insightSchema = z.object({
  from: z.string().meta({ description: "The first day." }),
  to: z.string().meta({ description: "The last day." }),
  by: z.enum(["day", "week"]),
  timeZone: z.literal("UTC"),
  groupBy: z.enum(insightDimensions).nullable(),
  total: figuresSchema,
  periods: z.array(figuresSchema.extend({ from: z.string().meta({ description: "The period's first day." }) })),
  groups: z
    .array(
      figuresSchema.extend({
        key: z.string().meta({ description: "An id, or a name; empty: what belongs to none." }),
        name: z
          .string()
          .nullable()
          .meta({ description: "Null: what belongs to none, or the key is an id that is not known any more." }),
      }),
    )
    .meta({ description: "Those with the most sessions first." }),
  groupsLeftOut: z.boolean().meta({ description: `There are more than ${mostInsightGroups} groups.` }),
});
/** See `insightSchema`. */
export type Insight = z.infer<typeof insightSchema>;
