import { SessionError } from "../../domain/errors/errors.ts";
import { DamagedMirrorError, isDamage } from "./damage.ts";
import { sshError } from "./ssh.ts";

/** Words by which a server says with any status that it was asked too often, in its own lines alone: a repository may be called so. */
const askedTooOften = /^(?:remote:|fatal: remote error:).*(?:rate limit|too many requests|abuse detection)/imu;

/**
 * Words that say that there is no such repository: git's own, and those of a server about the repository. In its other lines (`remote:`)
 * a server says what else it misses.
 */
const missing =
  /^(?!remote:).*(?:not found|does not exist|does not appear to be a git repository|returned error: 404)|^remote:.{0,200}\b(?:repository|project)\b.{0,200}(?:not found|not be found|does not exist)/imu;

/** Git's message if a remote has another object format than the repository in which it runs. */
const otherFormat =
  /^fatal: (?:mismatched algorithms: client \w+; server \w+|.{0,40}does not support this repository's (?:object format|hash algorithm))/mu;

/**
 * A remote that was recreated with another object format (git-init(1), `--object-format`): the objects that this worker
 * has of it can be neither fetched nor pushed any more.
 */
export class OtherFormatError extends SessionError {
  constructor(url: string) {
    super({
      code: "repository_unreachable",
      reason: `The repository ${url} was made anew with another object format (SHA-1 or SHA-256), and this worker still has sessions of the earlier one.`,
      retryable: true,
      passing: false,
      remedy:
        "The work of earlier sessions can't be pushed there: take it from their diffs. Delete them, then start a new session.",
    });
  }
}

/**
 * Turns git's error about a remote into a failure that says what to do.
 * @param stderr of git
 * @param retryAfterMs of git's result: a server that says when to come back refuses nothing for good
 */
export function remoteError(url: string, stderr: string, retryAfterMs: number | null = null): SessionError {
  const bySsh = sshError(url, stderr);
  if (bySsh !== null) return bySsh;
  if (otherFormat.test(stderr)) return new OtherFormatError(url);
  if (isDamage(stderr)) return new DamagedMirrorError(stderr);
  const lastLines = stderr.trim().split("\n").slice(-3).join(" ").slice(-500);
  const said = withoutAddresses(stderr);
  if (retryAfterMs !== null || askedTooOften.test(said)) return unreachable(url, lastLines, true, retryAfterMs);
  if (missing.test(said)) {
    return new SessionError({
      code: "repository_not_found",
      reason: `The repository ${url} was not found, or the configured token may not see it.`,
      retryable: false,
      remedy: "Check the address; for a private repository give the server a token that can read it.",
    });
  }
  if (/returned error: 30[1278]/u.test(said)) {
    return new SessionError({
      code: "repository_not_found",
      reason: `The repository ${url} has moved: its server answered with a redirect, which is not followed.`,
      retryable: false,
      remedy:
        "Start a session with the repository's new address: it was moved or renamed, or its address begins with https://.",
    });
  }
  if (
    refusedByWords(said) ||
    /authentication failed|could not read username|returned error: 40[13]|permission denied|access denied/iu.test(said)
  ) {
    const words = serversWords(stderr);
    return new SessionError({
      code: "repository_access_denied",
      reason: `The repository ${url} refused access${words === "" ? "." : `: ${words}`}`,
      retryable: false,
      remedy: "Give the server a token for this forge that can read and write the repository (docs/forges.md).",
    });
  }
  // Of requests that are refused those pass of which RFC 9110 says so: a timeout, a conflict, a lock, one that came too early or too often.
  const refused = /returned error: 4(?!08|09|21|23|25|29)\d\d[^\n]*/iu.exec(said)?.[0];
  if (refused !== undefined) {
    return new SessionError({
      code: "push_rejected",
      reason: `The server of ${url} refused what git sent: the request ${refused.trim()}`,
      retryable: false,
      remedy:
        "For 413, raise the size of requests that the server, or the proxy before it, takes; for 411, let it take requests in chunks. Then retry.",
    });
  }
  const ofProxy = /CONNECT tunnel failed, response (40[37])|HTTP code (40[37]) from proxy/u.exec(said);
  if (ofProxy !== null) return refusedByProxy(url, ofProxy[1] ?? ofProxy[2] ?? "");
  // An untrusted certificate stays so until a person acts.
  return unreachable(url, lastLines, !/ certificate /iu.test(said));
}

/**
 * A message of git or git-lfs without the addresses that it quotes: a repository's name may match the searched words.
 */
export function withoutAddresses(said: string): string {
  return said.replaceAll(/\b(?:https?|ssh):\/\/[^\s'"]+/giu, "");
}

const refusal = /read.only|not allowed|not permitted|denied|not authori[sz]ed|unauthori[sz]ed|forbidden|write access/iu;

/**
 * Whether a server over ssh closed the connection with words of a refusal, as for a deploy key that may only read: git itself says the
 * same of any end of a connection.
 */
function refusedByWords(stderr: string): boolean {
  if (!/^fatal: Could not read from remote repository/mu.test(stderr) || /temporar|try again/iu.test(stderr))
    return false;
  const lines = stderr.split("\n").filter((line) => !/^(?:fatal|ssh): /u.test(line));
  return lines.some((line) => refusal.test(line));
}

/** The server's message for people, in separate lines; empty if there is none. */
function serversWords(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => /^(?:remote:|ERROR:|FATAL:)/u.test(line));
  return lines
    .map((line) => line.replace(/^remote: ?/u, "").trim())
    .filter((line) => line !== "")
    .join(" ")
    .slice(0, 500);
}

/** A policy, or a password: neither changes by itself. @param status of the proxy's answer to CONNECT (RFC 9110, section 9.3.6) */
function refusedByProxy(url: string, status: string): SessionError {
  return new SessionError({
    code: "repository_unreachable",
    reason: `The proxy does not let git through to the repository ${url}: it answered ${status}.`,
    retryable: true,
    passing: false,
    remedy:
      status === "407"
        ? "Correct the name and the password in HTTPS_PROXY, then retry."
        : "Have the repository's host allowed on the proxy, or name it in NO_PROXY; then retry.",
  });
}

function unreachable(url: string, words: string, passing: boolean, retryAfterMs: number | null = null): SessionError {
  return new SessionError({
    code: "repository_unreachable",
    reason: `The repository ${url} could not be reached: ${words}`,
    retryable: true,
    passing,
    remedy: "Check the host's name and that the server can reach it, then retry.",
    ...(retryAfterMs !== null && { retryAfterMs }),
  });
}
