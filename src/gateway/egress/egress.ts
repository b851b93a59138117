import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { connect, isIP } from "node:net";
import type { Duplex } from "node:stream";
import { canonicalHost, egressRulesFor, type EgressPolicy } from "../../domain/egress.ts";
import { publicAddressOf } from "./addresses.ts";
import { join, passTunnel, type TunnelRefusal } from "./tunnel.ts";

export interface Refusal {
  readonly host: string;
  readonly port: number;
  readonly reason: "not allowed" | "private address" | TunnelRefusal["reason"];
  /** What the connection named instead of the host. */
  readonly named?: string;
}

export interface EgressProxy {
  /** `CONNECT host:port`, by which everything encrypted goes. */
  tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void>;
  /** `GET http://host/…`, what is not encrypted. */
  forward(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

const connectLimitMs = 15_000;
/** For a client's first message, once it is connected; some connect before they have something to say. */
const helloLimitMs = 60_000;
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

/** Where an allowed connection goes. */
interface Target {
  readonly host: string;
  readonly port: number;
  /** The name was resolved once: what was checked is what is connected to. */
  readonly address: string;
  /** Whether what it carries is not looked at. */
  readonly anyProtocol: boolean;
}

/**
 * A way out that is written down: by host and port, resolved here, and to public addresses alone.
 * @param resolve finds a name's public address
 */
export function createEgressProxy(
  policy: EgressPolicy,
  onRefused: (refusal: Refusal) => void,
  resolve: typeof publicAddressOf = publicAddressOf,
): EgressProxy {
  /** Null if the host is refused, or has no address. */
  async function targetOf(host: string, port: number): Promise<Target | null> {
    const rules = egressRulesFor(policy.rules, host, port);
    if (rules.length === 0 && !policy.open) {
      onRefused({ host, port, reason: "not allowed" });
      return null;
    }
    // If every host is open, there is none that another could be mistaken for.
    const anyProtocol = rules.length === 0 || rules.some((rule) => rule.anyProtocol);
    // An operator who writes an address into the list means it, private or not.
    if (isIP(host) !== 0 && rules.length > 0) return { host, port, address: host, anyProtocol };
    const found = await resolve(host);
    if (found === "private") onRefused({ host, port, reason: "private address" });
    return found === null || found === "private" ? null : { host, port, address: found.address, anyProtocol };
  }

  /** Whom the connections are for that speak HTTP in a tunnel. */
  const targets = new WeakMap<Duplex, Target>();
  // Never listens: connections are handed to it.
  const tunnelled = createServer((request, response) => {
    const target = targets.get(request.socket);
    const named = canonicalHost((request.headers.host ?? "").replace(/:\d+$/u, ""));
    if (target === undefined || request.url?.startsWith("/") !== true) {
      end(response, 400, "a request in a tunnel needs a path");
    } else if (named !== target.host) {
      onRefused({ ...placeOf(target), reason: "other name", ...(named !== null && { named }) });
      end(response, 421, `this connection was allowed for ${target.host} alone`);
    } else send(target, request.url, request, response);
  });

  return {
    async tunnel(request, client, head) {
      // A client that is gone is no error.
      client.on("error", () => client.destroy());
      const asked = readAuthority(request.url ?? "");
      if (asked === null) return answer(client, 400, "CONNECT needs <host>:<port>");
      const target = await targetOf(asked.host, asked.port);
      if (target === null) return answer(client, 403, `${asked.host}:${asked.port} is not allowed from this sandbox`);
      // Gone while the name was looked up.
      if (client.destroyed) return undefined;
      const { host, port, address } = target;
      const upstream = connect({ host: address, port, timeout: connectLimitMs, allowHalfOpen: true });
      const giveUp = (): void => void upstream.destroy();
      client.once("close", giveUp);
      upstream.once("timeout", () => upstream.destroy(new Error("timed out")));
      upstream.once("error", () => answer(client, 502, `${host}:${port} could not be reached`));
      upstream.once("connect", () => {
        upstream.setTimeout(0);
        upstream.removeAllListeners("error");
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
      });
      return undefined;
    },

    async forward(request, response) {
      const url = URL.canParse(request.url ?? "") ? new URL(request.url ?? "") : null;
      const host = url?.protocol === "http:" ? canonicalHost(url.host.replace(/:\d+$/u, "")) : null;
      if (url === null || host === null) return end(response, 400, "a proxied request needs a whole http:// address");
      const port = Number(url.port || 80);
      const target = await targetOf(host, port);
      if (target === null) return end(response, 403, `${host}:${port} is not allowed from this sandbox`);
      return send(target, `${url.pathname}${url.search}`, request, response);
    },
  };
}

const placeOf = ({ host, port }: Target) => ({ host, port });

/** Asks the target, by its own name, what the sandbox asked. */
function send(target: Target, path: string, request: IncomingMessage, response: ServerResponse): void {
  const { host, port, address } = target;
  const coding = request.headers["transfer-encoding"];
  if (!isChunkedAtMost(coding)) return end(response, 501, `a proxied request can't have the transfer coding ${coding}`);
  const written = isIP(host) === 6 ? `[${host}]` : host;
  const upstream = httpRequest({
    // A connection of its own: on one that is kept, what a server says too much would answer somebody else's next request.
    agent: false,
    host: address,
    port,
    method: request.method,
    path,
    headers: {
      ...endToEnd(request.headers),
      ...framingOf(request),
      host: port === 80 ? written : `${written}:${port}`,
    },
    timeout: connectLimitMs,
  });
  // Also if it was not heard to the end: what nobody reads would never be over.
  response.once("close", () => upstream.destroy());
  upstream.once("socket", (socket) => socket.once("connect", () => void upstream.setTimeout(0)));
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
}

/**
 * What is meant for who is at the other end: without what every proxy keeps to itself, and what the sender's `Connection` adds
 * to that (RFC 9110, section 7.6.1). The length stays, whatever it adds: without it a body's end would not be told.
 */
function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const added = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const dropped = new Set([...hopByHop, ...added.filter((name) => name !== "content-length")]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)));
}

/**
 * How the end of a request's body is told. Without it Node writes the body of a GET, HEAD, DELETE, OPTIONS or TRACE as it is, of
 * which a server makes further requests: for any host, not looked at by anybody (RFC 9112, section 11.2).
 */
function framingOf({ headers }: IncomingMessage): { "transfer-encoding"?: string } {
  return headers["transfer-encoding"] === undefined ? {} : { "transfer-encoding": "chunked" };
}

/** Other codings are not undone here, and would be lost with the header (RFC 9112, section 6.1). */
const isChunkedAtMost = (coding: string | undefined): boolean =>
  coding === undefined || coding.trim().toLowerCase() === "chunked";

/** What a server says may be nothing that HTTP knows. */
function passOn(answered: IncomingMessage, response: ServerResponse): void {
  try {
    if (!isChunkedAtMost(answered.headers["transfer-encoding"])) throw new Error("an unknown transfer coding");
    response.writeHead(answered.statusCode ?? 502, endToEnd(answered.headers));
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
