/** Most characters of a pull request's description (https://learn.microsoft.com/rest/api/azure/devops/git/pull-requests/update). */
export const descriptionLimit = 4_000;
const cutNote = "\n\n*(cut here: Azure DevOps keeps 4,000 characters)*\n";
/** The last mark of Offstage for a commit with all that follows: where further turns go, the link to the session, its own mark. */
const lastMark = /\n?<!-- offstage (?:[0-9a-f]{40,64}|session=)(?![^]*<!-- offstage (?:[0-9a-f]{40,64}) -->)[^]*$/u;
/** The mark that a pull request is known by, at the very end. */
const ownMark = /\n?<!-- offstage session=[^>]*-->\s*$/u;

/**
 * A description that Azure DevOps takes. What is left out is said, and is never a mark of Offstage: text is taken from
 * before the last mark of a commit, and only if that is not enough from between it and the mark at the end.
 * @returns at most 4,000 characters
 */
export function withinLimit(description: string): string {
  if (description.length <= descriptionLimit) return description;
  const kept = lastMark.exec(description)?.[0] ?? "";
  const before = description.slice(0, description.length - kept.length);
  const room = descriptionLimit - kept.length - cutNote.length;
  if (room >= 0) return `${cut(before, room)}${cutNote}${kept}`;
  const own = ownMark.exec(kept)?.[0] ?? "";
  return `${cut(kept.slice(0, kept.length - own.length), descriptionLimit - own.length - cutNote.length)}${cutNote}${own}`;
}

/** Without half a character at its end. */
function cut(text: string, length: number): string {
  const head = text.slice(0, Math.max(length, 0));
  return head.isWellFormed() ? head : head.slice(0, -1);
}
