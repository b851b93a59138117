/** Around what Offstage keeps current in the text of a pull request, as HTML comments, which forges don't show. */
const beginMark = "<!-- offstage section -->";
const endMark = "<!-- /offstage section -->";

/** A section as it is in a pull request's text. */
export function markedSection(section: string): string {
  return `${beginMark}\n${section}\n${endMark}`;
}

/**
 * A pull request's text with another section. Of several the last one is ours: the text above is untrusted.
 * @param body as it is now, perhaps edited by people
 * @returns null if it stays as it is: it says the same already, people removed a mark, or it would be too long
 */
export function withSection(body: string, section: string, longest: number): string | null {
  const begin = body.lastIndexOf(beginMark);
  const end = body.lastIndexOf(endMark);
  if (begin === -1 || end < begin) return null;
  // Forges may write line breaks in their own way.
  const before = body.slice(begin + beginMark.length, end).replaceAll("\r\n", "\n");
  if (before.trim() === section.trim()) return null;
  const changed = `${body.slice(0, begin)}${markedSection(section)}${body.slice(end + endMark.length)}`;
  return changed.length > longest ? null : changed;
}
