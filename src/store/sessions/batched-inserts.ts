import { isConnectionError } from "../../database/connection-errors.ts";
import type { Database } from "../../database/database.ts";
import type { Received } from "../../domain/automations/trigger.ts";
import type { NewSession } from "../../domain/sessions/new-session.ts";
import { createJobs, type JobRecord, type JobToCreate } from "../automations/jobs.ts";
import { fireTriggers, type Fired, type Firing } from "../automations/firings.ts";
import { prepareReceived, receiveEvents, type ReceivedEvent, type Receiving } from "../automations/inbound-events.ts";
import { createBatcher } from "../batcher.ts";
import { createSessions, type CreatedSession, type SessionToCreate } from "./new-session.ts";

/**
 * Creates sessions and jobs, fires triggers, and takes in events, in batches: those that arrive while the database is busy are committed
 * together.
 */
export interface BatchedInserts {
  /** Resolves when the session is committed. */
  createSession(organizationId: string, session: NewSession): Promise<CreatedSession>;
  /** Resolves when the job is committed. */
  createJob(job: JobToCreate): Promise<JobRecord>;
  /**
   * Resolves when the delivery's outcome is committed; null: its trigger was changed, and nothing was written.
   * @throws UnavailableError if too much waits already
   */
  fire(firing: Firing): Promise<Fired | null>;
  /**
   * Resolves when the event is committed, with its outcome.
   * @throws UnavailableError if too much waits already
   */
  receive(event: ReceivedEvent): Promise<Received>;
}

const options = {
  // One batch is prepared while the commit of another reaches the disk.
  atOnce: 2,
  most: 100,
  isOnesOwn: (error: unknown) => !isConnectionError(error),
} as const;

/** Characters of deliveries in one statement, and of those that wait: each may have a million of payload. */
const weight = { of: ({ json }: Pick<Firing, "json">) => json.length, most: 4_000_000, mostWaiting: 64_000_000 };

/** Collects inserts into batches for a database. */
export function createBatchedInserts(database: Database): BatchedInserts {
  const session = createBatcher<SessionToCreate, CreatedSession>((all) => createSessions(database, all), options);
  const job = createBatcher<JobToCreate, JobRecord>((all) => createJobs(database, all), options);
  const fire = createBatcher<Firing, Fired | null>((all) => fireTriggers(database, all), { ...options, weight });
  const fireLocking = createBatcher<Firing, Fired | null>((all) => fireTriggers(database, all), {
    ...options,
    weight,
    // Two with a policy lock their automations: in one transaction, two nodes would wait for each other.
    most: 1,
    atOnce: 8,
  });
  const receive = createBatcher<Receiving, Received>((all) => receiveEvents(database, all), { ...options, weight });
  return {
    receive: (event) => receive(prepareReceived(event)),
    fire: (firing) => (firing.isPlain ? fire(firing) : fireLocking(firing)),
    createSession: (organizationId, toCreate) => session({ organizationId, session: toCreate }),
    createJob: job,
  };
}
