import { markdownParts } from "./markdown-parts.ts";

/** A call of Offstage in a text. */
export interface Mention {
  /** The automation that is to be started; null: none is named. */
  readonly macro: string | null;
}

/**
 * Finds the first mention in a comment's Markdown: `@name` anywhere, `/name` at the beginning of a line. Not in code,
 * quotations and HTML comments: these show others' texts, or nothing. Not as part of another word, address or path.
 * @param name without the `@`
 */
export function findMention(markdown: string, name: string): Mention | null {
  const word = name.replaceAll(/[.*+?^${}()|[\]\\]/gu, String.raw`\$&`);
  // Most texts don't have the word, and need not be parsed. An HTML comment may be within it.
  // eslint-disable-next-line security/detect-non-literal-regexp -- The name is escaped.
  if (!markdown.includes("<!--") && !new RegExp(`[@/]${word}`, "iu").test(markdown)) return null;
  const said = ownWords(markdown);
  // eslint-disable-next-line security/detect-non-literal-regexp -- The name is escaped.
  const pattern = new RegExp(
    String.raw`(?:(?<![\p{L}\p{N}_@./\\+-])@|(?<=^[ \t]{0,3})/)${word}(?![\p{L}\p{N}_-]|[./@:][\p{L}\p{N}_])`,
    "imu",
  );
  const found = pattern.exec(said);
  if (found === null) return null;
  const after = said.slice(found.index + found[0].length);
  const [, macro = null] = /^[ \t]*!([a-z0-9][a-z0-9_-]{0,99})(?![\p{L}\p{N}_-])/iu.exec(after) ?? [];
  return { macro };
}

/**
 * The part of a comment that its author says to a reader: without HTML comments, which are not shown, and without
 * quotations. An HTML comment within code is shown, and stays.
 */
export function instructionOf(markdown: string): { readonly text: string; readonly quoted: string } {
  const shown = markdownParts(markdown).filter(({ kind }) => kind !== "comment");
  const pick = (quoted: boolean): string =>
    shown
      .filter(({ isQuoted }) => isQuoted === quoted)
      .map(({ text }) => text)
      .join("")
      .trim();
  return { text: pick(false), quoted: pick(true) };
}

/** A text without everything that its author does not say: quotations, comments, and code, which leaves a backtick. */
function ownWords(markdown: string): string {
  const shown = markdownParts(markdown).filter(({ kind, isQuoted }) => kind !== "comment" && !isQuoted);
  const text = shown
    .map((part) => (part.kind === "words" ? part.text : part.text.endsWith("\n") ? "`\n" : "`"))
    .join("");
  // An attribute has no `<`, or each of many beginnings would be looked through to the text's end.
  return text.replaceAll(/<(pre|code)(?=[\s/>])[^<>]*>[^]*?(?:<\/\1\s*>|$)/giu, "`");
}
