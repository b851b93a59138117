import { isConnectionError } from "../../database/connection-errors.ts";
import type { Database } from "../../database/database.ts";
import type { NewSession } from "../../domain/sessions/new-session.ts";
import { createJobs, type JobRecord, type JobToCreate } from "../automations/jobs.ts";
import { createBatcher } from "./batcher.ts";
import { createSessions, type CreatedSession, type SessionToCreate } from "./new-session.ts";

/** Creates sessions and jobs in batches: those that arrive while the database is busy are committed together. */
export interface BatchedInserts {
  /** Resolves when the session is committed. */
  createSession(organizationId: string, session: NewSession): Promise<CreatedSession>;
  /** Resolves when the job is committed. */
  createJob(job: JobToCreate): Promise<JobRecord>;
}

const options = {
  // One batch is prepared while the commit of another reaches the disk.
  atOnce: 2,
  most: 100,
  isOnesOwn: (error: unknown) => !isConnectionError(error),
} as const;

/** Makes the intake of a database. */
export function createBatchedInserts(database: Database): BatchedInserts {
  const session = createBatcher<SessionToCreate, CreatedSession>((all) => createSessions(database, all), options);
  const job = createBatcher<JobToCreate, JobRecord>((all) => createJobs(database, all), options);
  return {
    createSession: (organizationId, toCreate) => session({ organizationId, session: toCreate }),
    createJob: job,
  };
}
