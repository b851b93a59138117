import type { Config } from "../../config/config.ts";
import type { Database } from "../../database/database.ts";
import { createPeriodic, type Periodic } from "../../lifecycle/periodic.ts";
import type { ObjectStore } from "../../objects/object-store.ts";
import type { Logger } from "../../observability.ts";
import { pruneAnswers } from "../../store/answers/sending.ts";
import { pruneCheckpoints } from "../../store/checkpoints/checkpoints.ts";
import { sweepObjects } from "../../store/checkpoints/objects.ts";
import { countMarkedDays } from "../../store/insight/count.ts";
import { pruneClients } from "../../store/oauth/clients.ts";
import { pruneGrants } from "../../store/oauth/grants.ts";
import { pruneGrantRequests } from "../../store/oauth/requests.ts";
import { pruneNotices } from "../../store/notices/deliveries.ts";
import { pruneReadMarks } from "../../store/notices/read-marks.ts";
import { pruneLogins } from "../../store/people/logins.ts";
import { pruneShares } from "../../store/people/share-links.ts";
import { pruneSignIns } from "../../store/people/users.ts";
import { boundArrivals, boundEvents, boundJobs } from "../../store/prune-by-size.ts";
import { pruneDiffs, pruneSessions } from "../../store/prune-sessions.ts";
import { pruneArrivals, pruneConversations, pruneEvents, pruneJobs, pruneReceivedKeys } from "../../store/prune.ts";
import { pruneWarmSandboxes } from "../../store/queue/warm-sandboxes.ts";
import { pruneWorkers } from "../../store/queue/worker-nodes.ts";
import { pruneAudit } from "../../store/requests/audit.ts";
import { pruneRequests } from "../../store/requests/idempotency.ts";
import { pruneFileRequests } from "../../store/sessions/file-requests.ts";
import { fillRepositoryOrder } from "../../store/sessions/repository-order.ts";
import { pruneDeliveries } from "../../store/webhooks/deliveries.ts";
import { removeUnusedCheckouts } from "../checkouts/remove-unused.ts";
import type { SharedCheckouts } from "../checkouts/shared-checkouts.ts";
import type { SessionFolders } from "../disk/session-folders.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";
import { maintainMirrors } from "./mirror-maintenance.ts";
import { pruneRecordings, pruneRecordingsOfDeleted } from "./prune-recordings.ts";
import { pruneWorkspaces } from "./prune-workspaces.ts";

/** Short, so that a server that restarts often is tidied too. */
const firstAfterMs = 5 * 60 * 1_000;
const everyMs = 60 * 60 * 1_000;

/** Dependencies of housekeeping. */
export interface Housekeeping {
  readonly database: Database;
  readonly logger: Logger;
  readonly objects: ObjectStore | null;
  readonly folders: SessionFolders;
  readonly mirrors: Mirrors;
  readonly checkouts: SharedCheckouts;
  readonly recordingsDirectory: string;
  readonly retention: Config["retention"];
  /** Whether this machine's disk has room for sessions. */
  readonly hasRoom: () => Promise<boolean>;
}

/**
 * Removes once what is past its retention. It may be interrupted at any point and continues the next time; any number of
 * workers may do it at the same time.
 * @param signal ends it after the task under way
 * @returns the number of removed things by kind; a kind that failed is logged and left out
 */
export async function keepHouse(house: Housekeeping, signal: AbortSignal): Promise<Record<string, number>> {
  const { database, logger, objects, folders, mirrors, checkouts, recordingsDirectory, retention, hasRoom } = house;
  const { mirrorDays: days, mirrorsBytes: maximumBytes, checkoutsBytes } = retention;
  const tasks: Record<string, () => Promise<number>> = {
    requests: () => pruneRequests(database, signal),
    logins: () => pruneLogins(database),
    shares: () => pruneShares(database),
    signIns: () => pruneSignIns(database),
    grants: () => pruneGrants(database),
    oauthRequests: () => pruneGrantRequests(database),
    // After the grants that keep them.
    oauthClients: () => pruneClients(database),
    // Before the workers, of which they are.
    warmSandboxes: () => pruneWarmSandboxes(database),
    workers: () => pruneWorkers(database),
    fileRequests: () => pruneFileRequests(database),
    audit: () => pruneAudit(database, retention.auditDays, signal),
    events: () => pruneEvents(database, retention.eventDays, signal),
    diffs: () => pruneDiffs(database, retention.diffDays, signal),
    figures: () => countMarkedDays(database, signal),
    // After the figures, which keep what they have of these.
    sessions: () => pruneSessions(database, retention.sessionDays, signal),
    jobs: () => pruneJobs(database, retention.jobDays, signal),
    largestJobs: () => boundJobs(database, retention.jobsBytes, signal),
    arrivals: () => pruneArrivals(database, retention.jobDays, signal),
    largestArrivals: () => boundArrivals(database, retention.jobsBytes, signal),
    conversations: () => pruneConversations(database, retention.jobDays, signal),
    receivedKeys: () => pruneReceivedKeys(database, signal),
    repositoryOrder: () => fillRepositoryOrder(database, signal),
    checkpoints: () => pruneCheckpoints(database, retention.workspaceDays),
    // After the checkpoints, which refer to objects.
    ...(objects !== null && { objects: () => sweepObjects(database, objects, signal) }),
    deliveries: () => pruneDeliveries(database, retention.deliveryDays, signal),
    notices: () => pruneNotices(database, retention.deliveryDays, signal),
    readMarks: () => pruneReadMarks(database, signal),
    answers: () => pruneAnswers(database, retention.deliveryDays, signal),
    workspaces: () => pruneWorkspaces({ database, logger, folders, mirrors }, retention.workspaceDays, signal),
    recordings: () => pruneRecordings(recordingsDirectory, retention.recordingDays, signal),
    recordingsOfDeleted: () => pruneRecordingsOfDeleted(database, recordingsDirectory, signal),
    checkouts: () => removeUnusedCheckouts({ checkouts, logger }, { days, maximumBytes: checkoutsBytes }, signal),
    // After the workspaces, whose clones borrow from mirrors.
    mirrors: async () =>
      (await maintainMirrors({ mirrors, folders, logger }, { days, maximumBytes, hasRoom }, signal)).removed,
    // Last, because the first time in an existing database it counts all events.
    mostEvents: () => boundEvents(database, { all: retention.eventsBytes, each: retention.sessionEventsBytes }, signal),
  };
  const counts: Record<string, number> = {};
  for (const [name, task] of Object.entries(tasks)) {
    if (signal.aborted) break;
    try {
      counts[name] = await task();
    } catch (error) {
      // Nothing depends on this pass: the next one tries again.
      logger.warn({ err: error, what: name }, "could not remove expired data; will retry");
    }
  }
  return counts;
}

/** Makes hourly housekeeping; `now` begins it at once. */
export function createHousekeeping(house: Housekeeping): Periodic {
  return createPeriodic({
    pass: async (stopping) => house.logger.debug(await keepHouse(house, stopping), "removed expired data"),
    firstAfterMs,
    everyMs,
    onFailure: (error) => house.logger.warn({ err: error }, "could not tidy; will retry"),
  });
}
