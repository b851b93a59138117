import { stripVTControlCharacters } from "node:util";

/**
 * Makes untrusted text safe to print. An agent's text can contain escape sequences that move the cursor or write to
 * the clipboard, and characters that reverse the direction of text (Unicode Standard Annex #9), end a line without a
 * line feed, or are invisible. Line feeds and tabs stay.
 */
export function printable(text: string): string {
  return (
    stripVTControlCharacters(text)
      // oxlint-disable-next-line no-control-regex
      .replaceAll(/\r\n?|[\u000b\u000c\u0085\u2028\u2029]/gu, "\n")
      // oxlint-disable-next-line no-control-regex
      .replaceAll(/[\u0000-\u0008\u000e-\u001f\u007f-\u009f]/gu, "")
      .replaceAll(unseen, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
  );
}

/**
 * Direction marks and overrides, zero-width spaces, fillers and tags. The joiners that some scripts and emoji need
 * are not included.
 */
const unseen =
  // oxlint-disable-next-line no-misleading-character-class -- each stands for itself
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Puts text with several lines on one line. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/gu, " ⏎ ").trim();
}

/** Indents the second and later lines of text further than any line of Offstage's own. */
export function indented(text: string): string {
  return text.replaceAll("\n", "\n      ");
}
