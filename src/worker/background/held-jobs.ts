import type { Database } from "../../database/database.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { releaseHeldJobs, supersededSessions } from "../../store/automations/firings.ts";
import { cancelSession } from "../../store/sessions/sessions.ts";

/** Time between two passes, in ms: so much later a job begins that waited for quiet or for another. */
const everyMs = 1_000;

/** Makes the task that ends runs whose place a newer trigger took, and lets held jobs go once nothing holds them. */
export function createHeldJobs({ database, logger }: { database: Database; logger: Logger }): Service {
  return createPeriodic({
    everyMs,
    pass: async () => void (await releaseJobs(database, logger)),
    onFailure: (error) => logger.warn({ err: error }, "could not let held jobs go; will retry"),
  });
}

/**
 * One pass.
 * @returns how many jobs were let go
 */
export async function releaseJobs(database: Database, logger: Logger): Promise<number> {
  for (const { id, organizationId } of await supersededSessions(database)) {
    await cancelSession(database, organizationId, id).catch((error: unknown) => {
      // It ended, or was deleted, meanwhile.
      if (error instanceof ConflictError || error instanceof NotFoundError) return;
      logger.warn(
        { err: error, sessionId: id },
        "could not cancel a session whose place a newer trigger took; will retry",
      );
    });
  }
  const released = await releaseHeldJobs(database);
  if (released > 0) database.notify("offstage_work", "job");
  return released;
}
