import { randomUUID } from "node:crypto";
import type { Database, Queryable } from "../../database/database.ts";
import { idScopesOf } from "../../domain/answers/answer.ts";
import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import {
  limitsWith,
  type ConversationLimits,
  type ConversationSubject,
} from "../../domain/conversations/conversation.ts";
import { decide, keyOf } from "../../domain/conversations/decide.ts";
import type { Decided, Effect, Facts } from "../../domain/conversations/facts.ts";
import { happeningOf, type Happening, type Said, type Where } from "../../domain/conversations/happening.ts";
import { findMention } from "../../domain/conversations/mention.ts";
import { needsRights } from "../../domain/conversations/sayings.ts";
import type { Calling } from "../../domain/repositories/calling.ts";
import { newSession } from "../../domain/sessions/new-session.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../domain/repositories/repository.ts";
import { ConflictError, UnavailableError } from "../../domain/errors/errors.ts";
import { answersChannel, isOwnComment, queueAnswer } from "../../store/answers/answers.ts";
import type { ClaimedEvent, Steered } from "../../store/automations/inbound-events.ts";
import {
  decidedBefore,
  findPlace,
  isBeingPushed,
  lockConversation,
  readEnds,
  readFacts,
  saveConversation,
  takeItem,
  type ConversationPlace,
  type LockedConversation,
} from "../../store/conversations/conversations.ts";
import type { RepositoryRecord } from "../../store/repositories/repositories.ts";
import { insertSessions } from "../../store/sessions/new-session.ts";
import { addMessageIn } from "../../store/sessions/sessions.ts";
import { notifyChange } from "../../store/sessions/transition.ts";
import type { Templates } from "../../templates/templates.ts";
import { askForge, type ForgeQuestions } from "./ask-forge.ts";
import { followState } from "./follow-state.ts";
import { findMacro, startMacro, type CalledMacro } from "./macros.ts";

/** What deciding about conversations needs. */
export interface ConversationServices extends ForgeQuestions {
  readonly database: Database;
  readonly templates: Templates;
  readonly limits: ConversationLimits;
  /** The web app's address, without a trailing slash. */
  readonly publicUrl: () => string;
  /** Whether agents run in a sandbox. */
  readonly sandboxed: boolean;
}

/**
 * Decides what comes of an event in the conversation that it belongs to.
 * @param repository the event's, which is connected
 * @param calling who calls Offstage by what, as the event's connection says
 * @returns null if it belongs to none
 * @throws UnavailableError if the forge does not answer who may write: the event is to be decided again
 */
export async function decideInConversation(
  shared: ConversationServices,
  event: ClaimedEvent,
  repository: RepositoryRecord,
  calling: Calling,
): Promise<Steered | null> {
  const services = { ...shared, limits: limitsWith(shared.limits, calling) };
  const told = toldBy(event);
  if (told === null) return null;
  const { database } = services;
  const { organizationId } = event;
  const place = await findPlace(database.pool, { organizationId, repositoryId: repository.id }, told.where);
  if (place === null) {
    await waitForPush(services, organizationId, repository, told.happening);
    return null;
  }
  const happening = await followState(services, place, repository, told.happening);
  const answered = happening.type === "said" ? await askFirst(services, event, place, repository, happening) : unasked;
  const asked = { ...answered, commitUrl: await commitUrlOf(services, repository) };
  return happen(services, { place, repository, happening, asked, event });
}

/**
 * A quick check may fail before the pull request of its commit is recorded.
 * @throws UnavailableError if that is about to be: the event is to be decided again
 */
async function waitForPush(
  { database }: ConversationServices,
  organizationId: string,
  { id: repositoryId }: RepositoryRecord,
  happening: Happening,
): Promise<void> {
  if (happening.type !== "checks" || happening.outcome === "passed") return;
  if (await isBeingPushed(database.pool, { organizationId, repositoryId }, happening.sha))
    throw new UnavailableError("the pull request of its commit is not recorded yet");
}

/** Looks after a conversation in which something is due, or a run has ended. */
export async function decideDue(
  services: ConversationServices,
  place: ConversationPlace,
  repository: RepositoryRecord,
  logs: Facts["logs"],
): Promise<void> {
  const asked = { ...unasked, logs, commitUrl: await commitUrlOf(services, repository) };
  await happen(services, { place, repository, happening: { type: "tick" }, asked, event: null });
}

/** What is asked outside of the transaction, since it takes time. */
interface Asked extends Pick<Facts, "isOwn" | "mayWrite" | "logs"> {
  readonly macro: CalledMacro | null;
  readonly commitUrl: (sha: string) => string;
}

const unasked = { isOwn: false, mayWrite: null, logs: new Map<string, string>(), macro: null } as const;

function toldBy({ connectionId, name, payload }: ClaimedEvent): { where: Where; happening: Happening } | null {
  if (connectionId !== null) return happeningOf(payload as unknown as ForgeEvent);
  if (name !== "pullRequest.conflicted") return null;
  const { pullRequest } = payload as { readonly pullRequest?: { readonly number?: unknown } };
  const number = pullRequest?.number;
  return typeof number === "number"
    ? { where: { kind: "pullRequest", number }, happening: { type: "conflicted" } }
    : null;
}

