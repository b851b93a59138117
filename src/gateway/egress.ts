import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, isIP } from "node:net";
import type { Duplex } from "node:stream";
import { allowsEgress, canonicalHost, type EgressPolicy } from "../domain/egress.ts";
import { addressesOf, isPublicAddress } from "./addresses.ts";

export interface Refusal {
  readonly host: string;
  readonly port: number;
  readonly reason: "not allowed" | "private address";
}

export interface EgressProxy {
  /** `CONNECT host:port`, by which everything encrypted goes. */
  tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void>;
  /** `GET http://host/…`, what is not encrypted. */
  forward(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

const connectLimitMs = 15_000;
/** Of one connection of the client's to its proxy, and not for who is behind it. */
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

/** A way out that is written down: by host and port, resolved here, and to public addresses alone. */
export function createEgressProxy(policy: EgressPolicy, onRefused: (refusal: Refusal) => void): EgressProxy {
  /** The address to connect to; null where it is refused, or has none. The name is resolved once: what was checked is used. */
  async function addressOf(host: string, port: number): Promise<string | null> {
    const written = allowsEgress(policy.rules, host, port);
    if (!written && !policy.open) {
      onRefused({ host, port, reason: "not allowed" });
      return null;
    }
    // An operator who writes an address into the list means it, private or not.
    if (isIP(host) !== 0 && written) return host;
    const found = await addressesOf(host).catch(() => []);
    const address = found.find(isPublicAddress);
    if (address === undefined && found.length > 0) onRefused({ host, port, reason: "private address" });
    return address ?? null;
  }

  return {
    async tunnel(request, client, head) {
      // A client that is gone is no error.
      client.on("error", () => client.destroy());
      const target = readAuthority(request.url ?? "");
      if (target === null) return answer(client, 400, "CONNECT needs <host>:<port>");
      const address = await addressOf(target.host, target.port);
      if (address === null)
        return answer(client, 403, `${target.host}:${target.port} is not allowed from this sandbox`);
      // Gone while the name was looked up.
      if (client.destroyed) return undefined;
      const upstream = connect({ host: address, port: target.port, timeout: connectLimitMs, allowHalfOpen: true });
      client.once("close", () => upstream.destroy());
      upstream.once("timeout", () => upstream.destroy(new Error("timed out")));
      upstream.once("error", () => answer(client, 502, `${target.host}:${target.port} could not be reached`));
      upstream.once("connect", () => {
        upstream.setTimeout(0);
        upstream.removeAllListeners("error");
        upstream.on("error", () => client.destroy());
        client.write("HTTP/1.1 200 Connection established\r\n\r\n");
        upstream.write(head);
        client.pipe(upstream);
        upstream.pipe(client);
      });
      return undefined;
    },

    async forward(request, response) {
      const url = URL.canParse(request.url ?? "") ? new URL(request.url ?? "") : null;
      const host = url?.protocol === "http:" ? canonicalHost(url.host.replace(/:\d+$/u, "")) : null;
      if (url === null || host === null) return end(response, 400, "a proxied request needs a whole http:// address");
      const port = Number(url.port || 80);
      const address = await addressOf(host, port);
      if (address === null) return end(response, 403, `${host}:${port} is not allowed from this sandbox`);
      const headers = Object.entries(request.headers).filter(([name]) => !hopByHop.has(name));
      const upstream = httpRequest({
        host: address,
        port,
        method: request.method,
        path: `${url.pathname}${url.search}`,
        headers: { ...Object.fromEntries(headers), host: url.host },
        timeout: connectLimitMs,
      });
      // Also where it was not heard to the end: what nobody reads would never be over.
      response.once("close", () => upstream.destroy());
      upstream.once("socket", (socket) => {
        const isConnected = (): void => void upstream.setTimeout(0);
        if (socket.connecting) socket.once("connect", isConnected);
        else isConnected();
      });
      upstream.once("timeout", () => upstream.destroy(new Error("timed out")));
      upstream.on("error", () => end(response, 502, `${host}:${port} could not be reached`));
      upstream.once("upgrade", (_answered, socket) => {
        socket.destroy();
        end(response, 502, `${host}:${port} changed to another protocol, which a proxied request can't`);
      });
      upstream.once("response", (answered) => {
        answered.once("error", () => response.destroy());
        passOn(answered, response);
      });
      request.pipe(upstream);
      return undefined;
    },
  };
}

/** What a server says may be nothing that HTTP knows. */
function passOn(answered: IncomingMessage, response: ServerResponse): void {
  try {
    response.writeHead(answered.statusCode ?? 502, answered.headers);
  } catch {
    answered.destroy();
    end(response, 502, "what was answered is no HTTP");
    return;
  }
  answered.pipe(response);
}

/** `host:port` of a CONNECT, and nothing else of what a URL could hold. */
function readAuthority(text: string): { host: string; port: number } | null {
  const [, name = "", digits = ""] = /^(\[[0-9a-fA-F:.]+\]|[^:@/?#[\]\s]+):(\d{1,5})$/u.exec(text) ?? [];
  const host = name === "" ? null : canonicalHost(name);
  const port = Number(digits);
  return host === null || port < 1 || port > 65_535 ? null : { host, port };
}

function answer(client: Duplex, status: number, message: string): void {
  if (!client.destroyed)
    client.end(`HTTP/1.1 ${status} Refused\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n${message}\n`);
}

function end(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { "Content-Type": "text/plain" }).end(`${message}\n`);
}
