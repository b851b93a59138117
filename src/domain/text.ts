import { z } from "zod";

/** Text as PostgreSQL and every JSON reader can hold it: well-formed Unicode without NUL. */
export function text(maximumLength: number) {
  return optionalText(maximumLength).min(1, "must not be empty");
}

/** The same, and it may be empty. */
export function optionalText(maximumLength: number) {
  return z
    .string()
    .max(maximumLength, `must be at most ${maximumLength.toLocaleString("en")} characters`)
    .refine((value) => value.isWellFormed(), "must be valid Unicode: it has half of a surrogate pair")
    .refine((value) => !value.includes("\0"), "must not contain NUL (U+0000)");
}

/** What a program said, as PostgreSQL can hold it: a cut may have left half of a character, and NUL is shown as a sign. */
export function storable(value: string): string {
  return value.replaceAll("\0", "\u2400").toWellFormed();
}

/** The same for every text within a value that becomes JSON. */
export function storableJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (typeof inner === "string" ? storable(inner) : inner));
}

/** Cuts at a word to at most `maximumLength` UTF-16 units, never inside a character. */
export function cutAtWord(value: string, maximumLength: number): string {
  if (value.length <= maximumLength) return value;
  const head = value.slice(0, maximumLength + 1);
  const space = head.search(/\s\S*$/u);
  const cut = space > maximumLength / 2 ? head.slice(0, space) : head.slice(0, maximumLength);
  // A cut between the halves of a surrogate pair leaves half a character: drop it.
  return (cut.isWellFormed() ? cut : cut.slice(0, -1)).trimEnd();
}

/** Keeps both ends, for output whose last lines tell most. The result is well-formed and holds no NUL. */
export function cutMiddle(value: string, maximumLength: number): string {
  const clean = storable(value);
  if (clean.length <= maximumLength) return clean;
  const head = clean.slice(0, Math.floor(maximumLength / 2));
  const tail = clean.slice(-Math.ceil(maximumLength / 2));
  return `${head}\n[… ${clean.length - maximumLength} characters left out …]\n${tail}`.toWellFormed();
}