async function askFirst(
  services: ConversationServices,
  event: ClaimedEvent,
  place: ConversationPlace,
  repository: RepositoryRecord,
  said: Said,
): Promise<Omit<Asked, "commitUrl">> {
  const { database, limits } = services;
  const { organizationId, repositoryId, subject } = place;
  const { commentId, body } = said;
  const isOwn =
    commentId !== null &&
    (await isOwnComment(database.pool, {
      organizationId,
      repositoryId,
      commentId,
      body,
      idScopes: idScopesOf(subject.kind, said),
    }));
  const locked = await lockConversation(database.pool, place, false);
  const facts = await readFacts(database.pool, locked, { key: said.key, sha: null });
  if (!needsRights(said, { ...facts, isOwn }, limits)) return { ...unasked, isOwn };
  const mayWrite = await askRights(services, repository, said);
  const name = findMention(body, limits.mention)?.macro ?? null;
  const macro = name === null || mayWrite !== true ? null : await findMacro(services, event, repository, name);
  return { ...unasked, isOwn, mayWrite, macro };
}

/**
 * An App of GitHub is no collaborator, and its name can't be anybody else's: who allows it by name has vouched for it.
 * @returns null if the forge does not tell
 * @throws UnavailableError if the forge does not answer
 */
async function askRights(
  services: ConversationServices,
  repository: RepositoryRecord,
  { by }: Said,
): Promise<boolean | null> {
  if (by === null) return null;
  return askForge(services, repository, async (forge, address, signal) => {
    if (forge.kind === "github" && by.isBot && by.login.endsWith("[bot]")) return true;
    return forge.feedback === null ? null : forge.feedback.mayWrite(address, by, signal);
  });
}

interface Occasion {
  readonly place: ConversationPlace;
  readonly repository: RepositoryRecord;
  readonly happening: Happening;
  readonly asked: Asked;
  /** Null: time passed. */
  readonly event: ClaimedEvent | null;
}

/** Decides in one transaction, under the conversation's lock, with all that comes of it. */
async function happen(services: ConversationServices, occasion: Occasion): Promise<Steered> {
  const { database } = services;
  const done = await inTransaction(database, async (transaction) => {
    const first = await decideLocked(services, transaction, occasion, false);
    // Most of what is told leaves nothing, and no row.
    const isKept = first.decided.takes !== null || first.decided.conversation !== first.locked.state;
    const last = first.locked.id === null && isKept ? await decideLocked(services, transaction, occasion, true) : first;
    if (last.before !== null) return { ...last, changed: [], refused: null };
    return { ...last, ...(await carryOut(services, transaction, occasion, last)) };
  });
  for (const sessionId of done.changed) notifyChange(database, sessionId, "queued");
  const { effects, reason } = done.decided;
  if (effects.some(({ type }) => type === "macro")) database.notify("offstage_work", "job");
  if (effects.some(({ type }) => type === "answer" || type === "react")) database.notify(answersChannel, "");
  const why = done.before === null ? (reason ?? done.refused) : done.before.reason;
  const sessionId = isOfMacro(occasion.happening, services) ? null : (done.changed[0] ?? done.locked.sessionId);
  return { outcome: why === null ? "fired" : "filtered", reason: why, sessionId: why === null ? sessionId : null };
}

/** Whether it calls an automation: its run is no work of the conversation's session. */
function isOfMacro(happening: Happening, { limits }: ConversationServices): boolean {
  return happening.type === "said" && findMention(happening.body, limits.mention)?.macro != null;
}

/** @throws UnavailableError while the session is being cancelled, which passes */
async function inTransaction<T>(database: Database, work: (transaction: Queryable) => Promise<T>): Promise<T> {
  try {
    return await database.transaction(work);
  } catch (error) {
    if (error instanceof ConflictError) throw new UnavailableError(error.message, undefined, { cause: error });
    throw error;
  }
}

interface DecidedLocked {
  readonly locked: LockedConversation;
  readonly decided: Decided;
  /** What this very event came to before, if its worker died then. */
  readonly before: { readonly reason: string | null } | null;
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
  const takenBy = keyOf(happening, unkeyed.session);
  const known = takenBy === null ? unkeyed : await readFacts(transaction, locked, { key: takenBy, sha });
  const before =
    event === null ? null : await decidedBefore(transaction, locked.id, { key: takenBy, eventId: event.id });
  const urls = {
    commit: asked.commitUrl,
    session: (id: string) => `${publicUrl()}/sessions/${id}`,
  };
  const facts: Facts = {
    ...known,
    now: Date.now(),
    newId: randomUUID,
    subject: place.subject,
    isOwn: asked.isOwn,
    mayWrite: asked.mayWrite,
    isMacro: () => asked.macro !== null,
    logs: asked.logs,
    ends: locked.state.runs.length === 0 ? new Map() : await readEnds(transaction, locked, urls),
  };
  return { locked, decided: decide(locked.state, happening, facts, limits), before };
}

