import { z } from "zod";

/** Statuses of a job. No current code writes `cancelled`; the specification has it. */
export const jobStatuses = ["pending", "running", "completed", "failed", "cancelled"] as const;
/** See `jobStatuses`. */
export type JobStatus = (typeof jobStatuses)[number];

/** The answer to a trigger: exactly the fields of the specification's queued job. */
export const queuedJobSchema = z.object({
  id: z.uuid(),
  task: z.literal("RunWorkflow"),
  status: z.enum(jobStatuses),
  priority: z.number().int(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `queuedJobSchema`. */
export type QueuedJob = z.infer<typeof queuedJobSchema>;

/** A job: one trigger of an automation, which starts a session. The web app calls it a run. */
export const jobSchema = queuedJobSchema.extend({
  automationId: z.uuid().nullable(),
  /** The session that the job started; null until then. */
  sessionId: z.uuid().nullable(),
  sessionHtmlUrl: z.url().nullable(),
  /** Why the job failed; null if it did not. */
  error: z.string().nullable(),
});
/** See `jobSchema`. */
export type Job = z.infer<typeof jobSchema>;
