import type { IncomingMessage } from "node:http";

/** What may pass by itself: rate limits, overload (529 is Anthropic's), gateways between. */
const passing = new Set([408, 429, 500, 502, 503, 504, 529]);
/** Who is told to wait longer is told so: its harness may do something else in the meantime. */
const longestWaitMs = 60_000;
const firstWaitMs = 300;

/**
 * How long to wait before a request of a model is sent again; null where that makes no sense.
 * Retry-After is RFC 9110, section 10.2.3; `retry-after-ms` and `x-should-retry` are what OpenAI and Anthropic send.
 * @param answer its answer, or why there was none
 * @param attempt 1 for the first
 */
export function retryDelayMs(
  answer: Pick<IncomingMessage, "statusCode" | "headers"> | Error,
  attempt: number,
): number | null {
  const backoff = firstWaitMs * 2 ** (attempt - 1) * (0.75 + Math.random() / 2);
  if (answer instanceof Error) return backoff;
  const { statusCode = 0, headers } = answer;
  if (headers["x-should-retry"] === "false" || !(passing.has(statusCode) || headers["x-should-retry"] === "true")) {
    return null;
  }
  const asked = askedDelayMs(headers);
  if (asked === null) return backoff;
  return asked > longestWaitMs ? null : asked;
}

function askedDelayMs(headers: IncomingMessage["headers"]): number | null {
  const milliseconds = headers["retry-after-ms"];
  if (typeof milliseconds === "string" && /^\d+(?:\.\d+)?$/u.test(milliseconds)) return Number(milliseconds);
  const after = headers["retry-after"];
  if (after === undefined) return null;
  if (/^\d+(?:\.\d+)?$/u.test(after)) return Number(after) * 1_000;
  const at = Date.parse(after);
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now());
}
