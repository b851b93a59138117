/** Invisible, and no part of a name: https://www.unicode.org/charts/PDF/U2000.pdf. */
const zeroWidthSpace = "\u{200b}";

/**
 * A text of an agent as a quotation without effects: it has no mention that notifies a person or calls a program, in
 * any notation, and no line that is a command.
 * @param most characters; a longer text is cut
 */
export function quoted(text: string, most = 1_500): string {
  const short = text.length > most ? `${text.slice(0, most).toWellFormed()} …` : text;
  return harmless(short.trim())
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n");
}

/**
 * A text of an agent that does nothing where it is shown, and reads as it was: no `@name` in it is a mention, and no image is fetched, which
 * would carry what the agent writes into its address past every egress rule, out of each reader's browser. So nothing is HTML, and a link
 * shows where it leads. Forges look for mentions in what they rendered.
 */
export function harmless(text: string): string {
  return (
    text
      .replaceAll(/\r\n?/gu, "\n")
      .replaceAll(/@|&(?:#0*64|#x0*40|commat);?/giu, `@${zeroWidthSpace}`)
      // https://spec.commonmark.org/0.31.2/: a tag, a comment and an autolink have something right after `<`, an image `[` after `!`, a link
      // and a definition of one `(` and `:` after `]`.
      .replaceAll("<", `<${zeroWidthSpace}`)
      .replaceAll(/!(?=\[)|\](?=[(:[])/gu, `$&${zeroWidthSpace}`)
  );
}
