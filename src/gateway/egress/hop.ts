import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { connect, isIP } from "node:net";
import type { Duplex } from "node:stream";
import { connectThrough } from "../../outbound/connect.ts";

// One hop of a forwarded request: its destination, and the headers that are passed on.

/** How long connecting may take, in ms. */
export const connectLimitMs = 15_000;
/** Headers between a client and its proxy, which are not forwarded. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Destination of an allowed connection. */
export interface Target {
  readonly host: string;
  readonly port: number;
  /** The name is resolved once: the address that was checked is the one connected to. With a proxy: the host itself. */
  readonly address: string;
  /** The operator's proxy, which resolves the name; null: the connection is direct. */
  readonly proxy: URL | null;
  /** Whether the connection's content is not inspected. */
  readonly anyProtocol: boolean;
}

/** Connects to a target, directly or through its proxy. @throws Error if it can't be reached, or the signal has aborted */
export function connectTo({ host, port, address, proxy }: Target, signal: AbortSignal): Promise<Duplex> {
  const place = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  if (proxy !== null) return connectThrough(proxy, place, { limitMs: connectLimitMs, signal });
  return new Promise((resolve, reject) => {
    const upstream = connect({ host: address, port, timeout: connectLimitMs, allowHalfOpen: true, signal });
    upstream.once("timeout", () => upstream.destroy(new Error("timed out")));
    upstream.once("error", reject);
    upstream.once("connect", () => {
      upstream.setTimeout(0);
      upstream.removeAllListeners("timeout");
      upstream.off("error", reject);
      resolve(upstream);
    });
  });
}

/**
 * Headers to forward: without those of one hop, and those that the sender's `Connection` names (RFC 9110, section
 * 7.6.1). Content-Length stays even if `Connection` names it: without it the body's end would be lost.
 */
export function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const added = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const dropped = new Set([...hopByHop, ...added.filter((name) => name !== "content-length")]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)));
}

/**
 * Framing of a request's body. Without it Node writes the body of a GET, HEAD, DELETE, OPTIONS or TRACE unframed, and a
 * server would read it as further requests, for any host and uninspected (RFC 9112, section 11.2).
 */
export function framingOf({ headers }: IncomingMessage): { "transfer-encoding"?: string } {
  return headers["transfer-encoding"] === undefined ? {} : { "transfer-encoding": "chunked" };
}

/** Other transfer codings are not decoded here, and would be lost with the header (RFC 9112, section 6.1). */
export const isChunkedAtMost = (coding: string | undefined): boolean =>
  coding === undefined || coding.trim().toLowerCase() === "chunked";

/**
 * Passes an answer on as it comes. The server's answer may be invalid HTTP.
 * @param dropped further headers that are not passed on
 */
export function passOn(answered: IncomingMessage, response: ServerResponse, dropped: readonly string[] = []): void {
  try {
    if (!isChunkedAtMost(answered.headers["transfer-encoding"])) throw new Error("an unknown transfer coding");
    const headers = Object.entries(endToEnd(answered.headers)).filter(([name]) => !dropped.includes(name));
    response.writeHead(answered.statusCode ?? 502, Object.fromEntries(headers));
  } catch {
    answered.destroy();
    end(response, 502, "the answer is not HTTP");
    return;
  }
  answered.pipe(response);
}

/** Answers with one sentence; ends an answer that has begun. */
export function end(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { "Content-Type": "text/plain" }).end(`${message}\n`);
}
