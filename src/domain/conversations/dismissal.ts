import { left } from "./bounds.ts";
import type { Conversation, ConversationLimits, Run } from "./conversation.ts";
import type { ConversationFacts, Decided, Effect } from "./facts.ts";
import type { Happening } from "./happening.ts";
import { findMention } from "./mention.ts";
import { isOfReview, withNotesAgain } from "./notes.ts";

type Dismissed = Extract<Happening, { type: "dismissed" }>;
type Gathered = Conversation["asked"][number];

/** A run that was started for the review alone, and whose turn has not begun. */
interface QueuedRun {
  readonly run: Run;
  readonly review: NonNullable<Run["review"]>;
}

/**
 * Decides the dismissal of a review before its turn began: its request is dropped, unless its author called Offstage by
 * name in it. A follow-up that waits for its turn is withdrawn. If the dismissal is delivered before the review, the
 * review is ignored.
 */
export function dismissed(
  conversation: Conversation,
  dismissal: Dismissed,
  facts: Pick<ConversationFacts, "isTaken" | "isAskedAgain" | "pullRequest" | "waitingRuns">,
  { mention }: Pick<ConversationLimits, "mention">,
): Decided {
  const gathered = conversation.asked.find((each) => isOfReview(dismissal, each));
  const queued = queuedRuns(conversation, dismissal, facts.waitingRuns);
  if (gathered === undefined && queued.length === 0) {
    const takes = facts.isTaken || facts.pullRequest !== "open" ? null : dismissal.key;
    return { ...left(conversation, "no turn of the review is about to begin"), takes };
  }
  // A vote has no id: this may be delivered late, after the next vote was taken up.
  if (dismissal.key === null && facts.isAskedAgain)
    return left(conversation, "the reviewer has asked for changes again since");
  const notes = conversation.notes.filter((note) => isOfReview(dismissal, note));
  const isKept = gathered !== undefined && isCalling(mention, [gathered, ...notes]);
  const withdrawn = queued.filter(({ review }) => !isCalling(mention, [review, ...review.notes]));
  if (withdrawn.length === 0 && (gathered === undefined || isKept))
    return left(conversation, `the review mentions ${mention}, so its turn begins all the same`);
  const rest = isKept ? conversation : withoutGathered(conversation, dismissal, gathered);
  const effects = withdrawn.map(({ run }): Effect => ({ type: "withdraw", withdrawnId: run.id }));
  return {
    ...left(withoutRuns(rest, dismissal, withdrawn), "the review was dismissed before its turn began"),
    effects,
  };
}

function queuedRuns(
  { runs }: Conversation,
  dismissal: Dismissed,
  waiting: ConversationFacts["waitingRuns"],
): QueuedRun[] {
  return runs.flatMap((run) => {
    const { id, review } = run;
    return review !== undefined && isOfReview(dismissal, review) && waiting.has(id) ? [{ run, review }] : [];
  });
}

/** Whether one of these texts calls Offstage by name. */
function isCalling(mention: string, texts: readonly { readonly body: string }[]): boolean {
  return texts.some(({ body }) => findMention(body, mention) !== null);
}

/** The conversation without what was gathered for the review's turn. Comments that no review holds together may be of the next one. */
function withoutGathered(
  conversation: Conversation,
  dismissal: Dismissed,
  gathered: Gathered | undefined,
): Conversation {
  const asked = conversation.asked.filter((each) => each !== gathered);
  const notes =
    dismissal.key === null ? conversation.notes : conversation.notes.filter((note) => !isOfReview(dismissal, note));
  return { ...conversation, asked, notes };
}

/** The conversation without runs for the review. Their comments are kept again if no review holds them together. */
function withoutRuns(
  conversation: Conversation,
  { key, group, by }: Dismissed,
  withdrawn: readonly QueuedRun[],
): Conversation {
  if (withdrawn.length === 0) return conversation;
  const gone = new Set(withdrawn.map(({ run }) => run));
  const again = withdrawn.flatMap(({ review }) => review.notes);
  return {
    ...conversation,
    runs: conversation.runs.filter((run) => !gone.has(run)),
    // Its late comments start nothing on their own.
    reviewed: conversation.reviewed.filter((each) => each !== `${group} ${by?.id}`),
    notes: key === null ? withNotesAgain(conversation.notes, again) : conversation.notes,
  };
}
