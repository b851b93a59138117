import { markdownParts } from "./markdown-parts.ts";

/** A call of Offstage in a text. */
export interface Mention {
  /** The automation that is to be started; null: none is named. */
  readonly macro: string | null;
}

/** Letters of scripts that put no space between words: a name in Latin letters ends beside them. */
const unspaced = ["Han", "Hira", "Kana", "Bopo", "Hang", "Thai", "Laoo", "Khmr", "Mymr"]
  .map((script) => String.raw`\p{scx=${script}}`)
  .join("");
/** What would make the name a part of another word, address or path beside which it stands. */
const joining = (more: string): string => String.raw`(?![${unspaced}])[\p{L}\p{N}_${more}]`;

// eslint-disable-next-line security/detect-non-literal-regexp -- Nothing in it comes from outside.
const macroMark = new RegExp(String.raw`^[ \t]*!([a-z0-9][a-z0-9_-]{0,99})(?!${joining("-")})`, "iu");

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
    String.raw`(?:(?<!${joining(String.raw`@./\\+-`)})@|(?<=^[ \t]{0,3})/)${word}(?!${joining("-")}|[./@:]${joining("")})`,
    "imu",
  );
  const found = pattern.exec(said);
  if (found === null) return null;
  const after = said.slice(found.index + found[0].length);
  const [, macro = null] = macroMark.exec(after) ?? [];
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
