import { setTimeout as pause } from "node:timers/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import { wasNeverSent } from "../../domain/errors/never-sent.ts";
import { backoffMs } from "../../domain/time/backoff.ts";
import { retryAfterMs } from "../../domain/time/retry-after.ts";
import { currentReach } from "./reach.ts";
import { wordsOf } from "./refusal.ts";

const timeLimitMs = 20_000;
const attempts = 4;
const retrying = { fromMs: 1_000, toMs: 4_000, jitter: 0.5 };
/** If the forge asks for a longer wait, the call fails with that time: others can have the worker meanwhile. */
const longestWaitMs = 30_000;
/**
 * The wait after a secondary rate limit that names no time: GitHub asks for at least a minute
 * (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api).
 */
const secondaryLimitMs = 60_000;

/** A forge's answer with its body parsed. */
export interface ForgeAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** A request to a forge's API. */
export interface ForgeRequest {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  readonly headers: Record<string, string>;
  readonly body?: unknown;
  readonly signal: AbortSignal;
  /** For a request that is not worth waiting for: it is sent once, and given up after this time, in ms. */
  readonly onceWithinMs?: number | undefined;
  /**
   * Whether a successful answer is taken that is no JSON, as a page or nothing; omitted: only nothing is, after a DELETE or with status
   * 204 or 205. Any other comes of something between us and the forge, or of a forge in trouble, and counts as no answer.
   * @param status 200 to 299
   */
  readonly takesPage?: ((status: number, text: string) => boolean) | undefined;
}

/** For a check of an address and a credential, which reports any unexpected answer. */
export const anyAnswer = { takesPage: () => true };

/** For a request whose answer is not read, and may be empty. */
export const emptyAnswer = { takesPage: (_status: number, text: string) => text === "" };

/** For an optional read of a repository's rights: work begins without an answer, too. */
export const onlyALook = { onceWithinMs: 5_000 };

/** A forge did not answer, or asked to come back later. */
export class ForgeUnavailable extends SessionError {
  /** Whether the forge may have done what was asked: it got the request, and its answer is not known. */
  readonly isOpen: boolean;

  constructor(
    host: string,
    problem: string,
    { isOpen, waitMs, isUntrusted = false }: { isOpen: boolean; waitMs: number | null; isUntrusted?: boolean },
  ) {
    super({
      code: "forge_unavailable",
      reason: `The forge at ${host} is not available: ${problem}.`,
      retryable: true,
      // As git's: a certificate stays what it is until a person acts.
      passing: !isUntrusted,
      remedy: isUntrusted
        ? "Have its certificate renewed, or its authority trusted with OFFSTAGE_CA_FILE; then retry: nothing is done twice."
        : "Retry when it is up again: the branch is pushed, and nothing is done twice.",
      ...(waitMs !== null && { retryAfterMs: waitMs }),
    });
    this.isOpen = isOpen;
  }
}

/** A passing failure of a request. */
interface Problem {
  readonly words: string;
  /** How long the forge asked to wait, in ms; null if it did not say. */
  readonly askedMs: number | null;
  /** The wait reported to the caller if the request is given up; null: it may retry at any time. */
  readonly waitMs: number | null;
  /** Whether the forge may have carried the request out. */
  readonly isOpen: boolean;
  /** Whether its certificate is not trusted; omitted: no. */
  readonly isUntrusted?: boolean;
}

/**
 * Calls a forge's API. Temporary errors (5xx, rate limits, no answer) are retried a few times, except after a POST that
 * the forge may have carried out: the caller has to search for the result first. Redirects are not followed, because
 * they would send the token to another address.
 * @throws ForgeUnavailable
 */
export async function callForge(url: string, request: ForgeRequest): Promise<ForgeAnswer> {
  for (let attempt = 1; ; attempt += 1) {
    request.signal.throwIfAborted();
    const outcome = await tryCall(url, request);
    if ("status" in outcome) return outcome;
    const { words, askedMs, waitMs, isOpen, isUntrusted = false } = outcome;
    const pauseMs = askedMs ?? backoffMs(attempt, retrying);
    const isOnce = request.onceWithinMs !== undefined || (isOpen && request.method === "POST");
    if (attempt === attempts || isOnce || isUntrusted || pauseMs > longestWaitMs)
      throw new ForgeUnavailable(new URL(url).host, words, { isOpen, waitMs, isUntrusted });
    await pause(pauseMs, undefined, { signal: request.signal });
  }
}

