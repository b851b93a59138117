import { setTimeout as pause } from "node:timers/promises";
import { SessionError } from "../domain/errors/errors.ts";
import { backoffMs } from "../domain/time/backoff.ts";
import { retryAfterMs } from "../domain/time/retry-after.ts";

const timeLimitMs = 20_000;
const attempts = 4;
const retrying = { fromMs: 1_000, toMs: 4_000, jitter: 0.5 };
/** If the forge asks for a longer wait, the call fails: waiting would hold the session up. */
const longestWaitMs = 120_000;

/** A forge's answer with its body parsed. */
export interface ForgeAnswer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Calls a forge's API. Temporary errors (5xx, rate limits, no answer) are retried a few times; redirects are not
 * followed, because they would send the token to another address.
 * @throws SessionError forge_unavailable
 */
export async function callForge(
  url: string,
  request: {
    readonly method: "GET" | "POST" | "PATCH";
    readonly headers: Record<string, string>;
    readonly body?: unknown;
    readonly signal: AbortSignal;
  },
): Promise<ForgeAnswer> {
  for (let attempt = 1; ; attempt += 1) {
    request.signal.throwIfAborted();
    let problem: string;
    let waitMs = backoffMs(attempt, retrying);
    try {
      const response = await fetch(url, {
        method: request.method,
        headers: { "User-Agent": "offstage", "Content-Type": "application/json", ...request.headers },
        redirect: "manual",
        signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeLimitMs)]),
        ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
      });
      const body = await readBody(response);
      if (!isPassing(response, body)) return { status: response.status, body };
      waitMs = askedMs(response.headers) ?? waitMs;
      problem = `it answered ${response.status}${response.status < 500 ? `, with words on its rate limit: ${wordsOf(body)}` : ""}`;
    } catch (error) {
      request.signal.throwIfAborted();
      problem =
        error instanceof Error && error.name === "TimeoutError"
          ? `it did not answer within ${timeLimitMs / 1_000} s`
          : "it could not be reached";
    }
    if (attempt === attempts || waitMs > longestWaitMs) throw unavailable(url, problem);
    await pause(waitMs, undefined, { signal: request.signal });
  }
}

function unavailable(url: string, problem: string): SessionError {
  return new SessionError({
    code: "forge_unavailable",
    reason: `The forge at ${new URL(url).host} is not available: ${problem}.`,
    retryable: true,
    remedy: "Retry when it is up again: the branch is pushed, and nothing is done twice.",
  });
}

/**
 * Whether a retry may succeed. GitHub reports rate limits with 403 too: the primary one by the remaining requests,
 * others by Retry-After or the message only
 * (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api).
 */
function isPassing({ status, headers }: Response, body: unknown): boolean {
  if (status >= 500 || status === 429) return true;
  return (
    status === 403 &&
    (headers.has("retry-after") || headers.get("x-ratelimit-remaining") === "0" || /rate limit/iu.test(wordsOf(body)))
  );
}

/**
 * When to retry: the Retry-After header, else when GitHub's rate limit is
 * reset.
 */
function askedMs(headers: Headers): number | null {
  if (headers.has("retry-after")) return retryAfterMs(headers.get("retry-after"));
  const reset = headers.get("x-ratelimit-remaining") === "0" ? Number(headers.get("x-ratelimit-reset") ?? NaN) : NaN;
  return Number.isNaN(reset) ? null : Math.max(0, reset * 1_000 - Date.now());
}

async function readBody(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The failure that a refusal of the pull request API means for the user, with the forge's message. */
export function refusedBy(name: string, { status, body }: ForgeAnswer): SessionError {
  const words = wordsOf(body);
  if (status === 401 || status === 403) {
    return new SessionError({
      code: "repository_access_denied",
      reason: `${name} refused the configured token: ${words}`,
      retryable: false,
      remedy: "Give the server a token that may open pull requests on this repository (docs/forges.md).",
    });
  }
  if (status >= 300 && status < 400) {
    return new SessionError({
      code: "repository_not_found",
      reason: `${name} answered with a redirect: the repository was moved or renamed.`,
      retryable: false,
      remedy: "Start a session with the repository's new address.",
    });
  }
  if (status === 404) {
    return new SessionError({
      code: "repository_not_found",
      reason: `${name} has no such repository for the configured token: ${words}`,
      retryable: false,
      remedy: "Check the repository's address and what the token may see.",
    });
  }
  return new SessionError({
    code: "pull_request_refused",
    reason: `${name} refused the pull request: ${words}`,
    retryable: false,
    remedy: "The branch is pushed: fix what the forge reports, then retry.",
  });
}

function wordsOf(body: unknown): string {
  const { message, errors } = (body ?? {}) as { message?: unknown; errors?: unknown };
  const details = Array.isArray(errors)
    ? errors.map((error) =>
        typeof error === "string" ? error : ((error as { message?: string } | null)?.message ?? ""),
      )
    : [];
  const words = [typeof message === "string" ? message : "", ...details].filter((part) => part !== "").join(": ");
  return words === "" ? "it gave no reason" : words.slice(0, 500);
}
