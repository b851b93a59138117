import { z } from "zod";

/**
 * Why a session needs a person: `budget`, it waits for one; `failure`, it failed in the last seven days; `conflict`, an
 * open pull request of it collides with its target branch; `review`, it is completed, and an open pull request of it
 * waits to be reviewed or merged. An archived session needs no attention.
 */
export const attentionReasons = ["budget", "failure", "conflict", "review"] as const;
/** See `attentionReasons`. */
export type AttentionReason = (typeof attentionReasons)[number];

/** Why a session needs a person: schema of one reason. */
export const attentionSchema = z.enum(attentionReasons);
