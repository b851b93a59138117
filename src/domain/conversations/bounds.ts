import { notices } from "./answers.ts";
import { placeOf, type Conversation, type ConversationLimits, type Run } from "./conversation.ts";
import type { AnsweredThread, Decided, Effect, Facts } from "./facts.ts";
import type { Said } from "./happening.ts";

/** Where what nobody asked for is said. */
export const onSubject: AnsweredThread = { threadId: null, place: null, isConfidential: false };

/** The thread in which somebody said something. */
export function threadOf(saying: Pick<Said, "threadId" | "path" | "line" | "isConfidential">): AnsweredThread {
  const { threadId, isConfidential } = saying;
  return { threadId, place: placeOf(saying), isConfidential };
}

/** What ends a conversation, or a part of it. */
export type Bound = keyof typeof notices;

/** What bounds whatever starts a run. Reviews that are gathered count already. */
export function sharedBound(conversation: Conversation, { spentUsd }: Facts, limits: ConversationLimits): Bound | null {
  if (conversation.turns + conversation.asked.length >= limits.turns) return "turns";
  return spentUsd >= limits.usd ? "usd" : null;
}

/** Says a bound once. */
export function told(conversation: Conversation, bound: Bound, limits: ConversationLimits, saying?: Said): Decided {
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

/** Counts a run that is started. */
export function begun(conversation: Conversation, run: Run, more: Partial<Conversation> = {}): Conversation {
  return { ...conversation, turns: conversation.turns + 1, runs: [...conversation.runs, run], ...more };
}

/** Nothing is done, for the reason. */
export function left(conversation: Conversation, reason: string): Decided {
  return { conversation, effects: [], takes: null, reason };
}
