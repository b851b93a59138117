import { begun, left, refuseOnce, sayingBound, sharedBound } from "./bounds.ts";
import {
  threadPlaceOf,
  type Conversation,
  type ConversationLimits,
  type Note,
  type Run,
  type Speaker,
} from "./conversation.ts";
import type { ConversationFacts, Decided, Earlier, Effect } from "./facts.ts";
import type { Said } from "./happening.ts";
import { isOfReview, isRecentNote, withNote } from "./notes.ts";
import { placeData, reviewPrompt, sayingPrompt } from "./prompts.ts";
import { seen, seenReview } from "./seen.ts";

/** Gathers a review, or a comment of one, that asks for something: its other comments are waited for. */
export function gatherReview(
  conversation: Conversation,
  saying: Said,
  by: Speaker,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const { key: takes, body, asksForChanges, commentId } = saying;
  const isComment = commentId !== null;
  // Without a review's id, a comment that calls Offstage is asked for alone: the person's others may be of no review.
  const group = isComment && !(saying.group ?? "").startsWith("review:") ? `only:${takes}` : (saying.group ?? "");
  const known = conversation.asked.find((each) => each.group === group);
  const dueAt = facts.now + limits.reviewMs;
  const next = {
    group,
    by,
    body: isComment ? (known?.body ?? "") : body,
    isAnswered: (known?.isAnswered ?? false) || (!isComment && body.trim() !== ""),
    dueAt: known?.dueAt ?? dueAt,
  };
  const others = conversation.asked.filter((each) => each !== known);
  const notes = isComment ? withNote(conversation.notes, saying, by, group, facts.now) : conversation.notes;
  const ofIt = notes.filter((note) => isOfReview(next, note) && isRecentNote(note, facts.now));
  const effects = isComment ? [seen(saying)] : seenReview(saying, asksForChanges ? ofIt : []);
  return { conversation: { ...conversation, notes, asked: [...others, next] }, effects, takes, reason: null };
}

const keptReason = "it is kept until its review asks for changes";

/** Keeps a comment that asks for nothing itself: the review that it is of may. */
export function keepNote(
  conversation: Conversation,
  saying: Said,
  by: Speaker,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const { group, key: takes } = saying;
  if (group === null || facts.pullRequest !== "open") {
    return left(conversation, `it does not mention ${limits.mention}`);
  }
  if (conversation.notes.some((note) => note.key === takes)) return left(conversation, keptReason);
  const notes = withNote(conversation.notes, saying, by, group, facts.now);
  const isOfSame = (each: Pick<Gathered, "group" | "by">): boolean => isOfReview({ group, by }, each);
  const waiting = conversation.asked.find(isOfSame);
  if (waiting !== undefined) {
    const isMinor = waiting.isAnswered || conversation.notes.some(isOfSame);
    return { conversation: { ...conversation, notes }, effects: [seen(saying, isMinor)], takes, reason: null };
  }
  if (conversation.reviewed.includes(`${group} ${by.id}`)) {
    const bound = sayingBound(conversation, saying, facts, limits);
    if (bound !== null) return refuseOnce(conversation, bound, limits, saying);
    const late = { group, by, body: "", isAnswered: false, dueAt: facts.now + limits.reviewMs };
    const botTurns = conversation.botTurns + Number(by.isBot);
    const next = { ...conversation, botTurns, notes, asked: [...conversation.asked, late] };
    return { conversation: next, effects: [seen(saying)], takes, reason: null };
  }
  // It takes nothing yet: a stranger's comments would leave a row each.
  return left({ ...conversation, notes }, keptReason);
}

const mostReviewed = 50;

type Gathered = Conversation["asked"][number];

/** A comment of a review, with what is known of its place when the review's turn begins, and what was said before it. */
type PlacedNote = Note & { readonly thread: readonly Earlier[] };

/** One follow-up for one review, with all its comments that came. */
export function startReviews(
  conversation: Conversation,
  facts: ConversationFacts,
  limits: ConversationLimits,
): Decided {
  const due = conversation.asked.find((each) => each.dueAt <= facts.now);
  if (due === undefined || facts.session === null) return left(conversation, "no review is due");
  const { group, by, body } = due;
  const ofIt = conversation.notes.filter((note) => isOfReview(due, note) && isRecentNote(note, facts.now));
  const notes = ofIt.map((note) => ({
    ...note,
    ...facts.places.get(note.key),
    thread: facts.threads.get(note.key) ?? [],
  }));
  const rest = withoutDue(conversation, due);
  const takesKept = notes.map(({ key }) => key);
  const isWordless = notes.length === 0 && body.trim() === "" && !due.isAnswered;
  // A comment of the reviewer may have called Offstage on its own.
  if (isWordless && conversation.runs.length > 0) return left(rest, "the review has no words of its own");
  const bound = isWordless ? "wordless" : sharedBound(rest, facts, limits);
  if (bound !== null) return { ...refuseOnce(rest, bound, limits), takesKept };
  const run: Run = {
    id: facts.newId(),
    kind: "followUp",
    ...threadsOf(due, notes),
    pushedSha: facts.session.pushedSha,
    ...(!group.startsWith("only:") && { review: { group, by, body, notes: ofIt } }),
  };
  const text = promptOf(due, notes, facts.subject.number);
  const effects: Effect[] = [{ type: "followUp", runId: run.id, text, mergesTarget: false }];
  return { conversation: begun(rest, run), effects, takes: null, takesKept, reason: null };
}

/** The conversation without a review whose turn begins, and without its comments. */
function withoutDue(conversation: Conversation, due: Gathered): Conversation {
  const { asked, notes, reviewed } = conversation;
  return {
    ...conversation,
    asked: asked.filter((each) => each !== due),
    notes: notes.filter((note) => !isOfReview(due, note)),
    reviewed: due.group.startsWith("review:")
      ? [...reviewed, `${due.group} ${due.by.id}`].slice(-mostReviewed)
      : reviewed,
  };
}

/** The agent's prompt: one comment that called Offstage on its own, or the review. */
function promptOf({ group, by, body, isAnswered }: Gathered, notes: readonly PlacedNote[], number: number): string {
  const [first] = notes;
  const isComment = group.startsWith("only:") && notes.length === 1 && body.trim() === "" && !isAnswered;
  if (!isComment || first === undefined) return reviewPrompt({ by, body, number }, notes);
  return sayingPrompt({
    by,
    body: first.body,
    where: `a comment on lines of pull request #${number}`,
    around: {
      ...placeData(first),
      ...(first.thread.length > 0 && { saidBefore: first.thread }),
    },
    isConfidential: first.isConfidential === true,
  });
}

/**
 * The threads that the run of a review has to answer: the threads of its comments, and the review itself if it is
 * answered or has none.
 */
function threadsOf(
  { isAnswered }: Gathered,
  notes: readonly Note[],
): Pick<Run, "threads" | "places" | "isConfidential"> {
  const of = [...new Set(notes.map(({ threadId }) => threadId))];
  const threads = isAnswered || of.length === 0 ? [null, ...of.filter((each) => each !== null)] : of;
  const places = threads.map((threadId) => {
    const note = threadId === null ? undefined : notes.find((each) => each.threadId === threadId);
    return note === undefined ? null : threadPlaceOf(note);
  });
  const isConfidential = notes.some((note) => note.isConfidential === true);
  return { threads, places, ...(isConfidential && { isConfidential }) };
}
