/**
 * A comment with our mark at its end, an HTML comment that forges don't show: by it the comment is known again if the forge's answer
 * was lost. Marks in the text itself are made harmless, since an agent writes whatever it has read.
 * @param key nobody knows it before the comment is posted, such as a random UUID
 */
export function withCommentMark(text: string, key: string): string {
  return `${text.replaceAll(/<!--\s*\/?offstage/gu, "<!-- ")}\n${markOf(key)}`;
}

/** Whether it is the comment with the key: its last line is the mark alone. In a quotation of the comment, that line begins with `>`. */
export function hasCommentMark(body: string, key: string): boolean {
  return `\n${body.trimEnd()}`.endsWith(`\n${markOf(key)}`);
}

/**
 * The comment with the key among those of a list. Somebody may have copied it with its mark; nobody knew the key before ours was
 * posted, so of several the oldest is ours.
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
