import type { Database } from "../database/database.ts";
import type { Logger } from "../observability.ts";
import { pruneAudit } from "../store/audit.ts";
import { pruneCheckpoints } from "../store/checkpoints.ts";
import { pruneDeliveries } from "../store/deliveries.ts";
import { pruneRequests } from "../store/idempotency.ts";
import { pruneLogins } from "../store/logins.ts";
import { pruneWorkers } from "../store/worker-nodes.ts";
import { pruneSignIns } from "../store/users.ts";

const everyMs = 60 * 60 * 1_000;

/** Forgets, once an hour, what has expired: answers kept for repeated requests, sign-ins, and old lines of the audit log. @returns what stops it */
export function startHousekeeping(
  database: Database,
  logger: Logger,
  {
    auditDays,
    workspaceDays,
    deliveryDays,
    prune,
  }: {
    readonly auditDays: number;
    readonly workspaceDays: number;
    readonly deliveryDays: number;
    readonly prune: () => Promise<number>;
  },
): () => void {
  const tidy = async (): Promise<void> => {
    try {
      const requests = await pruneRequests(database);
      const logins = await pruneLogins(database);
      const audit = await pruneAudit(database, auditDays);
      await pruneSignIns(database);
      const workspaces = await prune();
      const checkpoints = await pruneCheckpoints(database, workspaceDays);
      const deliveries = await pruneDeliveries(database, deliveryDays);
      await pruneWorkers(database);
      logger.debug({ requests, logins, audit, workspaces, checkpoints, deliveries }, "forgot what has expired");
    } catch (error) {
      // Nothing depends on it: the next hour will do.
      logger.warn({ err: error }, "could not forget what has expired");
    }
  };
  const timer = setInterval(() => void tidy(), everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
