/** A piece of a comment's Markdown. */
export interface MarkdownPart {
  readonly text: string;
  readonly kind: "words" | "code" | "comment";
  /** Whether it is a part of a block quotation. */
  readonly isQuoted: boolean;
}

/**
 * Takes Markdown apart into code, HTML comments, and everything else, as CommonMark does (https://spec.commonmark.org/0.31.2/): whichever
 * begins first counts, so that a comment's beginning in code begins none. Put together, the parts are the text, but for `\r`. A line below a
 * quotation that has no `>` is its author's own, whatever a renderer makes of it. In time proportional to the length.
 */
export function markdownParts(markdown: string): MarkdownPart[] {
  const reader = new MarkdownReader();
  const text = markdown.replaceAll(/\r\n?/gu, "\n");
  for (let from = 0; from < text.length;) {
    const end = text.indexOf("\n", from);
    const to = end === -1 ? text.length : end + 1;
    reader.read(text.slice(from, to));
    from = to;
  }
  return reader.end();
}

const quoteMarks = /^(?: {0,3}>)+ ?/u;
const listMarks = /^(?:[ \t]*(?:[-*+]|\d{1,9}[.)])(?=[ \t]))+[ \t]{1,4}/u;
const codeFenceMarks = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/u;
/** Elements whose contents are literal until they are closed. */
const literalStart = /^ {0,3}<(?:pre|script|style|textarea)(?=[\s>])/iu;
const literalEnd = /<\/(?:pre|script|style|textarea)>/iu;
/** Elements that make a block of HTML, to a blank line. */
const blockStart =
  /^ {0,3}<\/?(?:address|article|aside|blockquote|body|center|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|html|iframe|legend|li|link|main|menu|nav|ol|p|section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul)(?=[\s/>])/iu;
/** A line that is one tag alone is such a block too, but can't interrupt a paragraph. */
const tagAlone = /^ {0,3}<\/?[a-z][a-z0-9-]*(?:\s[^<>]*)?>\s*$/iu;

/** A line across, or below a heading. */
const across = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/u;
const belowHeading = /^ {0,3}=+$/u;

/** Reads lines one after the other, and knows in which block it is. */
class MarkdownReader {
  private readonly parts: MarkdownPart[] = [];
  private isQuoted = false;
  /** The code fence that is open. */
  private codeFence: string | null = null;
  /** Whether a comment is open that began at a line's beginning, or in HTML: it goes to its end, or the text's. */
  private isInComment = false;
  private html: "none" | "literal" | "block" = "none";
  /** Lines of a paragraph, in which code may go over several. */
  private paragraph: string[] = [];
  /** Whether an indented line is code: it can't interrupt a paragraph. */
  private mayIndent = true;
  /** The column at which the text of the last list item begins; 0: there is none. */
  private listIndent = 0;
  /** Likewise of the list item in which the code fence or HTML began: they end with it. */
  private openIndent = 0;

  read(line: string): void {
    const isQuote = /^ {0,3}>/u.test(line);
    if (!this.isQuoted) this.leaveItem(line);
    const isOpen = this.codeFence !== null || this.isInComment || this.html === "literal";
    // What is open outside of a quotation takes lines that look like one; what is open in one ends with it.
    if (isQuote !== this.isQuoted && (this.isQuoted || !isOpen)) this.begin(isQuote);
    const marks = this.isQuoted ? (quoteMarks.exec(line)?.[0] ?? "") : "";
    if (marks !== "" && this.paragraph.length === 0) this.add(marks, "words");
    if (this.isQuoted) this.leaveItem(line.slice(marks.length));
    this.readInside(line.slice(marks.length), this.paragraph.length === 0 ? "" : marks);
  }

  end(): MarkdownPart[] {
    this.endParagraph();
    return this.parts;
  }

  /** Begins a quotation, or the text after one. */
  private begin(isQuoted: boolean): void {
    this.endParagraph();
    this.isQuoted = isQuoted;
    this.codeFence = null;
    this.isInComment = false;
    this.html = "none";
    this.mayIndent = true;
    this.listIndent = 0;
    this.openIndent = 0;
  }

  private leaveItem(line: string): void {
    if (line.trim() === "" || indentOf(line) >= this.openIndent) return;
    this.openIndent = 0;
    this.codeFence = null;
    this.html = "none";
  }

  /** @param before marks of a quotation that are not added yet, since they may be within code of several lines */
  private readInside(line: string, before: string): void {
    if (this.codeFence !== null) {
      this.add(line, "code");
      if (isCodeFenceEnd(line, this.codeFence, this.openIndent)) this.codeFence = null;
      return;
    }
    if (this.isInComment || this.html === "literal") return this.addHtml(line);
    if (line.trim() === "") {
      this.endParagraph();
      this.html = "none";
      this.mayIndent = true;
      return this.add(before + line, "words");
    }
    if (this.html === "block") return this.addHtml(line);
    if (this.mayIndent && indentOf(line) >= this.listIndent + 4) return this.add(line, "code");
    this.readBlock(line, before);
  }