/** The page of a commit. GitLab has its pages below `-`, Bitbucket calls them otherwise. */
async function commitUrlOf(
  { forgeOf }: ConversationServices,
  { url, organizationId }: RepositoryRecord,
): Promise<(sha: string) => string> {
  const address = parseRepositoryUrl(url);
  const kind = isAddressProblem(address) ? null : (await forgeOf(address, organizationId)).kind;
  const web = url.replace(/\.git$/u, "").replace(/\/+$/u, "");
  return (sha) => `${web}${kind === "gitlab" ? "/-/commit/" : "/commit/"}${sha}`;
}

/** What was carried out. */
interface CarriedOut {
  /** The sessions that have work now. */
  readonly changed: readonly string[];
  /** Why an automation that was called starts nothing; null: it does, or none was called. */
  readonly refused: string | null;
}

async function carryOut(
  services: ConversationServices,
  transaction: Queryable,
  occasion: Occasion,
  { locked, decided }: DecidedLocked,
): Promise<CarriedOut> {
  const { id, organizationId } = locked;
  if (id === null) return { changed: [], refused: null };
  const changed: string[] = [];
  let refused: string | null = null;
  let startedSession: string | null = null;
  for (const effect of decided.effects) {
    if (effect.type === "macro")
      refused = await startMacro(transaction, effect.runId, {
        macro: occasion.asked.macro,
        event: occasion.event,
        repositoryId: locked.repositoryId,
      });
    else {
      const sessionId = await carryOutOne(services, transaction, occasion, { locked, effect });
      if (sessionId !== null) changed.push(sessionId);
    }
    if (effect.type === "session") startedSession = effect.runId;
  }
  if (decided.conversation !== locked.state)
    await saveConversation(transaction, id, decided.conversation, { startedSession });
  if (decided.takes !== null) {
    const started = decided.effects.find((effect) => "runId" in effect);
    await takeItem(
      transaction,
      { id, organizationId },
      {
        key: decided.takes,
        eventId: occasion.event?.id ?? null,
        runId: started?.runId ?? null,
        reason: decided.reason ?? refused,
      },
    );
  }
  for (const key of decided.takesKept ?? [])
    await takeItem(transaction, { id, organizationId }, { key, eventId: null, runId: null, reason: null });
  return { changed, refused };
}

async function carryOutOne(
  { sandboxed }: ConversationServices,
  transaction: Queryable,
  { repository, event }: Occasion,
  { locked, effect }: { readonly locked: LockedConversation; readonly effect: Exclude<Effect, { type: "macro" }> },
): Promise<string | null> {
  const { organizationId, repositoryId, subject, id, sessionId } = locked;
  const answer = { organizationId, repositoryId, sessionId };
  switch (effect.type) {
    case "react": {
      const target = { subject, commentId: effect.commentId, isOnLines: effect.isOnLines };
      const action = { kind: "reaction", target, reaction: "eyes" } as const;
      await queueAnswer(transaction, { ...answer, key: keyOfAnswer(id, effect.key), action, text: "" });
      return null;
    }
    case "answer": {
      const { threadId, text } = effect;
      const action =
        threadId === null
          ? ({ kind: "comment", subject } as const)
          : ({ kind: "reply", thread: { subject, id: threadId } } as const);
      await queueAnswer(transaction, { ...answer, key: keyOfAnswer(id, effect.key), action, text });
      return null;
    }
    case "resolve": {
      const { threadId, key, after } = effect;
      const thread = { subject, id: threadId };
      const action = { kind: "resolution", thread, after: keyOfAnswer(id, after) } as const;
      await queueAnswer(transaction, { ...answer, key: keyOfAnswer(id, key), action, text: "" });
      return null;
    }
    case "followUp": {
      if (sessionId === null) throw new Error("a follow-up has no session");
      const { runId, text, mergesTarget } = effect;
      await addMessageIn(transaction, organizationId, sessionId, { id: runId, text, from: null, mergesTarget });
      return sessionId;
    }
    case "session": {
      const session = newSession({
        id: effect.runId,
        title: titleOf(effect.title, subject),
        prompt: effect.text,
        repositories: [{ id: repositoryId, name: repository.name }],
        sandboxed,
        traceParent: event?.traceParent ?? null,
      });
      await insertSessions(transaction, [{ organizationId, session }]);
      return session.id;
    }
  }
}

const longestTitle = 120;

function titleOf(title: string, { number }: ConversationSubject): string {
  const short = title.replaceAll(/\s+/gu, " ").trim().slice(0, longestTitle).toWellFormed();
  return `${short === "" ? "Issue" : short} (#${number})`;
}

const longestKey = 400;

/** Some keys of what is answered contain what somebody wrote: the beginning is as good, since of one thing nothing is said twice. */
function keyOfAnswer(id: string | null, key: string): string {
  return `conversation:${id}:${key.slice(0, longestKey)}`;
}
