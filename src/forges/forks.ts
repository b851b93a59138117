import type { RepositoryCall } from "./forge.ts";
import { setTimeout as pause } from "node:timers/promises";
import { SessionError } from "../domain/errors/errors.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../domain/repositories/repository.ts";
import { backoffMs } from "../domain/time/backoff.ts";
import type { ForgeAnswer } from "./http/http.ts";
import { wordsOf } from "./http/refusal.ts";

/** How long a forge may take to copy a repository, in ms; after that the session's next attempt goes on waiting. */
const readyMs = 60_000;
/** Pauses between polls of a fork that is being made. */
const waitingForFork = { fromMs: 500, toMs: 5_000, jitter: 0.5 };

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
  await untilCopied(host, fork, signal, async () => {
    const { status, body } = await call(fork, "GET", "/branches?per_page=1&limit=1", signal);
    return status === 200 && Array.isArray(body) && body.length > 0;
  });
  return fork;
}

/**
 * Waits until a forge has copied a repository to a fork, which it does in the background.
 * @param isCopied asks the forge; an error of it ends the wait
 * @throws SessionError forge_unavailable if it takes too long
 */
export async function untilCopied(
  host: string,
  fork: RepositoryAddress,
  signal: AbortSignal,
  isCopied: () => Promise<boolean>,
): Promise<void> {
  const until = performance.now() + readyMs;
  for (let look = 1; !(await isCopied()); look += 1) {
    if (performance.now() >= until) throw notReady(host, fork);
    await pause(backoffMs(look, waitingForFork), undefined, { signal });
  }
}

/** The failure of a forge that takes too long to make a fork. */
function notReady(host: string, { path }: RepositoryAddress): SessionError {
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
