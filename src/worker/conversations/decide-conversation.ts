import { isConflictOfTransactions } from "../../database/connection-errors.ts";
import type { Database, Queryable } from "../../database/database.ts";
import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import { limitsWith, type ConversationLimits, type FailedCheck } from "../../domain/conversations/conversation.ts";
import { decide, happeningKey } from "../../domain/conversations/decide.ts";
import type { ConversationFacts } from "../../domain/conversations/facts.ts";
import { happeningOf, type Happening, type Where } from "../../domain/conversations/happening.ts";
import { findMention } from "../../domain/conversations/mention.ts";
import type { Calling } from "../../domain/repositories/calling.ts";
import { ConflictError, UnavailableError } from "../../domain/errors/errors.ts";
import { newId } from "../../domain/fields/new-id.ts";
import { answersChannel } from "../../store/answers/answers.ts";
import { checksToldSince, isAskedAgainSince, isDismissedSince } from "../../store/automations/told-since.ts";
import type { ClaimedEvent, Steered } from "../../store/automations/claimed-events.ts";
import { getAutomation } from "../../store/automations/automations.ts";
import { decidedBefore, startedByMacro } from "../../store/conversations/items.ts";
import {
  findPlace,
  isBeingOpened,
  isBeingPushed,
  lockConversation,
  type ConversationPlace,
  type LockedConversation,
} from "../../store/conversations/conversations.ts";
import { readEnds } from "../../store/conversations/ends.ts";
import { lockWaitingMessages, notifyWithdrawn } from "../../store/sessions/messages.ts";
import { readFacts } from "../../store/conversations/facts.ts";
import type { RepositoryRecord } from "../../store/repositories/repositories.ts";
import { notifyChange } from "../../store/sessions/transition.ts";
import { ofPushedCommit } from "./checked-commit.ts";
import { followState } from "./follow-state.ts";
import { unasked, type ConversationServices, type DecidedLocked, type Occasion } from "./occasion.ts";
import { askFirst, commitUrlOf } from "./ask-first.ts";
import { carryOut } from "./carry-out.ts";

/**
 * Decides the effects of an event in its conversation.
 * @param repository the event's, which is connected
 * @param calling the event's connection's mention and trusted bots
 * @returns null if it has no conversation
 * @throws UnavailableError if the forge does not answer who may write: the event is to be decided again
 */
export async function decideInConversation(
  shared: ConversationServices,
  event: ClaimedEvent,
  repository: RepositoryRecord,
  calling: Calling,
): Promise<Steered | null> {
  const services = { ...shared, limits: limitsWith(shared.limits, calling) };
  const about = happeningIn(event);
  if (about === null) return null;
  const { database } = services;
  const { organizationId } = event;
  const place = await findPlace(database.pool, { organizationId, repositoryId: repository.id }, about.where);
  if (place === null) {
    await waitForPush(services, organizationId, repository, about.happening);
    return null;
  }
  await waitForPullRequest(services, place, about.happening);
  const followed = await followState(services, place, repository, about.happening, event.postponed);
  const happening = await ofPushedCommit(services, place, repository, followed);
  const answered = happening.type === "said" ? await askFirst(services, event, place, repository, happening) : unasked;
  const asked = { ...answered, commitUrl: await commitUrlOf(services, repository) };
  const placed = happening.type === "said" ? { ...happening, ...asked.place, thread: asked.thread } : happening;
  return happen(services, { place, repository, happening: placed, asked, event });
}

/**
 * A quick check may end before the pull request of its commit is recorded, whose page shows it.
 * @throws UnavailableError if that is about to be: the event is to be decided again
 */
async function waitForPush(
  { database }: ConversationServices,
  organizationId: string,
  { id: repositoryId }: RepositoryRecord,
  happening: Happening,
): Promise<void> {
  if (happening.type !== "checks") return;
  if (await isBeingPushed(database.pool, { organizationId, repositoryId }, happening.sha))
    throw new UnavailableError("the pull request of its commit is not recorded yet");
}

/**
 * A comment on a pull request may come before the pull request is recorded: its forge's answer is late, or its worker
 * died.
 * @throws UnavailableError if that is about to be: the event is to be decided again
 */
async function waitForPullRequest(
  { database }: ConversationServices,
  place: ConversationPlace,
  happening: Happening,
): Promise<void> {
  if (happening.type !== "said" || happening.mark === null) return;
  if (await isBeingOpened(database.pool, place, happening.mark.sessionId))
    throw new UnavailableError("the pull request is not recorded yet");
}

/** Processes a conversation in which something is due, or a run has ended. */
export async function decideDue(
  services: ConversationServices,
  place: ConversationPlace,
  repository: RepositoryRecord,
  known: Pick<ConversationFacts, "logs" | "places" | "threads">,
): Promise<void> {
  const asked = { ...unasked, ...known, commitUrl: await commitUrlOf(services, repository) };
  await happen(services, { place, repository, happening: { type: "tick" }, asked, event: null });
}

function happeningIn({ connectionId, name, payload }: ClaimedEvent): { where: Where; happening: Happening } | null {
  if (connectionId !== null) return happeningOf(payload as unknown as ForgeEvent);
  if (name !== "pullRequest.conflicted") return null;
  const { pullRequest } = payload as {
    readonly pullRequest?: { readonly number?: unknown; readonly head?: { readonly sha?: unknown } };
  };
  const number = pullRequest?.number;
  if (typeof number !== "number") return null;
  const sha = pullRequest?.head?.sha;
  return {
    where: { kind: "pullRequest", number },
    happening: { type: "conflicted", sha: typeof sha === "string" ? sha : null },
  };
}

