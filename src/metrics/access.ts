import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";

/** What of a request decides whether it may read the metrics. */
export interface MetricsRequest {
  /** Of the connection itself, whatever a proxy says. */
  readonly remoteAddress: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

export type MetricsAccess = "granted" | "wrong token" | "hidden";

/** What proxies add: behind one on this machine every request comes from loopback. */
const forwardingHeaders = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/**
 * With a token: who shows it. Without one: this machine alone, and not what a proxy or a browser's page brings here,
 * so requests over loopback to a name of loopback, on a server that is not reached by another.
 * @param publicUrl address at which people reach the server; null where it serves nothing to people
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
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/gu, "") : "";
}

function isLoopback(host: string): boolean {
  const address = host.replace(/^::ffff:/u, "");
  return address === "localhost" || address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}
