import { SessionError } from "../../domain/errors/errors.ts";

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

/** Whether git failed since it can't read what it has itself. @param said git's stderr, or a message that quotes it */
export function isDamage(said: string): boolean {
  const own = said
    .replace(/^git \S+ failed: /u, "")
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
