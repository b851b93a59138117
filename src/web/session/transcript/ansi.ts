import { AnsiUp } from "ansi_up";

/** Lines that are converted together. */
const chunkLines = 200;
// oxlint-disable-next-line no-control-regex -- it is what controls colours
const colourCodes = /\u001b\[([\d;]*)m/gu;

/** A piece of a terminal's output: some lines, with the colours that were set before them. */
export interface OutputChunk {
  readonly lines: number;
  readonly text: string;
}

/** Cuts a terminal's output into pieces, each of which can be converted by itself. */
export function chunksOf(output: string): OutputChunk[] {
  const lines = output.replace(/\n$/u, "").split("\n");
  const chunks: OutputChunk[] = [];
  let set = "";
  for (let from = 0; from < lines.length; from += chunkLines) {
    const some = lines.slice(from, from + chunkLines);
    const text = some.join("\n");
    chunks.push({ lines: some.length, text: set + text });
    for (const [code, numbers] of text.matchAll(colourCodes)) set = numbers === "" || numbers === "0" ? "" : set + code;
  }
  return chunks;
}

/** Styles of the library's for which there is a class. */
const classes: readonly (readonly [style: string, name: string])[] = [
  ["font-weight:bold", "ansi-bold"],
  ["opacity:", "ansi-faint"],
  ["font-style:italic", "ansi-italic"],
  ["text-decoration:underline", "ansi-underline"],
];

/**
 * Output with its colours as classes, which are readable on every ground. Colours beyond the sixteen, which are for one ground alone, are
 * left out. The library escapes HTML in it, quotation marks too.
 */
export function ansiHtml(text: string): string {
  const ansi = new AnsiUp();
  ansi.use_classes = true;
  return ansi
    .ansi_to_html(text)
    .replaceAll(/<span style="([^"]*)"(?: class="([^"]*)")?/gu, (_, style: string, known = "") => {
      const names = classes.flatMap(([part, name]) => (style.includes(part) ? [name] : []));
      return `<span class="${[known, ...names].join(" ").trim()}"`;
    });
}
