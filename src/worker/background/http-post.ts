import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { text } from "node:stream/consumers";
import { messageOf } from "../../domain/errors/errors.ts";
import { boundedRetryAfterMs } from "../../domain/time/retry-after.ts";
import { resolveAddresses, connectsTo, isKnownPrivate, isPublicAddress } from "../../gateway/egress/addresses.ts";
import { noProxies, proxyOfUrl, type Proxies } from "../../outbound/proxies.ts";

/** The result of one request. */
export interface PostResult {
  /** HTTP status of the answer; null if there was none. */
  readonly status: number | null;
  /** Why the request failed, or the beginning of the answer's body; null if it succeeded (2xx). */
  readonly error: string | null;
  /** Pause before the next attempt that the answer's Retry-After asks for, in ms; at most one hour. */
  readonly retryAfterMs: number | null;
}

const excerptLimit = 500;

/**
 * Posts to a URL that a user gave. It connects only to public addresses, unless the operator listed the host, and exactly
 * to the address that was checked, so a second DNS answer can't redirect it. Through a proxy of the operator, that one resolves
 * the name, and only hosts that this machine knows as private are refused here. A redirect is not followed and counts as a
 * failure.
 * Never throws: errors are in the result.
 * @param call.privateHosts hosts that may be in a private network
 * @param call.signal ends the request; a TimeoutError as its reason is reported as a timeout
 */
export async function postTo(
  url: string,
  call: {
    /** With its content type in the headers. */
    readonly body: string | Buffer;
    readonly headers: Readonly<Record<string, string>>;
    readonly privateHosts: readonly string[];
    /** The operator's proxies, which this process uses; none if omitted. */
    readonly proxies?: Proxies;
    readonly signal: AbortSignal;
  },
): Promise<PostResult> {
  try {
    const { hostname, protocol } = new URL(url);
    const host = hostname.replace(/^\[|\]$/gu, "");
    const listed = call.privateHosts.includes(host);
    const isProxied = proxyOfUrl(call.proxies ?? noProxies, url) !== null;
    if (isProxied && !listed && (await isKnownPrivate(host))) throw new Error(isPrivate(host));
    const address = isProxied ? null : await addressOf(host, listed);
    return await post(url, protocol === "https:" ? requestHttps : requestHttp, address, call);
  } catch (error) {
    const timedOut = call.signal.aborted && (call.signal.reason as Error).name === "TimeoutError";
    const reason = timedOut ? "it did not answer in time" : messageOf(error);
    return { status: null, error: reason.slice(0, excerptLimit), retryAfterMs: null };
  }
}

async function addressOf(host: string, named: boolean): Promise<string> {
  const found = await resolveAddresses(host);
  const address = found.find((one) => named || isPublicAddress(one));
  if (address !== undefined) return address;
  throw new Error(isPrivate(host));
}

const isPrivate = (host: string): string =>
  `${host} is in a private network: the operator can allow it with OFFSTAGE_WEBHOOK_HOSTS`;

function post(
  url: string,
  request: typeof requestHttp,
  address: string | null,
  { body, headers, signal }: Parameters<typeof postTo>[1],
): Promise<PostResult> {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: "POST",
      signal,
      headers: {
        ...headers,
        "content-length": Buffer.byteLength(body),
        "user-agent": "Offstage",
      },
      ...(address !== null && connectsTo(address)),
    });
    sent.once("error", reject);
    // These never give a response, so don't wait for one: a protocol switch, or a connection that only closes.
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
      const waitMs = boundedRetryAfterMs(response.headers["retry-after"]);
      if (ok) {
        response.destroy();
        resolve({ status, error: null, retryAfterMs: waitMs });
        return;
      }
      excerptOf(response).then(
        (words) => resolve({ status, error: words || `it answered ${status}`, retryAfterMs: waitMs }),
        reject,
      );
    });
    sent.end(body);
  });
}

/** The beginning of an answer's body, which may be endless. */
async function excerptOf(response: NodeJS.ReadableStream & { destroy(): void }): Promise<string> {
  async function* beginning(): AsyncGenerator<Buffer> {
    let length = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      yield chunk;
      length += chunk.length;
      if (length > excerptLimit * 4) return;
    }
  }
  const words = await text(beginning());
  response.destroy();
  return words.slice(0, excerptLimit).replaceAll("\0", "").trim();
}
