import type { Queryable } from "../../database/database.ts";
import type { ConversationSubject } from "../../domain/conversations/conversation.ts";
import type { AnsweredThread, Effect } from "../../domain/conversations/facts.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../domain/repositories/repository.ts";
import { servesAddress } from "../../forges/serves.ts";
import { newSession } from "../../domain/sessions/new-session.ts";
import { queueAnswer } from "../../store/answers/answers.ts";
import { holdersOfAccount } from "../../store/secrets/accounts.ts";
import { noteStartedJob, saveConversation, type LockedConversation } from "../../store/conversations/conversations.ts";
import { takeItem } from "../../store/conversations/items.ts";
import { insertSessions } from "../../store/sessions/new-session.ts";
import { withdrawMessageIn } from "../../store/sessions/messages.ts";
import { addMessageIn } from "../../store/sessions/sessions.ts";
import { startMacro } from "./macros.ts";
import type { ConversationServices, DecidedLocked, Occasion } from "./occasion.ts";

/** The effects that were carried out. */
export interface CarriedOut {
  /** The sessions that have work now. */
  readonly changed: readonly string[];
  /** The sessions of which a message was withdrawn. */
  readonly withdrawn: readonly { readonly sessionId: string; readonly isAtRest: boolean }[];
  /** Why an automation that was called starts nothing; null: it does, or none was called. */
  readonly refused: string | null;
}

/** Does what was decided, and notes it, in the transaction that has the conversation locked. */
export async function carryOut(
  services: ConversationServices,
  transaction: Queryable,
  occasion: Occasion,
  { locked, decided }: DecidedLocked,
): Promise<CarriedOut> {
  const { id, organizationId } = locked;
  if (id === null) return { changed: [], withdrawn: [], refused: null };
  const changed: string[] = [];
  const withdrawn: CarriedOut["withdrawn"][number][] = [];
  let refused: string | null = null;
  let startedSession: string | null = null;
  for (const effect of decided.effects) {
    if (effect.type === "macro") continue;
    if (effect.type === "withdraw") {
      const { sessionId } = locked;
      if (sessionId === null) throw new Error("a follow-up that is withdrawn has no session");
      const isAtRest = await withdrawMessageIn(transaction, organizationId, sessionId, effect.withdrawnId);
      withdrawn.push({ sessionId, isAtRest });
    } else {
      const sessionId = await carryOutOne(services, transaction, occasion, { locked, effect });
      if (sessionId !== null) changed.push(sessionId);
    }
    if (effect.type === "session") startedSession = effect.runId;
  }
  if (decided.conversation !== locked.state)
    await saveConversation(transaction, id, decided.conversation, { startedSession });
  // After what a session's end marks, since that locks its automation last, too: src/store/sql/sessions/move_session.sql.
  for (const effect of decided.effects) {
    if (effect.type !== "macro") continue;
    refused = await startMacro(transaction, effect.runId, {
      macro: occasion.asked.macro,
      event: occasion.event,
      repositoryId: locked.repositoryId,
    });
    await noteStartedJob(transaction, effect.runId);
  }
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
  return { changed, withdrawn, refused };
}

async function carryOutOne(
  { sandboxed }: ConversationServices,
  transaction: Queryable,
  occasion: Occasion,
  {
    locked,
    effect,
  }: {
    readonly locked: LockedConversation;
    readonly effect: Exclude<Effect, { type: "macro" | "withdraw" }>;
  },
): Promise<string | null> {
  const { repository, event } = occasion;
  const { organizationId, repositoryId, subject, id, sessionId } = locked;
  const answer = { organizationId, repositoryId, sessionId };
  switch (effect.type) {
    case "react": {
      const { commentId, isOnLines, reviewId, isMinor } = effect;
      const target = { subject, commentId, isOnLines, ...(reviewId !== null && { reviewId }) };
      const action = { kind: "reaction", target, reaction: "eyes", isMinor } as const;
      await queueAnswer(transaction, { ...answer, key: keyOfAnswer(id, effect.key), action, text: "" });
      return null;
    }
    case "answer": {
      const { threadId, text } = effect;
      const action =
        threadId === null
          ? ({ kind: "comment", subject } as const)
          : ({ kind: "reply", thread: { subject, id: threadId }, otherwise: otherwise(effect) } as const);
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
        requestedBy: await requesterOf(transaction, organizationId, occasion),
        traceParent: event?.traceParent ?? null,
      });
      await insertSessions(transaction, [{ organizationId, session }]);
      return session.id;
    }
  }
}

/**
 * The member of the organization who asks on the forge: the one who connected the comment's account.
 * @returns null: no member or several members connected that account
 */
async function requesterOf(
  transaction: Queryable,
  organizationId: string,
  { happening, repository }: Occasion,
): Promise<string | null> {
  const address = parseRepositoryUrl(repository.url);
  if (happening.type !== "said" || happening.by === null || isAddressProblem(address)) return null;
  const holders = await holdersOfAccount(transaction, organizationId, happening.by.id);
  const people = new Set(
    holders.filter(({ webUrl }) => servesAddress(webUrl, address, true)).map(({ userId }) => userId),
  );
  const [only = null] = people;
  return people.size === 1 ? only : null;
}

const longestPlace = 200;

/** The words before an answer whose thread is gone; null: it is written nowhere else. */
function otherwise({ place, isConfidential }: AnsweredThread): string | null {
  if (isConfidential) return null;
  const shown = (place ?? "")
    .replaceAll(/[`\p{Cc}]/gu, "")
    .slice(0, longestPlace)
    .toWellFormed();
  return `To a comment${shown === "" ? "" : ` on \`${shown}\``} that is not there any more:`;
}

const longestTitle = 120;

function titleOf(title: string, { number }: ConversationSubject): string {
  const short = title.replaceAll(/\s+/gu, " ").trim().slice(0, longestTitle).toWellFormed();
  return `${short === "" ? "Issue" : short} (#${number})`;
}

const longestKey = 400;

/** Some keys contain text that a person wrote: the beginning is enough, since one thing is answered at most once. */
function keyOfAnswer(id: string | null, key: string): string {
  return `conversation:${id}:${key.slice(0, longestKey)}`;
}
