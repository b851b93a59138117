import type { Conversation } from "./conversation.ts";

/**
 * One conversation of two about the same pull request or issue, as its repository had two rows. What was started counts of both, so that
 * no bound is passed, and each run is still answered; what is gathered of one commit is that of the first.
 * @param first the one that goes on: it knows more of what happened last
 */
export function mergeConversations(first: Conversation, second: Conversation): Conversation {
  const groups = new Set(first.asked.map(({ group }) => group));
  const keys = new Set(first.notes.map(({ key }) => key));
  return {
    turns: first.turns + second.turns,
    botTurns: first.botTurns + second.botTurns,
    sessions: first.sessions + second.sessions,
    checkRounds: first.checkRounds + second.checkRounds,
    conflictRounds: first.conflictRounds + second.conflictRounds,
    isPushedByOthers: first.isPushedByOthers || second.isPushedByOthers,
    told: [...new Set([...first.told, ...second.told])],
    checks: first.checks ?? second.checks,
    conflict: first.conflict ?? second.conflict,
    notes: [...first.notes, ...second.notes.filter(({ key }) => !keys.has(key))],
    asked: [...first.asked, ...second.asked.filter(({ group }) => !groups.has(group))],
    reviewed: [...new Set([...first.reviewed, ...second.reviewed])],
    runs: [...first.runs, ...second.runs],
  };
}