async function tryCall(url: string, request: ForgeRequest): Promise<ForgeAnswer | Problem> {
  const limitMs = request.onceWithinMs ?? timeLimitMs;
  const reach = currentReach();
  try {
    const response = await (reach?.fetch ?? fetch)(url, {
      method: request.method,
      headers: { "User-Agent": "offstage", "Content-Type": "application/json", ...request.headers },
      redirect: "manual",
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(limitMs)]),
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    });
    const text = await response.text();
    const body = parsed(text);
    const problem = problemOf(response, body) ?? pageProblem(response.status, text, body, request);
    if (problem === null && (response.status === 401 || response.status === 403)) reach?.refused();
    return problem ?? { status: response.status, headers: response.headers, body };
  } catch (error) {
    request.signal.throwIfAborted();
    // The address may not be contacted at all.
    if (error instanceof SessionError) throw error;
    const isTimeout = error instanceof Error && error.name === "TimeoutError";
    const code = codeOf(error);
    const isUntrusted = untrusted.test(code);
    const why = code === "" ? "" : ` (${code})`;
    const unreached = `${isUntrusted ? "its certificate is not trusted" : "it could not be reached"}${why}`;
    const words = isTimeout ? `it did not answer within ${limitMs / 1_000} s` : unreached;
    const isOpen = isTimeout || !(isUntrusted || wasNeverSent(error));
    return { words, askedMs: null, waitMs: null, isOpen, isUntrusted };
  }
}

/** Codes of OpenSSL's checks of a certificate, as Node names them (https://nodejs.org/api/tls.html#x509-certificate-error-codes). */
const untrusted = /^(?!CERT_NOT_YET_VALID$)(?:.*_?CERT_.*|.*_CERT|.*_VERIFY_LEAF_SIGNATURE)$/u;

/** The code of the cause for which `fetch` got no answer; empty if it has none. */
function codeOf(error: unknown): string {
  const { cause } = (error ?? {}) as { readonly cause?: { readonly code?: unknown } };
  return typeof cause?.code === "string" ? cause.code.slice(0, 100) : "";
}

/**
 * The problem with an answer that a retry may change; null if the answer is final. GitHub reports rate limits with 403
 * too: the primary one by the remaining requests, others by Retry-After or the message only, which may have status 422
 * (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api). Its GraphQL reports them, and that it
 * took too long itself, with 200
 * (https://docs.github.com/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api).
 */
function problemOf({ status, headers }: Response, body: unknown): Problem | null {
  const askedMs = askedMsOf(headers);
  // 408: the request may have arrived in part, or whole.
  if (status >= 500 || status === 408) {
    return { words: `it answered ${status}`, askedMs, waitMs: askedMs, isOpen: true };
  }
  const isPrimary = headers.get("x-ratelimit-remaining") === "0";
  const said = wordsOf(body);
  const isOfGraphQL = status === 200 && hasErrors(body);
  if (isOfGraphQL && /something went wrong while executing your query/iu.test(said))
    return { words: `it answered: ${said}`, askedMs, waitMs: askedMs, isOpen: true };
  const isLimit =
    status === 429 ||
    (isOfGraphQL && limitWords.test(said)) ||
    (status === 403 && (headers.has("retry-after") || isPrimary || limitWords.test(said))) ||
    (status === 422 && /submitted too quickly/iu.test(said));
  if (!isLimit) return null;
  const words = `it answered ${status}, with words on its rate limit: ${said}`;
  return { words, askedMs, waitMs: askedMs ?? secondaryLimitMs, isOpen: false };
}

const limitWords = /rate limit|abuse detection/iu;

/** Whether an answer has errors beside or in the place of its data, as GraphQL has. */
function hasErrors(body: unknown): boolean {
  const { errors } = (body ?? {}) as { readonly errors?: unknown };
  return Array.isArray(errors) && errors.length > 0;
}

/**
 * When to retry, in ms: the Retry-After header, else when the rate limit of GitHub (X-RateLimit-…) or GitLab (RateLimit-…, in
 * seconds since 1970: https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/) is reset, by the forge's own clock if it
 * tells that: this machine's may be hours off. Null if it does not say.
 */
function askedMsOf(headers: Headers): number | null {
  if (headers.has("retry-after")) return retryAfterMs(headers.get("retry-after"), nowOf(headers));
  const limit = ["x-ratelimit", "ratelimit"].find((name) => headers.get(`${name}-remaining`) === "0");
  const reset = limit === undefined ? NaN : Number(headers.get(`${limit}-reset`) ?? NaN);
  return Number.isNaN(reset) ? null : Math.max(0, reset * 1_000 - nowOf(headers));
}

/** The forge's present time, in ms since 1970; this machine's if it does not tell. */
function nowOf(headers: Headers): number {
  const told = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(told) ? Date.now() : told;
}

/** Null if it is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Statuses of success that say that there is no body. */
const withoutBody: ReadonlySet<number> = new Set([204, 205]);

/** The problem with a successful answer whose body is not the API's; null if it is. */
function pageProblem(status: number, text: string, body: unknown, { method, takesPage }: ForgeRequest): Problem | null {
  if (status < 200 || status >= 300 || body !== null || withoutBody.has(status)) return null;
  const isTaken = takesPage?.(status, text) ?? (method === "DELETE" && text === "");
  if (isTaken || text.trim() === "null") return null;
  const what = text.trim() === "" ? "an empty body" : `what is no JSON (${text.trim().slice(0, 100)})`;
  return { words: `it answered ${status} with ${what}`, askedMs: null, waitMs: null, isOpen: true };
}
