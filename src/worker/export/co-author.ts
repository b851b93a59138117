import type { Identity } from "../git/git.ts";

/** White space, control characters, marks that turn the direction of writing, and what ends a name (git-interpret-trailers(1)). */
const unfit = /[\s\p{Cc}\u202A-\u202E\u2066-\u2069<>]+/gu;

/**
 * The end of a commit's message that names who asked for the work: name and address are as a sign-in provider sent them.
 * @returns empty if there is nobody to name, or the address is none that a trailer can have
 */
export function coAuthorTrailer(person: Identity | null): string {
  if (person === null || !/^[^\s<>\p{Cc}]+@[^\s<>\p{Cc}]+$/u.test(person.email)) return "";
  const name = person.name.replaceAll(unfit, " ").trim();
  return `\n\nCo-authored-by: ${name === "" ? person.email.replace(/@.*$/u, "") : name} <${person.email}>`;
}
