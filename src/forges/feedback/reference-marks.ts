// Marks of our own in texts of Bitbucket. It shows HTML comments: Data Center escapes all HTML
// (https://confluence.atlassian.com/bitbucketserver/markdown-syntax-guide-776639995.html), and so does Cloud, by Python-Markdown. A link's
// definition that nothing refers to is shown by neither, nor by any CommonMark (section 4.7). It can't interrupt a paragraph, so there is an
// empty line on both of its sides.

/** The content of a mark, such as `offstage session=… commit=…` and `/offstage`; no bracket, which would end it. */
const content = String.raw`\/?offstage\b[^()<>\n\r]*`;
const commentMark = new RegExp(`<!-- (${content}) -->`, "gu");
const referenceMark = new RegExp(String.raw`(?:\r?\n){0,2}^\[\/\/\]: # \((${content})\)[ \t]*$(?:\r?\n){0,2}`, "gmu");
const commentsKey = new RegExp(String.raw`^\[\/\/\]: # \((offstage comment=[^()<>\n\r]*)\)[ \t]*$`, "gmu");
/** A forged mark by an agent, which knows the form of ours. */
const forged = /\[\/\/\]: # \((?=\/?offstage)/gu;

/** A text with our marks, which are HTML comments, as Bitbucket gets it: with marks that it does not show. */
export function withReferenceMarks(text: string): string {
  const own = text.replaceAll(forged, "[//]: # (- ").replaceAll(commentMark, "\n\n[//]: # ($1)\n\n");
  return own === text ? text : own.replace(/\n+$/u, "");
}

/** A text of Bitbucket with our marks as HTML comments, which the rest of Offstage knows. */
export function withCommentMarks(text: string): string {
  return text.replaceAll(referenceMark, "<!-- $1 -->");
}

/**
 * A comment of Bitbucket with its mark as an HTML comment. Its lines stay what they are, since the mark must have its
 * own line.
 */
export function commentWithMark(text: string): string {
  return text.replaceAll(commentsKey, "<!-- $1 -->");
}
