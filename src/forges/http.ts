import { setTimeout as pause } from "node:timers/promises";
import { RunError } from "../domain/errors.ts";

const timeLimitMs = 20_000;
const attempts = 4;
const longestWaitMs = 20_000;

export interface ForgeAnswer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * One call of a forge's API. What may pass by itself (5xx, 429, no answer) is tried again, a few times;
 * a redirect is not followed, since it would take the token to another place.
 * @throws RunError forge_unavailable
 */
export async function callForge(
  url: string,
  request: {
    readonly method: "GET" | "POST";
    readonly headers: Record<string, string>;
    readonly body?: unknown;
    readonly signal: AbortSignal;
  },
): Promise<ForgeAnswer> {
  let problem = "";
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    request.signal.throwIfAborted();
    try {
      const response = await fetch(url, {
        method: request.method,
        headers: { "User-Agent": "offstage", "Content-Type": "application/json", ...request.headers },
        redirect: "manual",
        signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeLimitMs)]),
        ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
      });
      if (!isPassing(response)) return { status: response.status, body: await readBody(response) };
      problem = `it answered ${response.status}`;
      await response.body?.cancel();
      await pause(waitMs(response.headers.get("retry-after"), attempt), undefined, { signal: request.signal });
    } catch (error) {
      request.signal.throwIfAborted();
      problem =
        error instanceof Error && error.name === "TimeoutError"
          ? `it did not answer within ${timeLimitMs / 1_000} s`
          : "it could not be reached";
      await pause(waitMs(null, attempt), undefined, { signal: request.signal });
    }
  }
  throw new RunError({
    code: "forge_unavailable",
    reason: `The forge at ${new URL(url).host} is not available: ${problem}.`,
    retryable: true,
    mend: "Retry when it is up again: the branch is pushed, and nothing is done twice.",
  });
}

/** GitHub tells of its secondary rate limit with 403 and a Retry-After. */
function isPassing(response: Response): boolean {
  return (
    response.status >= 500 ||
    response.status === 429 ||
    (response.status === 403 && response.headers.has("retry-after"))
  );
}

function waitMs(retryAfter: string | null, attempt: number): number {
  const asked = Number(retryAfter ?? Number.NaN) * 1_000;
  return Math.min(longestWaitMs, Number.isFinite(asked) ? asked : 250 * 2 ** attempt);
}

async function readBody(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What a refusal of the pull request API means to the user, with the forge's own words. */
export function refusedBy(name: string, { status, body }: ForgeAnswer): RunError {
  const words = wordsOf(body);
  if (status === 401 || status === 403) {
    return new RunError({
      code: "repository_access_denied",
      reason: `${name} refused the configured token: ${words}`,
      retryable: false,
      mend: "Give the server a token that may open pull requests on this repository (docs/forges.md).",
    });
  }
  if (status === 404) {
    return new RunError({
      code: "repository_not_found",
      reason: `${name} has no such repository for the configured token: ${words}`,
      retryable: false,
      mend: "Check the repository's address and what the token may see.",
    });
  }
  return new RunError({
    code: "pull_request_refused",
    reason: `${name} refused the pull request: ${words}`,
    retryable: false,
    mend: "The branch is pushed: fix what the forge reports, then retry.",
  });
}

function wordsOf(body: unknown): string {
  const { message, errors } = (body ?? {}) as { message?: unknown; errors?: unknown };
  const details = Array.isArray(errors)
    ? errors.map((error) => (typeof error === "string" ? error : ((error as { message?: string }).message ?? "")))
    : [];
  const words = [typeof message === "string" ? message : "", ...details].filter((part) => part !== "").join(": ");
  return words === "" ? "it gave no reason" : words.slice(0, 500);
}
