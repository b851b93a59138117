/**
 * A comment with our mark at its end, an HTML comment that forges don't show: by it the comment is known again if the forge's answer
 * was lost. Marks in the text itself are made harmless, since an agent writes whatever it has read.
 * @param key nobody knows it before the comment is posted, such as a random UUID
 */
export function withCommentMark(text: string, key: string): string {
  return `${text.replaceAll(/<!--\s*\/?offstage/gu, "<!-- ")}\n${markOf(key)}`;
}

/** Whether it is the comment with the key. */
export function hasCommentMark(body: string, key: string): boolean {
  return body.trimEnd().endsWith(markOf(key));
}

function markOf(key: string): string {
  return `<!-- offstage comment=${key} -->`;
}
