import { isConnectionError } from "../../database/connection-errors.ts";
import type { Database } from "../../database/database.ts";
import type { NewSession } from "../../domain/new-session.ts";
import { createJobs, type JobRecord, type JobToCreate } from "../automations/jobs.ts";
import { createBatch } from "./batch.ts";
import { createSessions, type CreatedSession, type SessionToCreate } from "./new-session.ts";

/** What is accepted while the database is busy with what came before goes into it together, in one commit. */
export interface Intake {
  /** Settles once the session is committed. */
  createSession(organizationId: string, session: NewSession): Promise<CreatedSession>;
  /** Settles once the job is committed. */
  createJob(job: JobToCreate): Promise<JobRecord>;
}

const options = {
  // One is prepared while another's commit reaches the disk.
  atOnce: 2,
  most: 100,
  isOnesOwn: (error: unknown) => !isConnectionError(error),
} as const;

export function createIntake(database: Database): Intake {
  const session = createBatch<SessionToCreate, CreatedSession>((all) => createSessions(database, all), options);
  const job = createBatch<JobToCreate, JobRecord>((all) => createJobs(database, all), options);
  return {
    createSession: (organizationId, toCreate) => session({ organizationId, session: toCreate }),
    createJob: job,
  };
}
