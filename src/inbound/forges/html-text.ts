import { Parser } from "htmlparser2";

/** Elements that begin on a new line. */
const blocks: ReadonlySet<string> = new Set(
  "address article aside blockquote dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tr ul".split(
    " ",
  ),
);
/** Elements whose contents are not shown. */
const unseen: ReadonlySet<string> = new Set(["head", "script", "style", "template", "title"]);

/**
 * Converts a text from a service's editor, which the service delivers as HTML, to Markdown that keeps code and
 * quotations, so that both are recognized. A text without HTML stays as it is.
 */
export function textOfHtml(html: string): string {
  if (!/<[a-z!/]|&(?:[a-z]|#)/iu.test(html)) return html;
  const writer = new Writer();
  const parser = new Parser({
    onopentag: (name) => writer.open(name),
    ontext: (text) => writer.add(text),
    onclosetag: (name) => writer.close(name),
  });
  parser.end(html);
  return writer.end();
}

class Writer {
  private readonly lines: string[] = [];
  private line = "";
  private quotations = 0;
  private hidden = 0;
  /** The contents of code that is open; null: none is. */
  private code: { readonly isBlock: boolean; text: string } | null = null;
  private codeDepth = 0;

  open(name: string): void {
    if (unseen.has(name)) this.hidden += 1;
    if (this.code !== null) {
      if (name === "br") this.code.text += "\n";
      if (name === "code" || name === "pre") this.codeDepth += 1;
      return;
    }
    if (name === "br") this.breakLine();
    if (blocks.has(name)) this.endLine();
    if (name === "blockquote") this.quotations += 1;
    if (name === "li") this.line += "- ";
    if (name === "code" || name === "pre") {
      this.code = { isBlock: name === "pre", text: "" };
      this.codeDepth = 1;
    }
  }

  add(text: string): void {
    if (this.hidden > 0) return;
    if (this.code !== null) this.code.text += text;
    else this.line += text.replaceAll(/\s+/gu, " ");
  }

  close(name: string): void {
    if (unseen.has(name)) this.hidden -= 1;
    if (name === "code" || name === "pre") {
      this.codeDepth -= 1;
      if (this.codeDepth === 0) this.endCode();
    }
    if (this.code !== null || !blocks.has(name)) return;
    this.endLine();
    if (name !== "blockquote") return;
    this.quotations -= 1;
    // Else what follows would go on with the quotation.
    this.lines.push("");
  }

  end(): string {
    this.endCode();
    this.endLine();
    return this.lines.join("\n").trim();
  }

  private endCode(): void {
    if (this.code === null) return;
    const { isBlock, text } = this.code;
    this.code = null;
    const longest = Math.max(0, ...[...text.matchAll(/`+/gu)].map(([run]) => run.length));
    if (!isBlock) {
      const marks = "`".repeat(longest + 1);
      this.line += `${marks} ${text.replaceAll(/\s+/gu, " ")} ${marks}`;
      return;
    }
    this.endLine();
    const marks = "`".repeat(Math.max(3, longest + 1));
    for (const line of [marks, ...text.replaceAll(/\r\n?/gu, "\n").split("\n"), marks]) this.push(line);
  }

  private endLine(): void {
    if (this.line.trim() === "") this.line = "";
    else this.breakLine();
  }

  private breakLine(): void {
    this.push(this.line.trim());
    this.line = "";
  }

  private push(line: string): void {
    this.lines.push(`${"> ".repeat(this.quotations)}${line}`);
  }
}
