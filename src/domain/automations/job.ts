import { z } from "zod";
import { sessionStatuses } from "../sessions/status.ts";

/**
 * Statuses of a job, as the API's specification has them. `cancelled`: it started no session, since its trigger's condition or
 * concurrency did not let it, or a newer trigger took its place; or its automation's gate ended the session before the agent began.
 */
export const jobStatuses = ["pending", "running", "completed", "failed", "cancelled"] as const;
/** See `jobStatuses`. */
export type JobStatus = (typeof jobStatuses)[number];

/** A job's task, by the noun of the path that triggered it: `/automation/…/trigger` or `/agent/…/trigger`. */
export const jobTasks = ["RunWorkflow", "RunAgent"] as const;
/** See `jobTasks`. */
export type JobTask = (typeof jobTasks)[number];

/** The answer to a trigger: exactly the fields of the specification's queued job. */
export const queuedJobSchema = z.object({
  id: z.uuid(),
  task: z.enum(jobTasks),
  status: z.enum(jobStatuses),
  priority: z.number().int(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `queuedJobSchema`. */
export type QueuedJob = z.infer<typeof queuedJobSchema>;

/** States of a run as a whole. */
export const runStatuses = ["pending", "running", "waiting", "completed", "failed", "cancelled"] as const;
/** See `runStatuses`. */
export type RunStatus = (typeof runStatuses)[number];

/** A session of a run, as its job shows it. */
export const runSessionSchema = z.object({
  id: z.uuid(),
  status: z.enum(sessionStatuses),
  repositories: z.array(z.object({ id: z.uuid(), name: z.string(), url: z.string() })),
  htmlUrl: z.url(),
});

/** A job: the record of one trigger of an automation. With the session that it creates, it is one run of the automation. */
export const jobSchema = queuedJobSchema.extend({
  automationId: z.uuid().nullable(),
  /** The session that the job started, of several the first; null until then. */
  sessionId: z.uuid().nullable(),
  sessionHtmlUrl: z.url().nullable(),
  /** Why the job failed; null if it did not. */
  error: z.string().nullable(),
  runStatus: z.enum(runStatuses).nullable().default(null).meta({
    description:
      "The state of the run as a whole, which follows from those of its sessions. Null: of a node of the version before.",
  }),
  sessions: z.array(runSessionSchema).default([]).meta({
    description: "All sessions of the run: of an automation that fans out one for each repository.",
  }),
});
/** See `jobSchema`. */
export type Job = z.infer<typeof jobSchema>;