/** Decides in one transaction, under the conversation's lock, with all that comes of it. */
async function happen(services: ConversationServices, occasion: Occasion): Promise<Steered> {
  const { database } = services;
  const isMacro = macroIn(occasion.happening, services.limits) !== null;
  const done = await inTransaction(database, async (transaction) => {
    const first = await decideLocked(services, transaction, occasion, false);
    // Most deliveries leave nothing, and no row.
    const isKept = first.decided.takes !== null || first.decided.conversation !== first.locked.state;
    const last = first.locked.id === null && isKept ? await decideLocked(services, transaction, occasion, true) : first;
    const carried =
      last.before === null
        ? await carryOut(services, transaction, occasion, last)
        : { changed: [], withdrawn: [], refused: null };
    const { locked, key } = last;
    const { event } = occasion;
    const isRun = isMacro && locked.id !== null && key !== null && event !== null;
    return { ...last, ...carried, calledId: isRun ? await startedByMacro(transaction, locked.id, key, event) : null };
  });
  for (const sessionId of done.changed) notifyChange(database, sessionId, "queued");
  for (const { sessionId, isAtRest } of done.withdrawn) notifyWithdrawn(database, sessionId, isAtRest);
  const { effects, reason } = done.decided;
  if (effects.some(({ type }) => type === "macro")) database.notify("offstage_work", "job");
  if (effects.some(({ type }) => type === "answer" || type === "react")) database.notify(answersChannel, "");
  const why = done.before === null ? (reason ?? done.refused) : done.before.reason;
  // The run of an automation is no work of the conversation's session.
  const sessionId = isMacro || why !== null ? null : (done.changed[0] ?? done.locked.sessionId);
  return { outcome: why === null ? "fired" : "filtered", reason: why, sessionId, calledId: done.calledId };
}

/** The macro by which it calls an automation; null: it calls none. */
function macroIn(happening: Happening, { mention }: Pick<ConversationLimits, "mention">): string | null {
  return happening.type === "said" ? (findMention(happening.body, mention)?.macro ?? null) : null;
}

/**
 * The automation that an event calls by its macro, whether or not it may; null: it calls none.
 * @param calling the event's connection's mention and trusted bots
 */
export async function calledAutomation(
  { database, limits }: Pick<ConversationServices, "database" | "limits">,
  event: ClaimedEvent,
  calling: Calling,
): Promise<string | null> {
  const about = happeningIn(event);
  const macro = about === null ? null : macroIn(about.happening, limitsWith(limits, calling));
  if (macro === null) return null;
  return (await getAutomation(database, event.organizationId, macro.toLowerCase()))?.id ?? null;
}

/** @throws UnavailableError while the session is being cancelled, or if others' transactions had it rolled back, which both passes */
async function inTransaction<T>(database: Database, work: (transaction: Queryable) => Promise<T>): Promise<T> {
  try {
    return await database.transaction(work);
  } catch (error) {
    if (error instanceof ConflictError) throw new UnavailableError(error.message, undefined, { cause: error });
    if (isConflictOfTransactions(error))
      throw new UnavailableError("others changed the same at the same moment", undefined, { cause: error });
    throw error;
  }
}

async function decideLocked(
  { limits, publicUrl }: ConversationServices,
  transaction: Queryable,
  { place, happening, asked, event }: Occasion,
  isKept: boolean,
): Promise<DecidedLocked> {
  const locked = await lockConversation(transaction, place, isKept);
  const sha = happening.type === "pushed" || happening.type === "checks" ? happening.sha : null;
  const unkeyed = await readFacts(transaction, locked, { key: null, sha });
  const takenBy = happeningKey(happening, unkeyed.session);
  const known = takenBy === null ? unkeyed : await readFacts(transaction, locked, { key: takenBy, sha });
  const before =
    event === null ? null : await decidedBefore(transaction, locked.id, { key: takenBy, eventId: event.id });
  const urls = {
    commit: asked.commitUrl,
    session: (id: string) => `${publicUrl()}/sessions/${id}`,
  };
  const facts: ConversationFacts = {
    ...known,
    now: Date.now(),
    newId,
    subject: place.subject,
    isDismissed:
      happening.type === "said" && happening.asksForChanges && event !== null
        ? await isDismissedSince(transaction, event)
        : false,
    isAskedAgain: happening.type === "dismissed" && event !== null && (await isAskedAgainSince(transaction, event)),
    waitingRuns: happening.type === "dismissed" ? await lockWaitingRuns(transaction, locked) : new Set(),
    endedLater: happening.type === "checks" && event !== null ? await endedSince(transaction, event) : [],
    isOwn: asked.isOwn,
    mayWrite: asked.mayWrite,
    isMacro: () => asked.macro !== null,
    logs: asked.logs,
    places: asked.places,
    threads: asked.threads,
    ends: locked.state.runs.length === 0 ? new Map() : await readEnds(transaction, locked, urls),
  };
  return { locked, decided: decide(locked.state, happening, facts, limits), key: takenBy, before };
}

/** The runs whose message no turn has taken. The session is locked after the conversation, as when a message is added. */
async function lockWaitingRuns(
  transaction: Queryable,
  { organizationId, sessionId, state: { runs } }: LockedConversation,
): Promise<ReadonlySet<string>> {
  const ids = runs.flatMap(({ id, review }) => (review === undefined ? [] : [id]));
  if (sessionId === null || ids.length === 0) return new Set();
  return lockWaitingMessages(transaction, organizationId, sessionId, ids);
}

/** Read while the conversation is locked: later deliveries are decided after this. */
function endedSince(transaction: Queryable, event: ClaimedEvent): Promise<FailedCheck[]> {
  // The commit of the delivery: that of the happening may be another one, of which it is a merge.
  const { checks } = event.payload as unknown as ForgeEvent;
  return checks === undefined ? Promise.resolve([]) : checksToldSince(transaction, event, checks.sha);
}
