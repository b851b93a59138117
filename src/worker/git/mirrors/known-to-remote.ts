import { git, tooSlow, withinMs } from "../git.ts";
import { remoteOptions, transferLimits, type Mirror } from "./mirror.ts";
import { remoteError } from "../remote-error.ts";

/** Bounds on the question; the answer is a line for each place at which own commits begin, of which there are few. */
const most = { bytes: 1024 ** 2, ms: 5 * 60_000 };
/** git's words about a server that can't be asked: it does not speak version 2 of the protocol, or without `wait-for-done`. */
const cannotBeAsked = /negotiate-only|wait-for-done/u;

/**
 * Asks a remote which commits of a history without merges it has: on whatever branch, and also if that has moved on or is gone. Nothing is
 * fetched: git names commits as before a fetch, and the remote says which it has (git-fetch(1), --negotiate-only).
 * @param head the newest commit of the history, which the mirror has; git stops asking at the first commit that the remote has, so of
 *   a history with merges this may be on one side of them only
 * @returns commits of the remote, which has all that they lead to as well; null if its server can't be asked
 * @throws SessionError repository_*
 */
export async function knownToRemote(mirror: Mirror, head: string, signal: AbortSignal): Promise<string[] | null> {
  const options = { ...(await remoteOptions(mirror, signal)), maximumOutput: most.bytes };
  const limitMs = Math.min(most.ms, transferLimits(mirror).ms);
  const negotiate = ["fetch", "--no-tags", "--no-write-fetch-head", "--negotiate-only"];
  const { code, stdout, stderr, retryAfterMs } = await withinMs(
    limitMs,
    options,
    () => tooSlow(mirror.url, "question for commits to", limitMs),
    (bounded) => git([...negotiate, `--negotiation-tip=${head}`, mirror.url], bounded),
  );
  if (code === 0) return [...stdout.matchAll(/^[0-9a-f]{40,64}$/gmu)].map(([sha]) => sha);
  if (cannotBeAsked.test(stderr)) return null;
  throw remoteError(mirror.url, stderr, retryAfterMs);
}
