import { answerOf, isDoneByCommit, isWorthAnswering } from "./answers.ts";
import { left } from "./bounds.ts";
import type { Conversation, ConversationLimits } from "./conversation.ts";
import { dismissed } from "./dismissal.ts";
import type { Decided, Effect, ConversationFacts } from "./facts.ts";
import type { Happening } from "./happening.ts";
import { checked, conflicted, pushed, pushedKey, startRound } from "./rounds.ts";
import { startReviews } from "./reviews.ts";
import { said } from "./sayings.ts";

/**
 * Decides the effects of a happening: all rules of the feedback loop. Each call starts at most what the conversation's
 * bounds leave, and every bound is reported once; so a conversation starts at most `limits.turns` runs, whatever
 * happens.
 */
export function decide(
  conversation: Conversation,
  happening: Happening,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  switch (happening.type) {
    case "said":
      return said(conversation, happening, facts, limits);
    case "checks":
      return checked(conversation, happening, facts, limits);
    case "pushed":
      return pushed(conversation, happening, facts);
    case "dismissed":
      return dismissed(conversation, happening, facts, limits);
    case "conflicted":
      return conflicted(conversation, happening, facts, limits);
    case "ended":
      return left(withoutGathered(conversation), `it is ${happening.state}`);
    case "reopened":
      return left(conversation, "it starts nothing");
    case "tick":
      return tick(conversation, facts, limits);
  }
}

/**
 * A key that is equal for each delivery of one happening, and for no other happening of the conversation, so that it is acted on once.
 * @returns null if acting on it again changes nothing
 */
export function happeningKey(happening: Happening, session: ConversationFacts["session"]): string | null {
  switch (happening.type) {
    case "said":
    case "dismissed":
      return happening.key;
    case "checks":
      return `checks:${happening.sha}`;
    case "pushed":
      return pushedKey(happening, session);
    case "conflicted":
      return `conflict:${session?.pushedSha ?? ""}`;
    default:
      return null;
  }
}

/** Starts what is due, and answers for what ended. */
function tick(conversation: Conversation, facts: ConversationFacts, limits: ConversationLimits): Decided {
  let next =
    facts.pullRequest === "open" || facts.subject.kind === "issue" ? conversation : withoutGathered(conversation);
  const effects: Effect[] = [];
  let takes: string | null = null;
  const takesKept: string[] = [];
  const steps = [answerEnded, startReviews, startRound];
  for (const step of steps) {
    const done = step(next, facts, limits);
    next = done.conversation;
    effects.push(...done.effects);
    takes = done.takes ?? takes;
    takesKept.push(...(done.takesKept ?? []));
  }
  return { conversation: next, effects, takes, takesKept, reason: effects.length === 0 ? "nothing is due" : null };
}

/** Each thread once: what was answered is no longer a run of the conversation. */
function answerEnded(conversation: Conversation, facts: ConversationFacts, limits: ConversationLimits): Decided {
  const effects: Effect[] = [];
  const isResolvable = limits.resolvesThreads && facts.subject.kind === "pullRequest";
  const runs = conversation.runs.filter((run) => {
    const end = facts.ends.get(run.id);
    if (end === undefined) return true;
    if (!isWorthAnswering(run, end)) return false;
    const text = answerOf(run, end);
    run.threads.forEach((threadId, index) => {
      const key = `run:${run.id}:${index}`;
      const where = { threadId, place: run.places?.[index] ?? null, isConfidential: run.isConfidential === true };
      effects.push({ type: "answer", key, text, ...where });
      if (threadId !== null && isResolvable && isDoneByCommit(run, end))
        effects.push({ type: "resolve", key: `${key}:resolved`, threadId, after: key });
    });
    return false;
  });
  return { conversation: { ...conversation, runs }, effects, takes: null, reason: null };
}

function withoutGathered(conversation: Conversation): Conversation {
  const { checks, conflict, asked, notes } = conversation;
  const isNothing = checks === null && conflict === null && asked.length + notes.length === 0;
  return isNothing ? conversation : { ...conversation, checks: null, conflict: null, asked: [], notes: [] };
}
