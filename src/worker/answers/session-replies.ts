import type { Database } from "../../database/database.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { sayWhatIsDue } from "../../store/answers/session-replies.ts";

/** Time between two passes, in ms. */
const everyMs = 1_000;

/**
 * Makes the task that reports sessions in the threads of Slack and issues of Linear that started them: in passes over
 * what each change of a status has marked in its own transaction.
 */
export function createSessionReplies({
  database,
  logger,
  publicUrl,
}: {
  readonly database: Database;
  readonly logger: Logger;
  /** Address of the web app. */
  readonly publicUrl: () => string;
}): Service {
  return createPeriodic({
    everyMs,
    async pass(stopping) {
      const linkOf = (sessionId: string): string => `${publicUrl()}/sessions/${sessionId}`;
      while (!stopping.aborted && (await sayWhatIsDue(database, linkOf)) > 0);
    },
    onFailure: (error) => logger.warn({ err: error }, "could not say what became of sessions; will retry"),
  });
}
