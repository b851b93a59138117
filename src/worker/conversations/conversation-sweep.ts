import type { FailedCheck, Note } from "../../domain/conversations/conversation.ts";
import type { CommentPlace, Earlier } from "../../domain/conversations/facts.ts";
import { answeringNotes, unplacedNotes } from "../../domain/conversations/notes.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge } from "../../forges/forge.ts";
import { readFailedLogs } from "../../forges/feedback/failed-logs.ts";
import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import type { Service } from "../../lifecycle/service.ts";
import { dueConversations, laneOf, lookAtRuns, putOff, type DueConversation } from "../../store/conversations/due.ts";
import { readConversation } from "../../store/conversations/conversations.ts";
import { findRepositories, type RepositoryRecord } from "../../store/repositories/repositories.ts";
import { decideDue } from "./decide-conversation.ts";
import type { ConversationServices } from "./occasion.ts";

/** Interval, in ms, at which is looked for what is due: an answer comes so long after its turn at most. */
const everyMs = 1_000;
/**
 * Conversations that a worker looks after at once; of them those of one organization, and those of it on one host. A slow forge, whose logs
 * and threads are read for a minute and a half at most, holds up no other.
 */
const atOnce = { all: 32, ofOrganization: 8, ofLane: 4 };
const batch = 20;
/** Pause of a conversation that could not be read, in ms. */
const pauseMs = 30_000;
/** Pause of a conversation whose repository is not connected, in ms. */
const disconnectedMs = 600_000;
/** In so many ms is read what a review's comments are on, and in as many what they answer. */
const notesMs = 30_000;
/** Most checks whose logs are read, and the time limit in ms. */
const logs = { checks: 5, ms: 30_000 } as const;

/**
 * Makes the task that starts what was gathered in conversations once it is due, and answers for runs that ended. It
 * finds both in the database, so a worker that dies in between skips nothing.
 */
export function createConversationSweep(services: ConversationServices): Service {
  const { database, logger } = services;
  /** When each was looked after last, as `performance.now()`: what is still due waits for the next interval. */
  const lately = new Map<string, number>();
  return createClaimLoop<DueConversation>({
    atOnce: atOnce.all,
    everyMs,
    claim: (underWay) => {
      for (const [id, at] of lately) if (performance.now() - at >= everyMs) lately.delete(id);
      const without = [...underWay.map(({ id }) => id), ...lately.keys()];
      return dueConversations(database.pool, 1, { without, busy: busyOf(underWay) });
    },
    async work({ id }, stopping) {
      await lookAfter(services, id, stopping);
      lately.set(id, performance.now());
    },
    graceMs: 0,
    onClaimFailure: (error) => logger.error({ err: error }, "could not look after conversations; will retry"),
    onWorkFailure: (error, { id }) =>
      logger.error({ err: error, conversationId: id }, "could not look after a conversation; will retry"),
  });
}

/** The organizations, and their hosts, of which no more is looked after in addition to what is under way. */
function busyOf(underWay: readonly DueConversation[]): string[] {
  const full = (keyOf: (due: DueConversation) => string, most: number): string[] =>
    [...Map.groupBy(underWay, keyOf)].filter(([, of]) => of.length >= most).map(([key]) => key);
  return [...full(({ organizationId }) => organizationId, atOnce.ofOrganization), ...full(laneOf, atOnce.ofLane)];
}

/** Looks after what is due now, one after the other, at most 20. @returns how many were */
export async function sweepConversations(services: ConversationServices, stopping: AbortSignal): Promise<number> {
  const due = await dueConversations(services.database.pool, batch);
  for (const { id } of due) {
    if (stopping.aborted) break;
    await lookAfter(services, id, stopping);
  }
  return due.length;
}

