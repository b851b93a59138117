import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { canonicalHost, egressRulesFor, type EgressPolicy } from "../../domain/environments/egress.ts";
import { requestTo } from "../../outbound/connect.ts";
import { noProxies, proxyOf, type Proxies } from "../../outbound/proxies.ts";
import { resolveAddresses, isKnownPrivate, publicAddressOf } from "./addresses.ts";
import { connectLimitMs, connectTo, end, endToEnd, framingOf, isChunkedAtMost, passOn, type Target } from "./hop.ts";
import type { RegistryRoute } from "./registry-places.ts";
import { createRegistries, type Registries } from "./registries.ts";
import { join, passTunnel, type TunnelRefusal } from "./tunnel.ts";

/** A refused connection of the sandbox. */
export interface RefusedConnection {
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
  /** Private registries, which tunnels and requests to them go to whether or not they are on the list. */
  readonly registries: Registries;
}

/** For a client's first message after it connected; some connect long before they send. */
const helloLimitMs = 60_000;
/**
 * A proxy to listed hosts and ports. It resolves names itself, and connects to public addresses only. What goes through a
 * proxy of the operator is resolved by that one; what is private as far as this machine knows is refused before.
 * @param resolve finds a name's public address
 * @param proxies of the operator
 * @param routes private registries
 */
export function createEgressProxy(
  policy: EgressPolicy,
  onRefused: (refusal: RefusedConnection) => void,
  resolve: typeof publicAddressOf = publicAddressOf,
  proxies: Proxies = noProxies,
  routes: readonly RegistryRoute[] = [],
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
    return publicTarget(named);
  }

  /** The target at its name's public address; unresolved if a proxy of the operator will resolve it. */
  async function publicTarget(named: Target): Promise<Target | null> {
    const { host, port, proxy } = named;
    const found = proxy === null ? await resolve(host) : (await isKnownPrivate(host, resolve)) ? "private" : null;
    if (found === "private") {
      onRefused({ host, port, reason: "private address" });
      return null;
    }
    if (proxy !== null) return named;
    return found === null ? null : { ...named, address: found.address };
  }

  /** A registry's host: its operator or an admin named it. */
  async function registryTarget(host: string, port: number, mayBePrivate: boolean): Promise<Target | null> {
    const proxy = proxyOf(proxies, { protocol: "https:", host, port });
    const named = { host, port, address: host, proxy, anyProtocol: false };
    if (!mayBePrivate) return publicTarget(named);
    const [address] = proxy === null ? await resolveAddresses(host).catch(() => []) : [host];
    return address === undefined ? null : { ...named, address };
  }
  const registries = createRegistries(routes, {
    targetOf: registryTarget,
    allowedTarget: (host, port) => targetOf("https:", host, port),
  });

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
    registries,
    async tunnel(request, client, head) {
      // A disconnected client is not an error.
      client.on("error", () => client.destroy());
      const authority = readAuthority(request.url ?? "");
      if (authority === null) return answer(client, 400, "CONNECT needs <host>:<port>");
      if (registries.intercepts(authority.host, authority.port))
        return registries.intercept(authority.host, authority.port, client, head);
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
      const url = URL.parse(request.url ?? "");
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
  // Also if the client hung up: an answer without a reader would never end.
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
