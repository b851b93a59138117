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
});
/** See `pullRequestSchema`. */
export type PullRequest = z.infer<typeof pullRequestSchema>;
