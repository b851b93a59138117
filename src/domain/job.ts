import { z } from "zod";

export const jobStatuses = ["pending", "running", "completed", "failed", "cancelled"] as const;
export type JobStatus = (typeof jobStatuses)[number];

/** The specification's queued job, to the letter: the answer of a trigger. */
export const queuedJobSchema = z.object({
  id: z.uuid(),
  task: z.literal("RunWorkflow"),
  status: z.enum(jobStatuses),
  priority: z.number().int(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
export type QueuedJob = z.infer<typeof queuedJobSchema>;

export const jobSchema = queuedJobSchema.extend({
  automationId: z.uuid().nullable(),
  /** The session that it started, once it ran. */
  sessionId: z.uuid().nullable(),
  sessionHtmlUrl: z.url().nullable(),
  /** Why it failed, where it did. */
  error: z.string().nullable(),
});
export type Job = z.infer<typeof jobSchema>;
