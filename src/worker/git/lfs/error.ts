import { SessionError } from "../../../domain/errors/errors.ts";
import { withoutAddresses } from "../remote-error.ts";
import { sshError } from "../ssh.ts";

/**
 * The messages of git-lfs (3.3) for passing failures. "Fatal error" is any status from 500 but 501, 507 and 509, by
 * which a server says that it has no LFS, no room or no more bandwidth for this owner; a number in brackets is the code
 * of one object's error. It panics at a 429 of a download that names no time, and of one that names a time it loses the server's words.
 */
const askedToWait = /^(?:batch response: )?LFS: Error$/mu;
const passing = [
  askedToWait,
  /\bFatal error:/u,
  /: \[(?:408|429|5(?!01|07|09)\d\d)\] /u,
  /^panic: /mu,
  /rate.?limit|too many|slow down|throttl|try again|temporar/iu,
  /dial tcp|connect to host|connection (?:refused|reset|closed|timed out)|broken pipe|could not resolve|no such host|network is unreachable/iu,
  /timed? ?out|TLS handshake|unexpected EOF|": EOF/iu,
];

/** Lines in which git-lfs says nothing of the reason. */
const ofNoReason =
  /^(?:fetch: |Errors logged to |Use `git lfs logs |error: failed to (?:fetch|push) some |goroutine |\t)/u;

/**
 * Why a transfer of files in LFS failed, by git-lfs's words: it has one exit code for all. Only what the words say passes is tried
 * again: what a server refuses, it refuses each time.
 * @param action end of the sentence "Files in LFS could not be"
 * @param said what git-lfs printed
 */
export function lfsError(url: string, action: "fetched from" | "uploaded to", said: string): SessionError {
  const bySsh = sshError(url, said);
  if (bySsh !== null) return bySsh;
  const withoutNames = withoutAddresses(said);
  const passes = passing.some((words) => words.test(withoutNames));
  const reasons = said.split("\n").filter((line) => line.trim() !== "" && !ofNoReason.test(line));
  const words = askedToWait.test(said)
    ? "its server answered 429 (too many requests), and did so again after the time that it named."
    : reasons.slice(-3).join(" ").slice(-700);
  return new SessionError({
    code: passes || action === "fetched from" ? "repository_unreachable" : "push_rejected",
    reason: `Files in LFS could not be ${action} ${url}: ${words}`,
    retryable: true,
    passing: passes,
    remedy: passes
      ? "Check the host's name and that the server can reach it, then retry."
      : "Give the server a token that may do that, or have what the words name changed there, such as a quota of LFS; then retry.",
  });
}
