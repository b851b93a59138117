/**
 * A comment with our mark at its end, an HTML comment that forges don't show: by it the comment is recognized if the
 * forge's answer was lost. Marks in the text itself are made harmless, since an agent may write anything that it has
 * read.
 * @param key secret until the comment is posted, such as a random UUID
 */
export function withCommentMark(text: string, key: string): string {
  return `${withoutForgedMarks(text)}\n${markOf(key)}`;
}

/** Whether it is the comment with the key: its last line is the mark alone. In a quotation of the comment, that line begins with `>`. */
export function hasCommentMark(body: string, key: string): boolean {
  return `\n${body.trimEnd()}`.endsWith(`\n${markOf(key)}`);
}

/** As forges deliver the mark: most as it was posted, Bitbucket as a link's definition, a work item of Azure DevOps as HTML in small type. */
const deliveredMarks: readonly RegExp[] = [
  /^<!-- offstage comment=([^ ]{1,100}) -->$/u,
  /^\[\/\/\]: # \(offstage comment=([^ ()]{1,100})\)$/u,
  /(?:^|<(?:br|div|p|small|span)\b[^<>]{0,200}>)offstage comment=([0-9a-f-]{36})(?:<\/?(?:br|div|p|small|span)\b[^<>]{0,200}>|&nbsp;|\s){0,20}$/u,
];

/** The key of the mark that is a comment's last line, as forges deliver it; null if there is none. */
export function commentMarkKey(body: string): string | null {
  const end = body.trimEnd();
  const line = end.slice(end.lastIndexOf("\n") + 1);
  for (const mark of deliveredMarks) {
    const key = mark.exec(line)?.[1];
    if (key !== undefined) return key;
  }
  return null;
}

/**
 * The comment with the key among those of a list. Others may have copied it with its mark; the key was secret until
 * ours was posted, so of several the oldest is ours.
 */
export function oldestWithMark<Comment extends { readonly id: number | bigint; readonly body?: string | null }>(
  comments: readonly Comment[],
  key: string,
): Comment | undefined {
  return comments.filter(({ body }) => hasCommentMark(body ?? "", key)).toSorted((a, b) => (a.id < b.id ? -1 : 1))[0];
}

function markOf(key: string): string {
  return `<!-- offstage comment=${key} -->`;
}

/**
 * A text in which nothing can be taken for a mark of ours. A dot is put in: of what is left when something is taken out, a mark could be
 * made.
 */
export function withoutForgedMarks(text: string): string {
  return text.replaceAll(/(<!--\s*\/?)(?=offstage)/gu, "$1.");
}
