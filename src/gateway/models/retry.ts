import type { IncomingMessage } from "node:http";
import { backoffMs } from "../../domain/time/backoff.ts";
import { retryAfterMs } from "../../domain/time/retry-after.ts";
import type { ErrorOutlook } from "../traffic.ts";

/** Statuses of errors of a server that pass no sooner for being asked again: it can't do what was asked, or not in this HTTP. */
const finalOfServer = new Set([501, 505]);
/** If the provider asks for a longer wait, its error is passed on: the harness may do something else meanwhile. */
const longestWaitMs = 60_000;
/** At 225 to 375 ms, and later pauses always longer: a harness waits for the answer. */
const retrying = { fromMs: 375, toMs: longestWaitMs, jitter: 0.4 };

/** The outlook for later requests after an answer with an error, or none. */
export function outlookOf(answer: Pick<IncomingMessage, "statusCode" | "headers"> | Error): ErrorOutlook {
  if (answer instanceof Error) return { lastErrorPasses: true, retryAfterMs: null };
  return { lastErrorPasses: isPassing(answer), retryAfterMs: requestedDelayMs(answer.headers) };
}

/**
 * Whether a status is that of a temporary error: a rate limit, or one of the server or of a proxy before it, of which there are more
 * than are registered (529 is Anthropic's overload, 520 to 530 are Cloudflare's).
 */
export function isPassingStatus(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && !finalOfServer.has(status));
}

/** `x-should-retry` goes before the status. */
function isPassing({ statusCode = 0, headers }: Pick<IncomingMessage, "statusCode" | "headers">): boolean {
  const says = headers["x-should-retry"];
  return says === "true" || (says !== "false" && isPassingStatus(statusCode));
}

/**
 * How long to wait before a request to a model is sent again, in ms; null if it should not be. Retry-After is RFC 9110,
 * section 10.2.3; `retry-after-ms` and `x-should-retry` are sent by OpenAI and Anthropic.
 * @param answer the answer, or why there was none
 * @param attempt 1 for the first
 */
export function retryDelayMs(
  answer: Pick<IncomingMessage, "statusCode" | "headers"> | Error,
  attempt: number,
): number | null {
  const backoff = backoffMs(attempt, retrying);
  if (answer instanceof Error) return backoff;
  if (!isPassing(answer)) return null;
  const requestedMs = requestedDelayMs(answer.headers);
  if (requestedMs === null) return backoff;
  return requestedMs > longestWaitMs ? null : requestedMs;
}

function requestedDelayMs(headers: IncomingMessage["headers"]): number | null {
  const milliseconds = headers["retry-after-ms"];
  if (typeof milliseconds === "string" && /^\d+(?:\.\d+)?$/u.test(milliseconds)) return Number(milliseconds);
  return retryAfterMs(headers["retry-after"]);
}
