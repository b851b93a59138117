import { setTimeout as pause } from "node:timers/promises";
import { SessionError } from "../domain/errors/errors.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../domain/repositories/repository.ts";
import { backoffMs } from "../domain/time/backoff.ts";
import type { ForgeAnswer } from "./http.ts";
import type { RepositoryCall } from "./pull-requests.ts";
import { wordsOf } from "./refusal.ts";

/** How long a forge may take to copy a repository, in ms; after that the session's next attempt goes on waiting. */
export const readyMs = 60_000;
/** Pauses between looks at a fork that is being made. */
export const waitingForFork = { fromMs: 500, toMs: 5_000, jitter: 0.5 };

/**
 * Waits until a fork has branches: forges make it in the background.
 * @param made the answer with the fork
 * @throws SessionError repository_access_denied if it is not a fork on this forge, forge_unavailable if it takes too long
 */
export async function readyFork(
  { host, webUrl, call }: { readonly host: string; readonly webUrl: string; readonly call: RepositoryCall },
  address: RepositoryAddress,
  made: ForgeAnswer,
  signal: AbortSignal,
): Promise<RepositoryAddress> {
  const { full_name: path = "" } = (made.body ?? {}) as { full_name?: string };
  const fork = parseRepositoryUrl(`${webUrl}/${path}`);
  if (isAddressProblem(fork) || fork.path.toLowerCase() === address.path.toLowerCase())
    throw notForked(host, address, made);
  const until = performance.now() + readyMs;
  for (let look = 1; ; look += 1) {
    const answer = await call(fork, "GET", "/branches?per_page=1&limit=1", signal);
    if (answer.status === 200 && Array.isArray(answer.body) && answer.body.length > 0) return fork;
    if (performance.now() >= until) throw notReady(host, fork);
    await pause(backoffMs(look, waitingForFork), undefined, { signal });
  }
}

/** The failure of a forge that takes too long to make a fork. */
export function notReady(host: string, { path }: RepositoryAddress): SessionError {
  return new SessionError({
    code: "forge_unavailable",
    reason: `${host} still copies the repository to its fork ${path}.`,
    retryable: true,
    remedy: "Retry in a moment: the work is kept.",
  });
}

/** The failure of a forge that does not make a fork. */
export function notForked(host: string, { path }: RepositoryAddress, { body }: ForgeAnswer): SessionError {
  return new SessionError({
    code: "repository_access_denied",
    reason: `The configured token may not push to ${path}, and ${host} made no fork of it: ${wordsOf(body)}`,
    retryable: false,
    remedy: "Give the server a token that may write to the repository or fork it (docs/forges.md), then retry.",
  });
}
