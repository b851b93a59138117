import type { Database } from "../../database/database.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { reviewSilences } from "../../store/automations/silences.ts";

/** Time between two looks, in ms: short compared with the grace that a tick has. */
const everyMs = 30_000;

/** Makes the task that reports automations that were expected to fire and did not. Any number of workers may run it. */
export function createSilenceWatch({
  database,
  logger,
}: {
  readonly database: Database;
  readonly logger: Logger;
}): Service {
  return createPeriodic({
    everyMs,
    pass: async () => {
      const { silent, recovered } = await reviewSilences(database);
      if (silent > 0) logger.warn({ automations: silent }, "automations were expected to fire and did not");
      if (recovered > 0) logger.info({ automations: recovered }, "automations are silent no more");
    },
    onFailure: (error) => logger.warn({ err: error }, "could not look for silent automations; will retry"),
  });
}
