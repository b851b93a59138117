import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Duplex } from "node:stream";

/** The proxy did not connect to the place. */
export class ProxyRefusedError extends Error {
  override readonly name = "ProxyRefusedError";
}

/** Options of a request to a proxy: its address, and its credentials as the header that it expects. */
export function requestTo(proxy: URL): {
  readonly protocol: string;
  readonly host: string;
  readonly port: number;
  readonly headers: Record<string, string>;
} {
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return {
    protocol: proxy.protocol,
    host: proxy.hostname.replace(/^\[|\]$/gu, ""),
    port: Number(proxy.port) || (proxy.protocol === "https:" ? 443 : 80),
    headers:
      credentials === ":" ? {} : { "proxy-authorization": `Basic ${Buffer.from(credentials).toString("base64")}` },
  };
}

/**
 * Opens a connection through a proxy by CONNECT (RFC 9110, section 9.3.6).
 * @param place `host:port`, an IPv6 address in brackets
 * @param options.limitMs for the proxy's answer
 * @throws ProxyRefusedError if it answers with anything but success; Error if it can't be reached
 */
export function connectThrough(
  proxy: URL,
  place: string,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<Duplex> {
  const { headers, ...options } = requestTo(proxy);
  return new Promise((resolve, reject) => {
    const send = proxy.protocol === "https:" ? httpsRequest : httpRequest;
    const asked = send({
      ...options,
      // Without an agent: those of a process with proxies would ask the proxy for the proxy.
      agent: false,
      method: "CONNECT",
      path: place,
      headers: { ...headers, host: place },
      timeout: limitMs,
      signal,
    });
    asked.once("timeout", () => asked.destroy(new Error(`the proxy ${proxy.host} did not answer`)));
    asked.once("error", reject);
    asked.once("connect", ({ statusCode = 0 }, socket, head) => {
      socket.setTimeout(0);
      if (statusCode >= 200 && statusCode < 300) {
        if (head.length > 0) socket.unshift(head);
        return resolve(socket);
      }
      socket.destroy();
      return reject(new ProxyRefusedError(`the proxy ${proxy.host} answered ${statusCode} for ${place}`));
    });
    asked.once("response", ({ statusCode = 0 }) => {
      asked.destroy();
      reject(new ProxyRefusedError(`the proxy ${proxy.host} answered ${statusCode} for ${place}`));
    });
    asked.end();
  });
}
