import type { Database } from "../../database/database.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import { createService, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { removeWorker, reportWorker, type ReportedWorker } from "../../store/queue/worker-nodes.ts";

/** Well within the time after which a worker without a heartbeat does not count (`countedFor`). */
const everyMs = 15_000;

/** Dependencies of a worker's heartbeat. */
export interface HeartbeatOptions {
  readonly database: Database;
  readonly logger: Logger;
  /** Id of the worker. */
  readonly id: string;
  /**
   * The worker's current abilities, and its machine's state: a key may have been added since, or a program installed.
   */
  readonly describe: () => Promise<Omit<ReportedWorker, "id">>;
  /** Milliseconds between two heartbeats, if they are not the usual 15,000. */
  readonly everyMs?: number;
}

/**
 * Makes the heartbeat that lists this worker, with its agents, among the workers of the fleet. `start` settles when the worker
 * is listed, and throws if it can't be; `stop` takes it off the list, and no heartbeat puts it back.
 */
export function createHeartbeat({ database, logger, id, describe, ...options }: HeartbeatOptions): Service {
  const report = async (): Promise<void> => reportWorker(database, { id, ...(await describe()) });
  const intervalMs = options.everyMs ?? everyMs;
  const reports = createPeriodic({
    pass: report,
    everyMs: intervalMs,
    firstAfterMs: intervalMs,
    onFailure: (error) => logger.warn({ err: error }, "could not send the worker's heartbeat"),
  });
  return createService({
    async start() {
      await report();
      await reports.start();
    },
    async stop() {
      await reports.stop();
      await removeWorker(database, id);
    },
  });
}
