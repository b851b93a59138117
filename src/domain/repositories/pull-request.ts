import { z } from "zod";

/** A pull request that a session opened. */
export const pullRequestSchema = z.object({
  repositoryId: z.uuid(),
  number: z.number().int(),
  url: z.url(),
  head: z.string(),
  target: z.string(),
  state: z.enum(["open", "merged", "closed"]),
});
/** See `pullRequestSchema`. */
export type PullRequest = z.infer<typeof pullRequestSchema>;
