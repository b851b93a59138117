import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";

/** The parts of a request that decide whether it may read the metrics. */
export interface MetricsRequest {
  /** Address of the connection itself, whatever forwarding headers say. */
  readonly remoteAddress: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** The decision: "hidden" is answered as not found. */
export type MetricsAccess = "granted" | "wrong token" | "hidden";

/** Headers that proxies add: behind a proxy on this machine every request comes from loopback. */
const forwardingHeaders = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/**
 * Decides whether a request may read the metrics. With a token: if it has the token. Without one: only if it comes
 * directly from this machine, and not through a proxy or from another site's page in a browser. So both the
 * connection and the Host header must be loopback, and the server must not have another public name.
 * @param publicUrl the server's address for users; null if it serves none
 */
export function metricsAccess(
  request: MetricsRequest,
  { token, publicUrl }: { readonly token: string | null; readonly publicUrl: string | null },
): MetricsAccess {
  const { headers, remoteAddress = "" } = request;
  if (token !== null) {
    const shown = /^Bearer +(\S+) *$/iu.exec(headers.authorization ?? "")?.[1] ?? "";
    return isSame(shown, token) ? "granted" : "wrong token";
  }
  const direct =
    isLoopback(remoteAddress) &&
    isLoopback(hostOf(`http://${headers.host ?? ""}`)) &&
    forwardingHeaders.every((name) => headers[name] === undefined) &&
    (publicUrl === null || isLoopback(hostOf(publicUrl)));
  return direct ? "granted" : "hidden";
}

function isSame(shown: string, token: string): boolean {
  const [one, other] = [shown, token].map((text) => createHash("sha256").update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}

function hostOf(url: string): string {
  return URL.parse(url)?.hostname.replace(/^\[|\]$/gu, "") ?? "";
}

function isLoopback(host: string): boolean {
  const address = host.replace(/^::ffff:/u, "");
  return address === "localhost" || address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}