async function lookAfter(services: ConversationServices, id: string, stopping: AbortSignal): Promise<void> {
  const { database, logger } = services;
  try {
    await look(services, id, stopping);
  } catch (error) {
    if (stopping.aborted) return;
    logger.warn({ err: error, conversationId: id }, "could not look after a conversation; will retry");
    await putOff(database.pool, id, pauseMs);
  }
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
  const due = checks !== null && checks.dueAt <= Date.now() ? checks : null;
  const read = due === null ? new Map<string, string>() : await readLogs(services, repository, due, stopping);
  const notes = unplacedNotes(found.state, Date.now());
  const places = await readPlaces(services, repository, { number: found.subject.number, notes }, stopping);
  const answering = answeringNotes(found.state, Date.now());
  const threads = await readThreads(services, repository, { number: found.subject.number, notes: answering }, stopping);
  await decideDue(services, found, repository, { logs: read, places, threads });
}

/** The places of comments that a review takes; comments without a readable place are taken all the same. */
function readPlaces(
  services: ConversationServices,
  repository: RepositoryRecord,
  { number, notes }: { readonly number: number; readonly notes: readonly Note[] },
  stopping: AbortSignal,
): Promise<Map<string, CommentPlace>> {
  return readOfNotes(services, repository, notes, stopping, ({ feedback }, address, note, signal) => {
    const { threadId, path, line } = note;
    return feedback?.readPlace?.(address, { number, threadId, path, line }, signal);
  });
}

/** Earlier comments in the threads of comments that a review takes. */
function readThreads(
  services: ConversationServices,
  repository: RepositoryRecord,
  { number, notes }: { readonly number: number; readonly notes: readonly Note[] },
  stopping: AbortSignal,
): Promise<Map<string, readonly Earlier[]>> {
  return readOfNotes(services, repository, notes, stopping, ({ feedback }, address, note, signal) => {
    const { commentId, threadId, path } = note;
    const subject = { kind: "pullRequest", number } as const;
    return feedback?.readThread(address, { subject, commentId, threadId, isOnLines: path !== null }, signal);
  });
}

/** Asks the forge about each of some comments, in 30 s for all; what it does not answer is missing. */
async function readOfNotes<Answer>(
  { forgeOf, logger }: ConversationServices,
  { url, organizationId }: RepositoryRecord,
  notes: readonly Note[],
  stopping: AbortSignal,
  ask: (
    forge: Forge,
    address: RepositoryAddress,
    note: Note,
    signal: AbortSignal,
  ) => Promise<Answer | null> | undefined,
): Promise<Map<string, Answer>> {
  const found = new Map<string, Answer>();
  const address = parseRepositoryUrl(url);
  if (notes.length === 0 || isAddressProblem(address)) return found;
  const forge = await forgeOf(address, organizationId);
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(notesMs)]);
  for (const note of notes) {
    try {
      const answer = await ask(forge, address, note, signal);
      if (answer != null) found.set(note.key, answer);
    } catch (error) {
      if (stopping.aborted) throw error;
      logger.info({ err: error, note: note.key }, "could not read what a comment is on, or answers");
    }
  }
  return found;
}

/** Ends of the logs of what failed; those that can't be read are missing, which is no reason to leave the check red. */
async function readLogs(
  { forgeOf, logger }: ConversationServices,
  { url, organizationId }: RepositoryRecord,
  { sha, failed }: { readonly sha: string; readonly failed: readonly FailedCheck[] },
  stopping: AbortSignal,
): Promise<Map<string, string>> {
  const ends = new Map<string, string>();
  const address = parseRepositoryUrl(url);
  if (failed.length === 0 || isAddressProblem(address)) return ends;
  const { feedback } = await forgeOf(address, organizationId);
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(logs.ms)]);
  for (const { kind, id } of failed.slice(0, logs.checks)) {
    try {
      const text = await readFailedLogs(feedback, address, { kind, id, sha }, signal);
      if (text !== null) ends.set(id, text);
    } catch (error) {
      if (stopping.aborted) throw error;
      logger.info({ err: error, check: id }, "could not read the log of a check");
    }
  }
  return ends;
}
