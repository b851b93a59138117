import { noSuchMacro } from "./answers.ts";
import { begun, left, refuseOnce, sayingBound, threadOf } from "./bounds.ts";
import type { Conversation, ConversationLimits, Run, Speaker } from "./conversation.ts";
import type { Decided, Effect, ConversationFacts } from "./facts.ts";
import type { Said } from "./happening.ts";
import { findMention, instructionOf } from "./mention.ts";
import { placeData, sayingPrompt } from "./prompts.ts";
import { gatherReview, keepNote } from "./reviews.ts";
import { seen } from "./seen.ts";

/**
 * Whether the forge has to be asked if the author of a comment may write to the repository, before its effects can be
 * decided. It is not asked about comments that start nothing anyway, so that a stranger's comments cost no request.
 */
export function needsRights(
  saying: Said,
  facts: Pick<ConversationFacts, "isTaken" | "isOwn" | "pullRequest">,
  limits: Pick<ConversationLimits, "mention" | "bots">,
): boolean {
  if (facts.isTaken || facts.isOwn || saying.isMarked || saying.by === null) return false;
  if (saying.by.isBot && !isAllowedBot(saying.by, limits)) return false;
  return findMention(saying.body, limits.mention) !== null || (saying.asksForChanges && facts.pullRequest !== null);
}

function isAllowedBot({ login }: Speaker, { bots }: Pick<ConversationLimits, "bots">): boolean {
  return bots.includes(login.toLowerCase());
}

/** Decides the effects of a comment. */
export function said(
  conversation: Conversation,
  saying: Said,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const { by } = saying;
  const mention = findMention(saying.body, limits.mention);
  const asks = saying.asksForChanges && facts.pullRequest !== null;
  if (facts.isTaken) return left(conversation, "it was taken up before");
  if (facts.isOwn) return left(conversation, "Offstage posted it itself");
  if (saying.isMarked) return left(conversation, "an Offstage posted it");
  if (by === null) return left(conversation, "its author is unknown");
  if (by.isBot && !isAllowedBot(by, limits))
    return left(conversation, `${by.login} is a bot that is not allowed to steer`);
  if (facts.isDismissed && mention === null) return left(conversation, "the review was dismissed since");
  if (mention === null && !asks) return keepNote(conversation, saying, by, facts, limits);
  if (facts.mayWrite === null) return left(conversation, `the forge does not tell whether ${by.login} may write`);
  if (!facts.mayWrite) return left(conversation, `${by.login} has no write access`);
  // An answer outside of its thread is visible to all readers.
  if (saying.isConfidential && saying.commentId !== null && saying.threadId === null)
    return left(conversation, "it is confidential, and in no thread in which it could be answered");
  if (saying.mark !== null && facts.pullRequest === null)
    return left(conversation, "the pull request is of another Offstage, or of a session that is gone");

  // A person has spoken: automatic rounds that had stopped may go on.
  const heard = by.isBot ? conversation : resumed(conversation);
  const bound = sayingBound(heard, saying, facts, limits);
  if (bound !== null) return refuseOnce(conversation, bound, limits, saying);
  const counted = { ...heard, botTurns: heard.botTurns + Number(by.isBot) };
  if (mention?.macro != null) return macro(counted, saying, mention.macro, facts);
  const isOfReview = saying.isOnLines || saying.commentId === null;
  const isGathered = saying.group !== null && isOfReview && facts.pullRequest !== null;
  return isGathered ? gatherReview(counted, saying, by, facts, limits) : started(counted, saying, by, facts);
}

/**
 * Resets the counters that a person's comment resets: rounds, and that others pushed. It is bounded, since each of them
 * is a turn, of the conversation or, if they were not said on the forge, of the session.
 * @returns the same conversation if there is nothing to set back
 */
export function resumed(conversation: Conversation): Conversation {
  const again = new Set<string>(["checks", "conflicts", "pushed"]);
  const { checkRounds, conflictRounds, isPushedByOthers, told: saidOnce } = conversation;
  if (checkRounds + conflictRounds === 0 && !isPushedByOthers && !saidOnce.some((each) => again.has(each)))
    return conversation;
  return {
    ...conversation,
    checkRounds: 0,
    conflictRounds: 0,
    isPushedByOthers: false,
    told: saidOnce.filter((each) => !again.has(each)),
  };
}

/** The threads that a run for one saying has to answer. */
function askedBy(saying: Said): Pick<Run, "threads" | "places" | "isConfidential"> {
  const { threadId, place, isConfidential } = threadOf(saying);
  return { threads: [threadId], places: [place], ...(isConfidential && { isConfidential }) };
}

function macro(conversation: Conversation, saying: Said, name: string, facts: ConversationFacts): Decided {
  const { key: takes } = saying;
  if (!facts.isMacro(name)) {
    const text = noSuchMacro(name);
    const effects: Effect[] = [{ type: "answer", key: `macro:${takes}`, text, ...threadOf(saying) }];
    // It counts, or a writer's bot could have itself answered for ever.
    return {
      conversation: { ...conversation, turns: conversation.turns + 1 },
      effects,
      takes,
      reason: `no automation !${name} can be started`,
    };
  }
  const run: Run = { id: facts.newId(), kind: "macro", ...askedBy(saying), pushedSha: null };
  const effects: Effect[] = [seen(saying), { type: "macro", runId: run.id, macro: name }];
  return { conversation: begun(conversation, run), effects, takes, reason: null };
}

const confidentialTitle = "Work on a confidential issue";

/** A follow-up of the session that works on it, or a new session for an issue. */
function started(conversation: Conversation, saying: Said, by: Speaker, facts: ConversationFacts): Decided {
  const { subject, session } = facts;
  const { key: takes, body, path, thread = [], about, commentId, isConfidential } = saying;
  const isIssue = subject.kind === "issue";
  const isOpening = isIssue && commentId === null;
  const where = isIssue
    ? isOpening
      ? `issue #${subject.number}`
      : `a comment on issue #${subject.number}`
    : path === null
      ? `a comment on pull request #${subject.number}`
      : `a comment on lines of pull request #${subject.number}`;
  const around = {
    ...(isIssue && !isOpening && { issue: { title: about.title, text: about.body, author: about.author } }),
    ...(path !== null && placeData(saying)),
    ...(thread.length > 0 && { saidBefore: thread }),
  };
  const text = sayingPrompt({ by, body, where, around, isConfidential });
  const isFollowUp = session !== null && !session.isOver;
  const id = facts.newId();
  const run: Run = {
    id,
    kind: isFollowUp ? "followUp" : "session",
    ...askedBy(saying),
    pushedSha: isFollowUp ? session.pushedSha : null,
  };
  if (isFollowUp) {
    const effects: Effect[] = [seen(saying), { type: "followUp", runId: id, text, mergesTarget: false }];
    return { conversation: begun(conversation, run), effects, takes, reason: null };
  }
  const words = about.title.trim() === "" ? instructionOf(body).text : about.title;
  // The title is the branch's, the commits' and the pull request's.
  const title = isConfidential ? confidentialTitle : words;
  const effects: Effect[] = [seen(saying), { type: "session", runId: id, title, text }];
  return {
    conversation: begun(conversation, run, { sessions: conversation.sessions + 1 }),
    effects,
    takes,
    reason: null,
  };
}
