import type { Database, Queryable } from "../../database/database.ts";
import type { ForgeReply, ReplyTarget } from "../../domain/automations/reply-target.ts";
import type { NewSession } from "../../domain/sessions/new-session.ts";
import { noteForgeReply, noteReplyTarget } from "../answers/session-replies.ts";
import { completeJob, holdJob, type ClaimedJob } from "../automations/jobs.ts";
import { recordDeliveredRepository } from "../automations/delivered-runs.ts";
import { insertSessions } from "./new-session.ts";
import { notifyChange } from "./transition.ts";

/** Sessions of one statement: each may have a prompt and an event of a megabyte. */
const atOnce = 5;

/** The origin of a run's event. */
export interface RunOrigin {
  /** The thread of Slack or issue of Linear; null: none that takes answers back. */
  readonly replyTarget: ReplyTarget | null;
  /** The event, if a forge delivered it; null: none did. */
  readonly delivered: {
    readonly repository: { readonly id: string };
    readonly connectionId: string;
    /** Where the result is reported; null: nowhere. */
    readonly reply: ForgeReply | null;
  } | null;
}

/**
 * Creates the sessions of a job's run and completes the job, all in one transaction: a worker that is killed meanwhile
 * has created none, and one that lost the claim creates none. A job that has a session already, since it was claimed by
 * a worker that died, gets no others.
 * @returns ids of the run's sessions; none if the claim was lost
 */
export async function createRun(
  database: Database,
  claim: ClaimedJob,
  sessions: readonly NewSession[],
  origin: RunOrigin,
): Promise<readonly string[]> {
  const ids = await database.transaction(async (transaction) => {
    const before = await holdJob(transaction, claim);
    if (before === null) return [];
    const all = before.length === 0 ? await insertAll(transaction, claim, sessions) : before;
    if (all.length === 0) throw new Error(`job ${claim.id} has no session to create`);
    await complete(transaction, claim, all, origin);
    return all;
  });
  for (const id of ids) notifyChange(database, id, "queued");
  return ids;
}

/**
 * Completes a job that has its sessions already: a worker of the version before was killed after it had created the session.
 * @returns false if it has none, or the claim was lost
 */
export function resumeRun(database: Database, claim: ClaimedJob, origin: RunOrigin): Promise<boolean> {
  return database.transaction(async (transaction) => {
    const sessions = (await holdJob(transaction, claim)) ?? [];
    if (sessions.length === 0) return false;
    await complete(transaction, claim, sessions, origin);
    return true;
  });
}

async function insertAll(
  transaction: Queryable,
  claim: ClaimedJob,
  sessions: readonly NewSession[],
): Promise<readonly string[]> {
  const { organizationId } = claim;
  let created = 0;
  for (let from = 0; from < sessions.length; from += atOnce) {
    const some = sessions.slice(from, from + atOnce).map((session) => ({ organizationId, session }));
    created += (await insertSessions(transaction, some)).size;
  }
  if (created === sessions.length) return sessions.map(({ id }) => id);
  // A worker of the version before, which has lost the job, created its session at this moment: it does not hold the job meanwhile.
  return (await holdJob(transaction, claim)) ?? [];
}

async function complete(
  transaction: Queryable,
  claim: ClaimedJob,
  sessions: readonly string[],
  { replyTarget, delivered }: RunOrigin,
): Promise<void> {
  for (const sessionId of sessions) {
    if (replyTarget !== null) await noteReplyTarget(transaction, { jobId: claim.id, sessionId, target: replyTarget });
    if (delivered !== null) await recordDelivery(transaction, claim, sessionId, delivered);
  }
  const [first] = sessions;
  if (first !== undefined) await completeJob(transaction, claim, first);
}

/** A session that does not work on the event's repository has nothing to say or to read there. */
async function recordDelivery(
  transaction: Queryable,
  { id: jobId }: ClaimedJob,
  sessionId: string,
  { repository, connectionId, reply }: NonNullable<RunOrigin["delivered"]>,
): Promise<void> {
  const { rowCount } = await transaction.query(
    "select from session_repository where session_id = $1 and repository_id = $2",
    [sessionId, repository.id],
  );
  if (rowCount === 0) return;
  await recordDeliveredRepository(transaction, sessionId, { repositoryId: repository.id, connectionId });
  if (reply !== null) await noteForgeReply(transaction, { jobId, sessionId, ...reply });
}
