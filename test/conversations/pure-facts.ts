import type { ConversationLimits } from "../../src/domain/conversations/conversation.ts";
import type { ConversationFacts } from "../../src/domain/conversations/facts.ts";

/** The commit that the session has pushed last. */
export const sha = "a".repeat(40);

/** Limits without pauses. */
export const limits: ConversationLimits = {
  mention: "offstage",
  turns: 50,
  botTurns: 5,
  sessions: 5,
  checkRounds: 3,
  conflictRounds: 3,
  usd: 50,
  bots: [],
  resolvesThreads: false,
  checksMs: 0,
  reviewMs: 0,
};

let ids = 0;

/** What is known of a session's open pull request 7, on which everybody may write. */
export function factsOf(changes: Partial<ConversationFacts> = {}): ConversationFacts {
  return {
    now: 0,
    newId: () => String((ids += 1)),
    subject: { kind: "pullRequest", number: 7 },
    isTaken: false,
    isOwn: false,
    mayWrite: true,
    isOwnCommit: false,
    isDismissed: false,
    isAskedAgain: false,
    waitingRuns: new Set(),
    endedLater: [],
    pullRequest: "open",
    session: { status: "completed", pushedSha: sha, pushingSha: sha, begunShas: [], isOver: false },
    spentUsd: 0,
    isMacro: () => false,
    logs: new Map(),
    places: new Map(),
    threads: new Map(),
    ends: new Map(),
    ...changes,
  };
}
