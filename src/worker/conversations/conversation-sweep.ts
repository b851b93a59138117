import type { FailedCheck, Note } from "../../domain/conversations/conversation.ts";
import type { CommentPlace } from "../../domain/conversations/facts.ts";
import { unplacedNotes } from "../../domain/conversations/notes.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../domain/repositories/repository.ts";
import { readFailedLogs } from "../../forges/failed-logs.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import { dueConversations, lookAtRuns, putOff } from "../../store/conversations/due.ts";
import { readConversation } from "../../store/conversations/conversations.ts";
import { findRepositories, type RepositoryRecord } from "../../store/repositories/repositories.ts";
import { decideDue } from "./decide-conversation.ts";
import type { ConversationServices } from "./occasion.ts";

/** Interval of passes, in ms: an answer comes so long after its turn at most. */
const everyMs = 1_000;
const batch = 20;
/** Pause of a conversation that could not be looked at, in ms. */
const pauseMs = 30_000;
/** Pause of a conversation whose repository is not connected, in ms. */
const disconnectedMs = 600_000;
/** In so many ms is read what a review's comments are on. */
const placesMs = 30_000;
/** Of so many checks the logs are read, in so many ms. */
const logs = { checks: 5, ms: 30_000 } as const;

/**
 * Makes the task that starts what was gathered in conversations once it is due, and answers for runs that ended. It finds both in the
 * database, so whoever dies between skips nothing.
 */
export function createConversationSweep(services: ConversationServices): Service {
  return createPeriodic({
    everyMs,
    pass: async (stopping) => void (await sweepConversations(services, stopping)),
    onFailure: (error) => services.logger.error({ err: error }, "could not look after conversations; will retry"),
  });
}

/** One pass. @returns how many conversations were looked at */
export async function sweepConversations(services: ConversationServices, stopping: AbortSignal): Promise<number> {
  const { database, logger } = services;
  const due = await dueConversations(database.pool, batch);
  for (const id of due) {
    if (stopping.aborted) break;
    try {
      await look(services, id, stopping);
    } catch (error) {
      if (stopping.aborted) break;
      logger.warn({ err: error, conversationId: id }, "could not look after a conversation; will retry");
      await putOff(database.pool, id, pauseMs);
    }
  }
  return due.length;
}

async function look(services: ConversationServices, id: string, stopping: AbortSignal): Promise<void> {
  const { database } = services;
  const found = await readConversation(database.pool, id);
  if (found === null) return;
  const [repository] = await findRepositories(database, found.organizationId, [found.repositoryId]);
  // It may be connected again.
  if (repository === undefined) return putOff(database.pool, id, disconnectedMs);
  await lookAtRuns(database.pool, id);
  const { checks } = found.state;
  const failed = checks !== null && checks.dueAt <= Date.now() ? checks.failed : [];
  const read = await readLogs(services, repository, failed, stopping);
  const notes = unplacedNotes(found.state, Date.now());
  const places = await readPlaces(services, repository, { number: found.subject.number, notes }, stopping);
  await decideDue(services, found, repository, { logs: read, places });
}

/** What comments are on that a review takes; those of which it can't be read are taken all the same. */
async function readPlaces(
  { forgeOf, logger }: ConversationServices,
  { url, organizationId }: RepositoryRecord,
  { number, notes }: { readonly number: number; readonly notes: readonly Note[] },
  stopping: AbortSignal,
): Promise<Map<string, CommentPlace>> {
  const found = new Map<string, CommentPlace>();
  const address = parseRepositoryUrl(url);
  if (notes.length === 0 || isAddressProblem(address)) return found;
  const { feedback } = await forgeOf(address, organizationId);
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(placesMs)]);
  for (const { key, threadId, path, line } of notes) {
    try {
      const place = await feedback?.readPlace?.(address, { number, threadId, path, line }, signal);
      if (place != null) found.set(key, place);
    } catch (error) {
      if (stopping.aborted) throw error;
      logger.info({ err: error, note: key }, "could not read what a comment is on");
    }
  }
  return found;
}

/** Ends of the logs of what failed; those that can't be read are missing, which is no reason to leave the check red. */
async function readLogs(
  { forgeOf, logger }: ConversationServices,
  { url, organizationId }: RepositoryRecord,
  failed: readonly FailedCheck[],
  stopping: AbortSignal,
): Promise<Map<string, string>> {
  const ends = new Map<string, string>();
  const address = parseRepositoryUrl(url);
  if (failed.length === 0 || isAddressProblem(address)) return ends;
  const { feedback } = await forgeOf(address, organizationId);
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(logs.ms)]);
  for (const { kind, id } of failed.slice(0, logs.checks)) {
    try {
      const text = await readFailedLogs(feedback, address, { kind, id }, signal);
      if (text !== null) ends.set(id, text);
    } catch (error) {
      if (stopping.aborted) throw error;
      logger.info({ err: error, check: id }, "could not read the log of a check");
    }
  }
  return ends;
}
