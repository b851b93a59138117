import { z } from "zod";

/**
 * Schema of a text that PostgreSQL and every JSON reader can store: well-formed Unicode without NUL, not empty.
 * @param maximumLength in UTF-16 units
 */
export function text(maximumLength: number) {
  return optionalText(maximumLength).min(1, "must not be empty");
}

/** Like `text`, but the text may be empty. @param maximumLength in UTF-16 units */
export function optionalText(maximumLength: number) {
  return z
    .string()
    .max(maximumLength, `must be at most ${maximumLength.toLocaleString("en")} characters`)
    .refine((value) => value.isWellFormed(), "must be valid Unicode: it has half of a surrogate pair")
    .refine((value) => !value.includes("\0"), "must not contain NUL (U+0000)");
}

/**
 * Makes a program's output storable in PostgreSQL: replaces NUL by its visible sign (U+2400), and each half of a
 * surrogate pair, which a cut may leave, by U+FFFD.
 */
export function storable(value: string): string {
  return value.replaceAll("\0", "\u2400").toWellFormed();
}

/** Serializes a value to JSON with every text in it made `storable`. */
export function storableJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (typeof inner === "string" ? storable(inner) : inner));
}

/** Cuts a text after a word to at most `maximumLength` UTF-16 units, never inside a character. */
export function cutAtWord(value: string, maximumLength: number): string {
  if (value.length <= maximumLength) return value;
  const head = value.slice(0, maximumLength + 1);
  const space = head.search(/\s\S*$/u);
  const cut = space > maximumLength / 2 ? head.slice(0, space) : head.slice(0, maximumLength);
  // A cut between the halves of a surrogate pair leaves half a character: drop it.
  return (cut.isWellFormed() ? cut : cut.slice(0, -1)).trimEnd();
}

/**
 * Shortens a text by its middle, because the last lines of an output say most. The result is well-formed and has no
 * NUL.
 * @param maximumLength UTF-16 units to keep, without those of the line that says how many were left out
 */
export function cutMiddle(value: string, maximumLength: number): string {
  const clean = storable(value);
  if (clean.length <= maximumLength) return clean;
  const head = clean.slice(0, Math.floor(maximumLength / 2));
  const tail = clean.slice(-Math.ceil(maximumLength / 2));
  return `${head}\n[… ${clean.length - maximumLength} characters left out …]\n${tail}`.toWellFormed();
}

/** The first of several texts for a sentence, and how many more there are: `a, b, and 3 more`. */
export function firstOf(texts: readonly string[], most: number, separator = ", "): string {
  const first = texts.slice(0, most);
  return (texts.length > most ? [...first, `and ${texts.length - most} more`] : first).join(separator);
}
