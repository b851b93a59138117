import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP } from "node:net";
import { text } from "node:stream/consumers";
import { addressesOf, isPublicAddress } from "../../gateway/egress/addresses.ts";

export interface Posted {
  /** What was answered; null where nothing was. */
  readonly status: number | null;
  readonly error: string | null;
  /** When to come again, as the answer asks, in milliseconds. */
  readonly retryAfterMs: number | null;
}

const wordsLimit = 500;
const longestRetryAfterMs = 60 * 60 * 1_000;

/**
 * Sends JSON to an address that somebody gave: only to the public internet, by the address that was looked at, and
 * wherever else only where the operator named the host. A redirect is an answer like any other, and no success.
 * Never throws: what went wrong is the result.
 */
export async function postTo(
  url: string,
  call: {
    readonly body: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly privateHosts: readonly string[];
    readonly signal: AbortSignal;
  },
): Promise<Posted> {
  try {
    const { hostname, protocol } = new URL(url);
    const host = hostname.replace(/^\[|\]$/gu, "");
    const address = await addressOf(host, call.privateHosts.includes(host));
    return await post(url, protocol === "https:" ? requestHttps : requestHttp, address, call);
  } catch (error) {
    const timedOut = call.signal.aborted && (call.signal.reason as Error).name === "TimeoutError";
    const reason = timedOut ? "it did not answer in time" : error instanceof Error ? error.message : String(error);
    return { status: null, error: reason.slice(0, wordsLimit), retryAfterMs: null };
  }
}

async function addressOf(host: string, named: boolean): Promise<string> {
  const found = await addressesOf(host);
  const address = found.find((one) => named || isPublicAddress(one));
  if (address !== undefined) return address;
  throw new Error(`${host} is in a private network: the operator can allow it with OFFSTAGE_WEBHOOK_HOSTS`);
}

function post(
  url: string,
  request: typeof requestHttp,
  address: string,
  { body, headers, signal }: Parameters<typeof postTo>[1],
): Promise<Posted> {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: "POST",
      signal,
      headers: {
        ...headers,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "user-agent": "Offstage",
      },
      // What was looked at is what is asked.
      lookup: (_host, options, done) => {
        const family = isIP(address);
        if (options.all === true) done(null, [{ address, family }]);
        else done(null, address, family);
      },
    });
    sent.once("error", reject);
    // What is no answer must not be waited for: a switch to another protocol, or a connection that only closes.
    sent.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new Error("it answered 101 (switching protocols)"));
    });
    let isAnswered = false;
    sent.once("close", () => {
      if (!isAnswered) reject(new Error("the connection was closed"));
    });
    sent.once("response", (response) => {
      isAnswered = true;
      const { statusCode: status = 0 } = response;
      const ok = status >= 200 && status < 300;
      const retryAfter = Number(response.headers["retry-after"] ?? Number.NaN) * 1_000;
      const retryAfterMs = Number.isFinite(retryAfter) ? Math.min(longestRetryAfterMs, retryAfter) : null;
      if (ok) {
        response.destroy();
        resolve({ status, error: null, retryAfterMs });
        return;
      }
      wordsOf(response).then(
        (words) => resolve({ status, error: words || `it answered ${status}`, retryAfterMs }),
        reject,
      );
    });
    sent.end(body);
  });
}

/** The beginning of an answer, which may be endless. */
async function wordsOf(response: NodeJS.ReadableStream & { destroy(): void }): Promise<string> {
  async function* beginning(): AsyncGenerator<Buffer> {
    let length = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      yield chunk;
      length += chunk.length;
      if (length > wordsLimit * 4) return;
    }
  }
  const words = await text(beginning());
  response.destroy();
  return words.slice(0, wordsLimit).replaceAll("\0", "").trim();
}