  private readBlock(line: string, before: string): void {
    const isRule = this.isRule(line);
    const marks = isRule ? "" : (listMarks.exec(line)?.[0] ?? "");
    if (marks !== "") this.listIndent = indentOf(marks.replaceAll(/[^\t]/gu, " "));
    else if (this.mayIndent && indentOf(line) === 0) this.listIndent = 0;
    const blanks = Math.min(line.length - line.trimStart().length, this.listIndent);
    const inside = line.slice(marks === "" ? blanks : marks.length);
    const codeFence = codeFenceMarks.exec(inside)?.[1];
    const isBlock = blockStart.test(inside) || ((marks !== "" || this.paragraph.length === 0) && tagAlone.test(inside));
    const isHtml = /^\s*<!--/u.test(inside) || literalStart.test(inside) || isBlock;
    const isHeading = isRule || /^ {0,3}#{1,6}\s/u.test(inside);
    const isBlockOfItsOwn = codeFence !== undefined || isHtml || isHeading;
    // It is no part of the list item before it, however soon it follows that.
    if (marks === "" && isBlockOfItsOwn && indentOf(line) < this.listIndent) this.listIndent = 0;
    const isBeginning = isBlockOfItsOwn || marks !== "";
    if (isBeginning) {
      this.endParagraph();
      this.add(before, "words");
    }
    this.mayIndent = isBlockOfItsOwn;
    if (codeFence !== undefined || isHtml) this.openIndent = this.listIndent;
    if (codeFence !== undefined) {
      this.codeFence = codeFence;
      return this.add(line, "code");
    }
    if (!isHtml) {
      this.paragraph.push(isBeginning ? line : before + line);
      if (isHeading) this.endParagraph();
      return;
    }
    if (literalStart.test(inside)) this.html = "literal";
    else if (isBlock) this.html = "block";
    this.addHtml(line);
  }

  /** Whether a line without words ends the paragraph before it. */
  private isRule(line: string): boolean {
    const blanks = Math.min(line.length - line.trimStart().length, this.listIndent);
    const marks = line.slice(blanks).trimEnd();
    if (across.test(marks)) return true;
    return this.paragraph.length > 0 && indentOf(line) >= this.listIndent && belowHeading.test(marks);
  }

  /** A line of HTML: backticks make no code in it, and a comment goes on until it is closed. */
  private addHtml(line: string): void {
    let at = 0;
    while (at < line.length) {
      const mark = this.isInComment ? "-->" : "<!--";
      const found = line.indexOf(mark, at);
      // `<!-->` is a whole comment.
      const end = found === -1 ? line.length : this.isInComment ? found + mark.length : found;
      this.add(line.slice(at, end), this.isInComment ? "comment" : "words");
      if (found === -1) break;
      this.isInComment = !this.isInComment;
      at = end;
      if (!this.isInComment) continue;
      this.add("<!", "comment");
      at += "<!".length;
    }
    if (!this.isInComment && this.html === "literal" && literalEnd.test(line)) this.html = "none";
  }

  private endParagraph(): void {
    if (this.paragraph.length === 0) return;
    const text = this.paragraph.join("");
    this.paragraph = [];
    let added = 0;
    for (const { from, to, kind } of inlineParts(text)) {
      this.add(text.slice(added, from), "words");
      this.add(text.slice(from, to), kind);
      added = to;
    }
    this.add(text.slice(added), "words");
  }

  private add(text: string, kind: MarkdownPart["kind"]): void {
    const { isQuoted } = this;
    const last = this.parts.at(-1);
    if (text === "") return;
    if (last?.kind === kind && last.isQuoted === isQuoted)
      this.parts[this.parts.length - 1] = { ...last, text: last.text + text };
    else this.parts.push({ text, kind, isQuoted });
  }
}

/** @param within the column at which the text begins around it: what is indented by four more is code */
function isCodeFenceEnd(line: string, codeFence: string, within: number): boolean {
  const marks = line.trim();
  return (
    indentOf(line) < within + 4 &&
    marks.length >= codeFence.length &&
    marks === (codeFence[0] ?? "").repeat(marks.length)
  );
}

/** Columns of a line's indentation. */
function indentOf(line: string): number {
  let columns = 0;
  for (const character of line) {
    if (character === " ") columns += 1;
    else if (character === "\t") columns += 4 - (columns % 4);
    else break;
  }
  return columns;
}

interface InlinePart {
  readonly from: number;
  readonly to: number;
  readonly kind: "code" | "comment";
}

/** Code between backticks, and comments, of a paragraph: whichever begins first. What is not closed in it is neither. */
function inlineParts(text: string): InlinePart[] {
  const found: InlinePart[] = [];
  const ends = new BacktickRuns(text);
  const start = /\\[^]|`+|<!--/gu;
  const lastComment = text.lastIndexOf("-->");
  for (let match = start.exec(text); match !== null; match = start.exec(text)) {
    const { index: from } = match;
    const [marks] = match;
    if (marks.startsWith("\\")) continue;
    if (marks === "<!--") {
      if (lastComment < from + 2) continue;
      const to = text.indexOf("-->", from + 2) + 3;
      found.push({ from, to, kind: "comment" });
      start.lastIndex = to;
    } else {
      const to = ends.after(start.lastIndex, marks.length);
      if (to === null) continue;
      found.push({ from, to, kind: "code" });
      start.lastIndex = to;
    }
  }
  return found;
}

/** Ends of runs of backticks, by their length; asked for from the beginning to the end. */
class BacktickRuns {
  /** The last come first. */
  private readonly ends = new Map<number, number[]>();

  constructor(text: string) {
    for (let end = text.lastIndexOf("`") + 1; end > 0;) {
      let from = end;
      while (text[from - 1] === "`") from -= 1;
      const ends = this.ends.get(end - from);
      if (ends === undefined) this.ends.set(end - from, [end]);
      else ends.push(end);
      end = from === 0 ? 0 : text.lastIndexOf("`", from - 1) + 1;
    }
  }

  /** The end of the next run of the length that begins at the place or after it; null: there is none. */
  after(place: number, length: number): number | null {
    const ends = this.ends.get(length) ?? [];
    while ((ends.at(-1) ?? place + length) < place + length) ends.pop();
    return ends.at(-1) ?? null;
  }
}
