import { notices } from "./answers.ts";
import { threadPlaceOf, type Conversation, type ConversationLimits, type Run } from "./conversation.ts";
import type { AnsweredThread, Decided, Effect, ConversationFacts } from "./facts.ts";
import type { Said } from "./happening.ts";

/** The place of answers that no comment asked for. */
export const onSubject: AnsweredThread = { threadId: null, place: null, isConfidential: false };

/** The thread of a comment. */
export function threadOf(saying: Pick<Said, "threadId" | "path" | "line" | "isConfidential">): AnsweredThread {
  const { threadId, isConfidential } = saying;
  return { threadId, place: threadPlaceOf(saying), isConfidential };
}

/** A limit at which a conversation, or a part of it, starts no more runs. `notices` in answers.ts has what is said at each. */
export type Bound = keyof typeof notices;

/**
 * The limit that keeps a conversation from starting another run, whatever asks for it: its number of turns, or its costs. Reviews that are
 * gathered for a coming turn count as turns already.
 * @returns null if it may start one
 */
export function sharedBound(
  conversation: Conversation,
  { spentUsd }: ConversationFacts,
  limits: ConversationLimits,
): Bound | null {
  if (conversation.turns + conversation.asked.length >= limits.turns) return "turns";
  return spentUsd >= limits.usd ? "usd" : null;
}

/** The limit that keeps a comment from starting anything; null: none does. */
export function sayingBound(
  conversation: Conversation,
  { by, state }: Said,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Bound | null {
  const isIssue = facts.subject.kind === "issue";
  if (!isIssue && facts.pullRequest === null) return state === "open" ? "foreign" : state;
  const now = isIssue ? state : facts.pullRequest;
  if (now !== "open" && now !== null) return now;
  if (by?.isBot === true && conversation.botTurns >= limits.botTurns) return "botTurns";
  const startsSession = isIssue && (facts.session === null || facts.session.isOver);
  if (startsSession && conversation.sessions >= limits.sessions) return "sessions";
  return sharedBound(conversation, facts, limits);
}

/**
 * Decides to start nothing because a limit is reached, and to answer so, unless the conversation has said it before.
 * @param saying the comment that asked; omitted: none did
 */
export function refuseOnce(
  conversation: Conversation,
  bound: Bound,
  limits: ConversationLimits,
  saying?: Said,
): Decided {
  const reason = `bound: ${bound}`;
  const takes = saying?.key ?? null;
  if (conversation.told.includes(bound)) return { conversation, effects: [], takes, reason };
  const numbers = {
    turns: limits.turns,
    botTurns: limits.botTurns,
    sessions: limits.sessions,
    usd: limits.usd,
    checks: limits.checkRounds,
    conflicts: limits.conflictRounds,
    pushed: 0,
    merged: 0,
    closed: 0,
    foreign: 0,
    wordless: 0,
  };
  const answer: Effect = {
    type: "answer",
    // Some are said again after a person spoke, which was a turn.
    key: `told:${bound}:${conversation.turns}`,
    ...(saying === undefined ? onSubject : threadOf(saying)),
    text: notices[bound](numbers[bound]),
  };
  return { conversation: { ...conversation, told: [...conversation.told, bound] }, effects: [answer], takes, reason };
}

/** The conversation with one more run and one more turn. @param more what else changes in it */
export function begun(conversation: Conversation, run: Run, more: Partial<Conversation> = {}): Conversation {
  return { ...conversation, turns: conversation.turns + 1, runs: [...conversation.runs, run], ...more };
}

/** Decides to do nothing. @param reason why, for the ledger */
export function left(conversation: Conversation, reason: string): Decided {
  return { conversation, effects: [], takes: null, reason };
}
