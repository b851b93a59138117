import { SessionError } from "../../domain/errors/errors.ts";
import { sshError } from "./ssh.ts";

/** Words by which a server says with any status that it was asked too often, in its own lines alone: a repository may be called so. */
const askedTooOften = /^(?:remote:|fatal: remote error:).*(?:rate limit|too many requests|abuse detection)/imu;

/**
 * Turns git's error about a remote into a failure that tells the user what to do.
 * @param stderr of git
 */
export function remoteError(url: string, stderr: string): SessionError {
  const bySsh = sshError(url, stderr);
  if (bySsh !== null) return bySsh;
  const lastLines = stderr.trim().split("\n").slice(-3).join(" ").slice(-500);
  if (askedTooOften.test(stderr)) return unreachable(url, lastLines, true);
  if (/not found|does not exist|does not appear to be a git repository|returned error: 404/iu.test(stderr)) {
    return new SessionError({
      code: "repository_not_found",
      reason: `The repository ${url} was not found, or the configured token may not see it.`,
      retryable: false,
      remedy: "Check the address; for a private repository give the server a token that can read it.",
    });
  }
  if (/returned error: 30[1278]/u.test(stderr)) {
    return new SessionError({
      code: "repository_not_found",
      reason: `The repository ${url} has moved: its server answered with a redirect, which is not followed.`,
      retryable: false,
      remedy:
        "Start a session with the repository's new address: it was moved or renamed, or its address begins with https://.",
    });
  }
  if (
    /authentication failed|could not read username|returned error: 40[13]|permission denied|access denied/iu.test(
      stderr,
    )
  ) {
    return new SessionError({
      code: "repository_access_denied",
      reason: `The repository ${url} refused access.`,
      retryable: false,
      remedy: "Give the server a token for this forge that can read and write the repository (docs/forges.md).",
    });
  }
  const refused = /returned error: (?:400|413|422)[^\n]*/iu.exec(stderr)?.[0];
  if (refused !== undefined) {
    return new SessionError({
      code: "push_rejected",
      reason: `The server of ${url} refused what git sent: the request ${refused.trim()}`,
      retryable: false,
      remedy: "For 413, raise the size of requests that the server, or the proxy before it, takes; then retry.",
    });
  }
  // A host that nobody vouches for stays so until somebody does something.
  return unreachable(url, lastLines, !/certificate/iu.test(stderr));
}

function unreachable(url: string, words: string, passing: boolean): SessionError {
  return new SessionError({
    code: "repository_unreachable",
    reason: `The repository ${url} could not be reached: ${words}`,
    retryable: true,
    passing,
    remedy: "Check the host's name and that the server can reach it, then retry.",
  });
}
