import { z } from "zod";

/** Branches of a repository's remote. */
export const branchListSchema = z.object({
  branches: z.array(z.object({ name: z.string(), isDefault: z.boolean() })),
  nextCursor: z.null(),
});

/** Files of a branch of a repository's remote. */
export const fileListSchema = z.object({
  branch: z.string(),
  files: z.array(z.object({ path: z.string() })),
  nextCursor: z.null(),
});
