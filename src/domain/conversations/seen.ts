import type { Note } from "./conversation.ts";
import type { Effect } from "./facts.ts";
import type { Said } from "./happening.ts";

/** The acknowledgement that something was seen. @param isMinor whether another one covers it, too */
export function seen(
  { key, commentId, isOnLines }: Pick<Said, "key" | "commentId" | "isOnLines">,
  isMinor = false,
): Effect {
  return { type: "react", key: `seen:${key}`, commentId, isOnLines, reviewId: null, isMinor };
}

/** The sign that a review was seen: at its own words, and at each of its comments. */
export function seenReview({ key, body, group }: Said, notes: readonly Note[]): Effect[] {
  const reviewId = group?.startsWith("review:") === true ? group.slice("review:".length) : null;
  const own: Effect[] =
    body.trim() === ""
      ? []
      : [{ type: "react", key: `seen:${key}`, commentId: null, isOnLines: false, reviewId, isMinor: false }];
  const ofNotes = notes.map((note, index) => seen({ ...note, isOnLines: note.path !== null }, own.length + index > 0));
  return [...own, ...ofNotes];
}
