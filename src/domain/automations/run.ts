import type { SessionStatus } from "../sessions/status.ts";
import type { JobStatus, RunStatus } from "./job.ts";

/** Repositories of an automation that fans out, and so sessions of one run. */
export const fanOutLimit = 100;

/**
 * The state of a run, which follows from its job and its sessions. It goes on as long as any session does, and waits if
 * no other does more; once all have ended, it is failed if one failed, else cancelled if one was cancelled. A run whose
 * sessions were deleted is what its job is.
 *
 * | Job | Sessions | Run |
 * |---|---|---|
 * | pending | | pending |
 * | running | | running |
 * | failed, cancelled | | the same |
 * | completed | none | completed |
 * | completed | any draft, queued or running | running |
 * | completed | else any waiting | waiting |
 * | completed | else any failed | failed |
 * | completed | else any cancelled | cancelled |
 * | completed | all completed | completed |
 */
export function runStatusOf(job: JobStatus, sessions: readonly SessionStatus[]): RunStatus {
  if (job !== "completed") return job;
  const has = (...statuses: readonly SessionStatus[]): boolean => sessions.some((each) => statuses.includes(each));
  if (has("draft", "queued", "running")) return "running";
  if (has("waiting")) return "waiting";
  if (has("failed")) return "failed";
  return has("cancelled") ? "cancelled" : "completed";
}
