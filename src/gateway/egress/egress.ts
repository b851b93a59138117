import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { request as httpsRequest } from "node:https";
import { connect, isIP } from "node:net";
import type { Duplex } from "node:stream";
import { canonicalHost, egressRulesFor, type EgressPolicy } from "../../domain/environments/egress.ts";
import { connectThrough, requestTo } from "../../outbound/connect.ts";
import { noProxies, proxyOf, type Proxies } from "../../outbound/proxies.ts";
import { isKnownPrivate, publicAddressOf } from "./addresses.ts";
import { join, passTunnel, type TunnelRefusal } from "./tunnel.ts";

/** A refused connection of the sandbox. */
export interface Refusal {
  readonly host: string;
  readonly port: number;
  readonly reason: "not allowed" | "private address" | TunnelRefusal["reason"];
  /** The host that the connection named instead. */
  readonly named?: string;
}

/** A proxy to the allowed hosts. */
export interface EgressProxy {
  /** Handles `CONNECT host:port`, as clients of encrypted protocols send it. */
  tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void>;
  /** Handles `GET http://host/…`: unencrypted HTTP. */
  forward(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

const connectLimitMs = 15_000;
/** For a client's first message after it connected; some connect long before they send. */
const helloLimitMs = 60_000;
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
interface Target {
  readonly host: string;
  readonly port: number;
  /** The name is resolved once: the address that was checked is the one connected to. With a proxy: the host itself. */
  readonly address: string;
  /** The operator's proxy, which resolves the name; null: the connection is direct. */
  readonly proxy: URL | null;
  /** Whether the connection's content is not inspected. */
  readonly anyProtocol: boolean;
}

/**
 * A proxy to listed hosts and ports. It resolves names itself, and connects to public addresses only. What goes through a
 * proxy of the operator is resolved by that one; what is private as far as this machine knows is refused before.
 * @param resolve finds a name's public address
 * @param proxies of the operator
 */
export function createEgressProxy(
  policy: EgressPolicy,
  onRefused: (refusal: Refusal) => void,
  resolve: typeof publicAddressOf = publicAddressOf,
  proxies: Proxies = noProxies,
): EgressProxy {
  /** Null if the host is refused, or has no address. */
  async function targetOf(protocol: string, host: string, port: number): Promise<Target | null> {
    const rules = egressRulesFor(policy.rules, host, port);
    if (rules.length === 0 && !policy.open) {
      onRefused({ host, port, reason: "not allowed" });
      return null;
    }
    // If every host is allowed, no host can be mistaken for a refused one.
    const anyProtocol = rules.length === 0 || rules.some((rule) => rule.anyProtocol);
    const proxy = proxyOf(proxies, { protocol, host, port });
    const named = { host, port, address: host, proxy, anyProtocol };
    // An operator who lists an address means it, private or not.
    if (isIP(host) !== 0 && rules.length > 0) return named;
    const found = proxy === null ? await resolve(host) : (await isKnownPrivate(host, resolve)) ? "private" : null;
    if (found === "private") onRefused({ host, port, reason: "private address" });
    if (found === "private") return null;
    if (proxy !== null) return named;
    return found === null ? null : { ...named, address: found.address };
  }

  /** Destinations of tunnels that turned out to carry HTTP. */
  const targets = new WeakMap<Duplex, Target>();
  // Never listens: it is handed connections.
  const tunnelled = createServer((request, response) => {
    const target = targets.get(request.socket);
    const named = canonicalHost((request.headers.host ?? "").replace(/:\d+$/u, ""));
    if (target === undefined || request.url?.startsWith("/") !== true) {
      end(response, 400, "a request in a tunnel needs a path");
    } else if (named !== target.host) {
      onRefused({ ...placeOf(target), reason: "other name", ...(named !== null && { named }) });
      end(response, 421, `this connection was allowed only for ${target.host}`);
    } else send(target, request.url, request, response);
  });

  return {
    async tunnel(request, client, head) {
      // A disconnected client is not an error.
      client.on("error", () => client.destroy());
      const authority = readAuthority(request.url ?? "");
      if (authority === null) return answer(client, 400, "CONNECT needs <host>:<port>");
      const target = await targetOf("https:", authority.host, authority.port);
      if (target === null)
        return answer(client, 403, `${authority.host}:${authority.port} is not allowed from this sandbox`);
      // The client disconnected while the name was resolved.
      if (client.destroyed) return undefined;
      const { host, port } = target;
      const given = new AbortController();
      const giveUp = (): void => given.abort();
      client.once("close", giveUp);
      connectTo(target, given.signal).then(
        (upstream) => {
          given.signal.addEventListener("abort", () => upstream.destroy(), { once: true });
          upstream.on("error", () => client.destroy());
          client.write("HTTP/1.1 200 Connection established\r\n\r\n");
          if (target.anyProtocol) {
            upstream.write(head);
            join(client, upstream);
            return;
          }
          const onHttp = (): void => {
            client.off("close", giveUp);
            targets.set(client, target);
            tunnelled.emit("connection", client);
          };
          void passTunnel(client, upstream, {
            head,
            host,
            isAddress: isIP(host) !== 0,
            limitMs: helloLimitMs,
            onHttp,
          }).then((refusal) => refusal !== null && onRefused({ host, port, ...refusal }));
        },
        () => answer(client, 502, `${host}:${port} could not be reached`),
      );
      return undefined;
    },

    async forward(request, response) {
      const url = URL.canParse(request.url ?? "") ? new URL(request.url ?? "") : null;
      const host = url?.protocol === "http:" ? canonicalHost(url.host.replace(/:\d+$/u, "")) : null;
      if (url === null || host === null) return end(response, 400, "a proxied request needs a whole http:// address");
      const port = Number(url.port || 80);
      const target = await targetOf("http:", host, port);
      if (target === null) return end(response, 403, `${host}:${port} is not allowed from this sandbox`);
      return send(target, `${url.pathname}${url.search}`, request, response);
    },
  };
}

const placeOf = ({ host, port }: Target) => ({ host, port });

/** Connects to a target, directly or through its proxy. @throws Error if it can't be reached, or the signal has aborted */
function connectTo({ host, port, address, proxy }: Target, signal: AbortSignal): Promise<Duplex> {
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

/** Forwards the sandbox's request to the target, with the target's own name as Host. */
function send(target: Target, path: string, request: IncomingMessage, response: ServerResponse): void {
  const { host, port, address, proxy } = target;
  const coding = request.headers["transfer-encoding"];
  if (!isChunkedAtMost(coding)) return end(response, 501, `a proxied request can't have the transfer coding ${coding}`);
  const written = isIP(host) === 6 ? `[${host}]` : host;
  const named = port === 80 ? written : `${written}:${port}`;
  const through = proxy === null ? null : requestTo(proxy);
  const ask = through?.protocol === "https:" ? httpsRequest : httpRequest;
  const upstream = ask({
    // One connection for each request: on a reused one, surplus bytes of the server would answer another request.
    agent: false,
    host: through?.host ?? address,
    port: through?.port ?? port,
    method: request.method,
    path: through === null ? path : `http://${named}${path}`,
    headers: { ...endToEnd(request.headers), ...framingOf(request), ...through?.headers, host: named },
    timeout: connectLimitMs,
  });
  // Also if the client hung up: an answer that nobody reads would never end.
  response.once("close", () => upstream.destroy());
  upstream.once("socket", (socket) => socket.once("connect", () => void upstream.setTimeout(0)));
  upstream.once("timeout", () => upstream.destroy(new Error("timed out")));
  upstream.on("error", () => end(response, 502, `${host}:${port} could not be reached`));
  upstream.once("upgrade", (_answered, socket) => {
    socket.destroy();
    end(response, 502, `${host}:${port} changed to another protocol, which a proxied request must not`);
  });
  upstream.once("response", (answered) => {
    answered.once("error", () => response.destroy());
    passOn(answered, response);
  });
  request.pipe(upstream);
}

/**
 * Headers to forward: without those of one hop, and those that the sender's `Connection` names (RFC 9110, section
 * 7.6.1). Content-Length stays even if `Connection` names it: without it the body's end would be lost.
 */
function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const added = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const dropped = new Set([...hopByHop, ...added.filter((name) => name !== "content-length")]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)));
}

/**
 * Framing of a request's body. Without it Node writes the body of a GET, HEAD, DELETE, OPTIONS or TRACE unframed, and a
 * server would read it as further requests, for any host and uninspected (RFC 9112, section 11.2).
 */
function framingOf({ headers }: IncomingMessage): { "transfer-encoding"?: string } {
  return headers["transfer-encoding"] === undefined ? {} : { "transfer-encoding": "chunked" };
}

/** Other transfer codings are not decoded here, and would be lost with the header (RFC 9112, section 6.1). */
const isChunkedAtMost = (coding: string | undefined): boolean =>
  coding === undefined || coding.trim().toLowerCase() === "chunked";

/** The server's answer may be invalid HTTP. */
function passOn(answered: IncomingMessage, response: ServerResponse): void {
  try {
    if (!isChunkedAtMost(answered.headers["transfer-encoding"])) throw new Error("an unknown transfer coding");
    response.writeHead(answered.statusCode ?? 502, endToEnd(answered.headers));
  } catch {
    answered.destroy();
    end(response, 502, "the answer is not HTTP");
    return;
  }
  answered.pipe(response);
}

/** Parses `host:port` of a CONNECT; null for any other form that a URL allows. */
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
