import { Readable } from "node:stream";
import { SessionError } from "../../domain/errors/errors.ts";
import { git, GitError } from "./git.ts";

/** Git's own words about a repository of this machine that it can't read. What a remote sent may be broken, too, and has other ones. */
const damageWords = [
  /^fatal: not a git repository \(or any/mu,
  /^(?:fatal|error): (?:unterminated|unexpected) line in \S*packed-refs/mu,
  /^(?:fatal|error): bad object refs\//mu,
  /^(?:fatal|error): (?:packed|loose) object [0-9a-f]+ \(stored in \S+\) is corrupt/mu,
  /^(?:fatal|error): object file \S+ is empty/mu,
  /^error: (?:packfile|index file|file) \S+ (?:does not match index|is too small|is far too short|cannot be |claims to have|is not a GIT packfile|index unavailable)/mu,
  /^(?:fatal|error): (?:unable to read (?:tree|sha1 file)|bad tree object|invalid object [0-9]+ [0-9a-f]+)/mu,
];

/** Whether git failed since it can't read what it has itself. @param said git's stderr */
export function isDamage(said: string): boolean {
  const own = said
    .split(/[\r\n]/u)
    .filter((line) => !line.startsWith("remote:"))
    .join("\n");
  return damageWords.some((words) => words.test(own));
}

/** A mirror could not be read: it is mended before the next attempt. */
export class DamagedMirrorError extends SessionError {
  /** @param said git's words */
  constructor(said: string) {
    const words = said.trim().split("\n").findLast(isDamage) ?? said.trim().slice(-200);
    super({
      code: "repository_unreachable",
      reason: `This worker's own copy of the repository is damaged: ${words.trim().slice(0, 300)}`,
      retryable: true,
      remedy: "Nothing: what can't be read is fetched again. If this comes again and again, check the worker's disk.",
    });
  }
}

/**
 * The damage of a mirror that an error tells of, by git's words about what the server itself reads; null if it tells of none. What quotes a
 * sandbox's words does not count: see `quotesDamage`.
 */
export function damageOf(error: unknown): DamagedMirrorError | null {
  if (error instanceof DamagedMirrorError) return error;
  return error instanceof GitError && isDamage(error.said) ? new DamagedMirrorError(error.said) : null;
}

/**
 * Whether a message quotes git's words about damage, from a clone that an agent had: of the mirror that it borrows from, or of what is the
 * clone's own. An agent may also have made them up.
 */
export function quotesDamage(message: string): boolean {
  return isDamage(message.replaceAll(/: (?=(?:fatal|error): )/gu, "\n"));
}

/** Most objects that are looked for in a mirror, and longest time for that, in ms. */
const mostObjects = 8;
const lookMs = 30_000;

/**
 * Looks into a mirror for the objects that a message names, since `quotesDamage`. That the mirror lacks one is no damage: an agent may name any.
 * @param mirror its path
 * @returns null if git says of none that it can't read it, or does not end in time
 */
export async function damageIn(mirror: string, message: string): Promise<DamagedMirrorError | null> {
  const named = [...new Set(message.match(/\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b/gu))].slice(-mostObjects);
  const input = Readable.from(named.map((sha) => `${sha}\n`));
  const options = { cwd: mirror, signal: AbortSignal.timeout(lookMs), input, onOutput: () => undefined };
  // All of their content is read: else git says only that they are there.
  const { stderr } = await git(["cat-file", "--batch"], options).catch(() => ({ stderr: "" }));
  return isDamage(stderr) ? new DamagedMirrorError(stderr) : null;
}
