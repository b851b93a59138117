import type { Database } from "../../database/database.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { countMarkedDays } from "../../store/insight/count.ts";

const everyMs = 10_000;
/** A round that took long is followed by a pause so many times as long: counting takes at most a tenth of the database's time. */
const pauses = 9;

/** Makes the task that counts figures again of which something has changed. Any number of workers may have it; one at a time counts. */
export function createInsightCount({
  database,
  logger,
}: {
  readonly database: Database;
  readonly logger: Logger;
}): Service {
  let notBefore = 0;
  return createPeriodic({
    everyMs,
    pass: async (stopping) => {
      const began = performance.now();
      if (began < notBefore) return;
      await countMarkedDays(database, stopping);
      const took = performance.now() - began;
      notBefore = began + took * (1 + pauses);
    },
    onFailure: (error) => logger.warn({ err: error }, "could not count figures; will retry"),
  });
}
