import { z } from "zod";

/** A pull request that a session opened. */
export const pullRequestSchema = z.object({
  repositoryId: z.uuid(),
  number: z.number().int(),
  url: z.url(),
  head: z.string(),
  target: z.string(),
  state: z.enum(["open", "merged", "closed"]),
  /** Nodes of the version before don't say it. */
  mergeable: z.boolean().nullable().default(null).meta({
    description:
      "Whether it goes together with its target branch by itself, as the forge last said; null: not known yet.",
  }),
  checks: z
    .enum(["passed", "failed"])
    .nullable()
    .default(null)
    .meta({ description: "How the checks of its newest commit ended, as the forge told; null: it told of none yet." }),
  review: z
    .enum(["approved", "changesRequested"])
    .nullable()
    .default(null)
    .meta({ description: "What a review last said, as the forge told; null: none said either." }),
});
/** See `pullRequestSchema`. */
export type PullRequest = z.infer<typeof pullRequestSchema>;
