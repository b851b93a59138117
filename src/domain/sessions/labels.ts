import { z } from "zod";
import { text } from "../fields/text.ts";

/** Most labels of one session. */
export const labelLimit = 20;

/** A label: what people sort sessions by. Capitals count; a comma would end it where labels are written as a list. */
export const labelSchema = text(50).refine(
  (label) => label === label.trim() && !/[\p{Cc},]/u.test(label),
  "must be a label without commas, line breaks, and spaces around it",
);

/** The labels of a session, each once. */
export const labelsSchema = z
  .array(labelSchema)
  .max(labelLimit, `must have at most ${labelLimit} labels`)
  .transform((labels) => [...new Set(labels)]);

/** Body of a change of a session's labels. */
export const changeLabelsSchema = z
  .object({
    labels: labelsSchema.optional().meta({ description: "All that it has from then on." }),
    add: labelsSchema.optional().meta({ description: "Instead: those that it gets." }),
    remove: labelsSchema.optional().meta({ description: "And those that it loses." }),
  })
  .refine(({ labels, add, remove }) => (labels === undefined) !== (add === undefined && remove === undefined), {
    message: "must be given alone, or add and remove instead of it",
    path: ["labels"],
  });
/** See `changeLabelsSchema`. */
export type ChangeLabels = z.infer<typeof changeLabelsSchema>;

/** The labels in use in an organization, in the order of their letters. */
export const labelPageSchema = z.object({ labels: z.array(z.string()), nextCursor: z.string().nullable() });
