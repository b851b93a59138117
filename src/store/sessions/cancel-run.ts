import type { Database } from "../../database/database.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { cancelPendingJob, getJob } from "../automations/jobs.ts";
import { cancelSession } from "./sessions.ts";

/**
 * Cancels a run as a whole: its job, if that has begun nothing, else each of its sessions that has not ended. Repeatable.
 * @throws NotFoundError
 * @throws ConflictError if the run has ended, or its sessions are just being created
 */
export async function cancelRun(database: Database, organizationId: string, id: string): Promise<void> {
  if (await cancelPendingJob(database, organizationId, id)) return;
  const job = await getJob(database, organizationId, id);
  if (job === null) throw new NotFoundError(`job ${id} was not found`);
  if (job.status === "running") throw new ConflictError(`job ${id} is just starting: cancel it again`, 1);
  const left = job.sessions.filter(({ status }) => !isFinal(status));
  if (left.length === 0) throw new ConflictError(`job ${id} has already ended`);
  for (const session of left) {
    await cancelSession(database, organizationId, session.id).catch((error: unknown) => {
      // It ended, or was deleted, meanwhile.
      if (!(error instanceof ConflictError) && !(error instanceof NotFoundError)) throw error;
    });
  }
}
