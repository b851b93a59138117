import type { Conversation, Note, Speaker } from "./conversation.ts";
import type { Said } from "./happening.ts";

/**
 * Most comments that are kept until a review takes them, and most characters of them: of one person, and in all. Any
 * account may write them: no rights are checked.
 */
const mostNotes = { each: { count: 100, characters: 128_000 }, all: { count: 200, characters: 256_000 } };
const longest = { note: 8_000, hunk: 4_000 };
/** Bounds of a comment's other kept fields: paths and names may be long too. */
const longestName = 1_000;

/** For so long before a review a comment that is on no lines counts as a part of it, in ms: older ones were about something else. */
const longestReviewMs = 24 * 60 * 60_000;

/** Comments that reviews take which are due now, and of which it is not known what they are on. */
export function unplacedNotes(conversation: Pick<Conversation, "asked" | "notes">, now: number): Note[] {
  return dueNotes(conversation, now).filter(({ hunk }) => hunk === null);
}

/** Most comments of which it is read what was said before them. */
const mostAnswers = 20;

/** Comments that reviews take which are due now, and that answer others in a thread; of many the last ones. */
export function answeringNotes({ asked, notes }: Pick<Conversation, "asked" | "notes">, now: number): Note[] {
  return dueNotes({ asked, notes }, now)
    .filter(({ threadId, commentId }) => threadId !== null && threadId !== commentId)
    .slice(-mostAnswers);
}

function dueNotes({ asked, notes }: Pick<Conversation, "asked" | "notes">, now: number): Note[] {
  const due = asked.filter((each) => each.dueAt <= now);
  return notes.filter((note) => due.some((review) => isOfReview(review, note)));
}

/** Whether something, such as a comment, is of a review: of the same group, and by the same author. */
export function isOfReview(
  { group, by }: { readonly group: string | null; readonly by: Pick<Speaker, "id"> | null },
  each: { readonly group: string; readonly by: Speaker },
): boolean {
  return each.group === group && each.by.id === by?.id;
}

/** Whether a comment may be a part of a review that is submitted now. @param now ms since the epoch */
export function isRecentNote({ at }: Note, now: number): boolean {
  return at === undefined || now - at <= longestReviewMs;
}

/**
 * Keeps a comment until its review takes it. Beyond the limit, the person with most comments loses the oldest, so that
 * no person can crowd out another's.
 * @param now ms since the epoch
 */
export function withNote(notes: readonly Note[], saying: Said, by: Speaker, group: string, now: number): Note[] {
  const { key, body, path, line, firstLine, hunk, threadId, commentId, isOnLines, isConfidential } = saying;
  const cut = {
    body: body.slice(0, longest.note),
    hunk: hunk?.slice(-longest.hunk) ?? null,
    path: path?.slice(0, longestName) ?? null,
  };
  const more = {
    ...(firstLine !== undefined && { firstLine }),
    ...(isConfidential && { isConfidential }),
    ...(!isOnLines && { at: now }),
  };
  return withinBounds([...notes, { key, group, by, line, threadId, commentId: commentId ?? "", ...cut, ...more }]);
}

/** Keeps comments again that a review had taken which was taken back; they are older than the others. */
export function withNotesAgain(notes: readonly Note[], again: readonly Note[]): Note[] {
  return withinBounds([...again, ...notes]);
}

function withinBounds(notes: readonly Note[]): Note[] {
  let kept = [...notes];
  for (;;) {
    const of = [...Map.groupBy(kept, (note) => note.by.id).values()].toSorted(
      (a, b) => charactersOf(b) - charactersOf(a),
    );
    const tooMany =
      of.find((each) => isOver(each, mostNotes.each)) ?? (isOver(kept, mostNotes.all) ? of[0] : undefined);
    if (tooMany === undefined) return kept;
    kept = kept.filter((note) => note !== tooMany[0]);
  }
}

function isOver(notes: readonly Note[], most: { readonly count: number; readonly characters: number }): boolean {
  return notes.length > most.count || charactersOf(notes) > most.characters;
}

/** The approximate size of notes in the database. */
function charactersOf(notes: readonly Note[]): number {
  return notes.reduce((sum, { body, hunk, path }) => sum + body.length + (hunk?.length ?? 0) + (path?.length ?? 0), 0);
}
