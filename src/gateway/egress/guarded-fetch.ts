import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { SessionError } from "../../domain/errors/errors.ts";
import { noProxies, proxyOfUrl, type Proxies } from "../../outbound/proxies.ts";
import { resolveAddresses, connectsTo, isKnownPrivate, isPublicAddress } from "./addresses.ts";

/** Most bytes that are read of an answer: a server that a user named may send without end. */
const mostAnswerBytes = 16 * 1024 * 1024;

/** Requests to servers that users named. */
export interface GuardedFetch {
  /**
   * Does as `fetch` with a text as its body, follows no redirect, and contacts public addresses alone, exactly those that were
   * looked up, by `https:` alone; hosts that the operator listed are excepted. Through a proxy of the operator, that one resolves the
   * name, and only hosts that this machine knows as private are refused here.
   * @throws SessionError repository_unreachable if the address may not be contacted; TypeError as `fetch`, whose cause has the code
   * ERR_ANSWER_TOO_LARGE if that is why
   */
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** Whether the operator listed the host, or named a server at its port, so that it may be in a private network and without encryption. */
  mayBePrivate(url: string): boolean;
}

/**
 * Makes requests to servers that users named.
 * @param options.privateHosts names of hosts, in lower case
 * @param options.privateServers addresses of servers that the operator named: each is excepted only at its port, not
 *   other services of the host
 * @param options.setting the variable in which the operator lists them, for messages
 * @param options.proxies the operator's, which this process uses
 */
export function createGuardedFetch(options: {
  readonly privateHosts: readonly string[];
  readonly privateServers?: readonly string[];
  readonly setting: string;
  readonly proxies?: Proxies;
}): GuardedFetch {
  const { privateHosts, privateServers = [], setting, proxies = noProxies } = options;
  const servers = new Set(privateServers.map((url) => serverOf(new URL(url))));
  const isListed = (url: URL): boolean => privateHosts.includes(hostOf(url)) || servers.has(serverOf(url));

  /** The address to connect to; null: the proxy decides. */
  async function addressFor(url: URL): Promise<string | null> {
    const host = hostOf(url);
    if (url.protocol !== "https:" && !isListed(url)) {
      throw refused(host, `its address is not encrypted (https://)`, setting);
    }
    if (proxyOfUrl(proxies, url.href) !== null) {
      if (!isListed(url) && (await isKnownPrivate(host))) throw refused(host, "it is in a private network", setting);
      return null;
    }
    const found = await resolveAddresses(host);
    const address = found.find((one) => isListed(url) || isPublicAddress(one));
    if (address === undefined) throw refused(host, "it is in a private network", setting);
    return address;
  }

  return {
    mayBePrivate: (url) => isListed(new URL(url)),
    async fetch(given, init) {
      const url = new URL(given);
      try {
        const address = await addressFor(url);
        init.signal?.throwIfAborted();
        return await send(url, init, address);
      } catch (error) {
        if (error instanceof SessionError || init.signal?.aborted === true) throw error;
        // As `fetch` does: what went wrong is the cause.
        throw new TypeError("fetch failed", { cause: error });
      }
    },
  };
}

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/gu, "");

/** A server: its host and port. */
const serverOf = (url: URL): string =>
  `${hostOf(url)} ${url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port}`;

function refused(host: string, why: string, setting: string): SessionError {
  return new SessionError({
    code: "repository_unreachable",
    reason: `The host ${host} is not contacted: ${why}.`,
    retryable: false,
    remedy: `Check the address. The operator of this server can allow the host with ${setting}.`,
  });
}

function send(url: URL, init: RequestInit, address: string | null): Promise<Response> {
  const body = typeof init.body === "string" ? init.body : null;
  return new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? requestHttps : requestHttp)(url, {
      method: init.method ?? "GET",
      headers: {
        ...Object.fromEntries(new Headers(init.headers)),
        ...(body !== null && { "content-length": String(Buffer.byteLength(body)) }),
      },
      ...(init.signal != null && { signal: init.signal }),
      ...(address !== null && connectsTo(address)),
    });
    request.once("error", (error) => reject(init.signal?.aborted === true ? (init.signal.reason as Error) : error));
    // These never give a response, so don't wait for one.
    request.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new Error("it answered 101 (switching protocols)"));
    });
    request.once("close", () => reject(new Error("the connection was closed")));
    request.once("response", (response) => {
      read(response).then(resolve, (error: unknown) =>
        reject(init.signal?.aborted === true ? (init.signal.reason as Error) : error),
      );
    });
    request.end(body ?? undefined);
  });
}

async function read(response: IncomingMessage): Promise<Response> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostAnswerBytes) {
      response.destroy();
      throw Object.assign(new Error("its answer is too large"), { code: "ERR_ANSWER_TOO_LARGE" });
    }
    chunks.push(chunk);
  }
  const { statusCode: status = 0, headers } = response;
  const given = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined || name === "set-cookie" ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
  );
  const hasBody = bytes > 0 && ![204, 205, 304].includes(status);
  return new Response(hasBody ? Buffer.concat(chunks) : null, { status, headers: given });
}
