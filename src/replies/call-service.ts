import { wasNeverSent } from "../domain/errors/never-sent.ts";
import { storable } from "../domain/fields/text.ts";
import { boundedRetryAfterMs } from "../domain/time/retry-after.ts";
import { ReplyUnavailable } from "./reply.ts";

const timeLimitMs = 20_000;
/** Longest answer that is read, in bytes: a page of 200 messages of a thread takes less. */
const largestAnswer = 8 * 1024 * 1024;
const longestWords = 500;

/** A service's answer, parsed; `body` is null if it is no JSON. */
export interface ServiceAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** A request to a service's API. */
export interface ServiceRequest {
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

/**
 * Calls a service's API once. Redirects are not followed: they would send the token to another address.
 * @throws ReplyUnavailable if it could not be reached, did not answer within 20 s, or answered 429 or 5xx; the signal's reason
 */
export async function callService(service: string, url: string, request: ServiceRequest): Promise<ServiceAnswer> {
  request.signal.throwIfAborted();
  const answer = await ask(service, url, request);
  const { status, headers } = answer;
  const wait = boundedRetryAfterMs(headers.get("retry-after"));
  if (status === 429) {
    throw new ReplyUnavailable(service, "too many requests", { isOpen: false, retryAfterMs: wait });
  }
  if (status >= 500) {
    throw new ReplyUnavailable(service, `it answered ${status}`, { isOpen: true, retryAfterMs: wait });
  }
  return answer;
}

async function ask(service: string, url: string, request: ServiceRequest): Promise<ServiceAnswer> {
  try {
    const response = await fetch(url, {
      method: request.method,
      headers: {
        "user-agent": "offstage",
        ...(request.body !== undefined && { "content-type": "application/json; charset=utf-8" }),
        ...request.headers,
      },
      redirect: "manual",
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeLimitMs)]),
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    });
    return { status: response.status, headers: response.headers, body: await readBody(response) };
  } catch (error) {
    request.signal.throwIfAborted();
    const isTimeout = error instanceof Error && error.name === "TimeoutError";
    const problem = isTimeout ? `it did not answer within ${timeLimitMs / 1_000} s` : "it could not be reached";
    throw new ReplyUnavailable(service, problem, { isOpen: isTimeout || !wasNeverSent(error) });
  }
}

async function readBody(response: Response): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > largestAnswer) return null;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return null;
  }
}

/** Words of a service, short enough for an error. */
export function wordsOf(words: unknown): string {
  return typeof words === "string" && words !== "" ? storable(words.slice(0, longestWords)) : "it gave no reason";
}
