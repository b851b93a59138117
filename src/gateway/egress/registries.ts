import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server } from "node:https";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { canonicalHost } from "../../domain/environments/egress.ts";
import { createAuthority } from "./certificates.ts";
import {
  below,
  createRegistryPlaces,
  comparableHost,
  portOf,
  type RegistryPlace,
  type RegistryRoute,
} from "./registry-places.ts";
import { connectLimitMs, connectTo, end, endToEnd, framingOf, isChunkedAtMost, passOn, type Target } from "./hop.ts";

/** Passes a sandbox's requests on to private registries, with their credentials. */
export interface Registries {
  /** Certificate, as PEM, that tools in the sandbox must trust; null if there is no registry. */
  readonly authority: string | null;
  /** Whether a tunnel to this place is for a registry. */
  intercepts(host: string, port: number): boolean;
  /** Takes over the tunnel of a CONNECT: from here its TLS ends. */
  intercept(host: string, port: number, client: Duplex, head: Buffer): void;
  /** Answers a request to a registry by its id. @param path below the registry's address, without a leading `/` */
  serve(id: string, path: string, request: IncomingMessage, response: ServerResponse): void;
}

/** How registries' hosts are reached, and what else the sandbox may reach. */
export interface RegistryReach {
  /**
   * Resolves a registry's host.
   * @returns null if it is refused, or has no address
   */
  targetOf(host: string, port: number, mayBePrivate: boolean): Promise<Target | null>;
  /** The same for a path that no registry is at: by the list of allowed hosts. */
  allowedTarget(host: string, port: number): Promise<Target | null>;
}

/** Headers of the sandbox that would replace the credential, and of the answer that would carry one. */
const ownCredentials = ["authorization", "cookie"];
const givenCredentials = ["set-cookie", "set-cookie2"];
/** Requests of npm by POST that change nothing (https://docs.npmjs.com/cli/commands/npm-audit). */
const audits = /^-\/npm\/v1\/security\/(?:advisories\/bulk|audits(?:\/quick)?)$/u;

/**
 * Ends the TLS of tunnels to registries, so that it can add their credentials to the requests inside. A tool asks the registry at
 * its own address: so addresses in metadata, redirects and lock files are the true ones. The key of the authority never leaves
 * this process, and signs for registries' hosts alone.
 *
 * Only reading is passed on. A redirect goes to the sandbox as it is: whatever it leads to gets no credential but a registry's
 * own.
 */
export function createRegistries(routes: readonly RegistryRoute[], reach: RegistryReach): Registries {
  const places = createRegistryPlaces(routes);
  const authority = routes.length === 0 ? null : createAuthority("Offstage, for one sandbox");
  const servers = new Map<string, Server>();

  async function pass(
    url: URL,
    found: RegistryPlace | null,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const [host, port] = [comparableHost(url), portOf(url)];
    if (found !== null && climbs(url.pathname))
      return end(response, 400, "a path of a registry can't have dots as a part");
    const path = found === null ? null : below(found, url);
    const refusal = path === null ? null : refusalOf(request.method ?? "", path);
    if (refusal !== null) return end(response, 403, refusal);
    const target =
      found === null
        ? await reach.allowedTarget(host, port)
        : await reach.targetOf(host, port, found.route.mayBePrivate);
    if (target === null) return end(response, 403, `${url.host}${url.pathname} is not allowed from this sandbox`);
    const onText =
      found !== null && places.isIndex(found, url) ? (said: string) => places.note(found, said) : undefined;
    return send(target, url, { authorization: found?.route.authorization ?? null, onText }, request, response);
  }

  function serverOf(host: string, port: number): Server {
    const key = `${host}:${port}`;
    const known = servers.get(key);
    if (known !== undefined) return known;
    // Never listens: it is handed connections.
    const made = createTlsServer(
      { ...authority?.serverFor(host), ALPNProtocols: ["http/1.1"], handshakeTimeout: connectLimitMs },
      (request, response) => {
        const named = canonicalHost((request.headers.host ?? "").replace(/:\d+$/u, ""));
        const url = urlOf(`https://${isIP(host) === 6 ? `[${host}]` : host}:${port}`, request.url ?? "");
        if (url === null) return end(response, 400, "a request in a tunnel needs a path");
        if (named !== host) return end(response, 421, `this connection was allowed only for ${host}`);
        return void pass(url, places.placeOf(url), request, response);
      },
    );
    made.requestTimeout = 0;
    made.on("tlsClientError", (_error, socket) => void socket.destroy());
    servers.set(key, made);
    return made;
  }

  return {
    authority: authority?.certificate ?? null,
    intercepts: (host, port) => places.has(host, port),
    intercept(host, port, client, head) {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      if (head.length > 0) client.unshift(head);
      serverOf(host, port).emit("connection", client);
    },
    serve(id, path, request, response) {
      const place = places.byId(id);
      const url = place === undefined ? null : urlOf(place.url.origin, `${place.path}${path}`);
      if (place === undefined || url === null) return end(response, 404, "there is no such registry");
      // The parser takes dots out of a path, which may lead out of the registry.
      const isBelow = comparableHost(url) === comparableHost(place.url) && below(place, url) !== null;
      return void pass(url, isBelow ? place : places.placeOf(url), request, response);
    },
  };
}

/** A URL of an origin and a path as it was sent; null if that is no path. The parser takes `.` and `..` out of it. */
function urlOf(origin: string, path: string): URL | null {
  return path.startsWith("/") ? URL.parse(`${origin}${path}`) : null;
}

/** Whether a path has a part that a server could take for `.` or `..`, however it is escaped. */
function climbs(path: string): boolean {
  const decoded = path
    .replaceAll(/%25/gu, "%")
    .replaceAll(/%2e/giu, ".")
    .replaceAll(/%2f/giu, "/")
    .replaceAll(/%5c/giu, "\\");
  return decoded.split(/[/\\;]/u).some((part) => part === "." || part === "..");
}

function refusalOf(method: string, path: string): string | null {
  if (method === "GET" || method === "HEAD" || (method === "POST" && audits.test(path))) return null;
  return `a sandbox can read from this registry, and not ${method} anything there`;
}

/** Most bytes of an index that are read. */
const indexBytes = 64 * 1024;
/** Headers by which an answer may come without its text, or coded. */
const shortening = ["if-none-match", "if-modified-since", "accept-encoding", "range"];

/** The handling of a request in addition to passing it on. */
interface Sending {
  readonly authorization: string | null;
  /** Called with the text of the answer, if it is a good one and short, before its end is passed on. */
  readonly onText: ((text: string) => void) | undefined;
}

/** Forwards a request, with the credential in the place of the sandbox's own, if there is one. */
async function send(
  target: Target,
  url: URL,
  { authorization, onText }: Sending,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const coding = request.headers["transfer-encoding"];
  if (!isChunkedAtMost(coding)) return end(response, 501, `a request can't have the transfer coding ${coding}`);
  const unreached = (): void => end(response, 502, `${url.host} could not be reached`);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const socket = await openTo(target, gone.signal).catch(() => null);
  if (socket === null) return unreached();
  const headers = Object.entries({ ...endToEnd(request.headers), ...framingOf(request) });
  const dropped = new Set([
    ...(authorization === null ? [] : ownCredentials),
    ...(onText === undefined ? [] : shortening),
  ]);
  const upstream = httpRequest({
    // One connection for each request, which is closed with it.
    createConnection: () => socket,
    method: request.method,
    path: `${url.pathname}${url.search}`,
    headers: {
      ...Object.fromEntries(headers.filter(([name]) => !dropped.has(name))),
      host: url.host,
      ...(authorization !== null && { authorization }),
    },
  });
  response.once("close", () => upstream.destroy());
  upstream.on("error", unreached);
  upstream.once("upgrade", (_answered, changed) => {
    changed.destroy();
    unreached();
  });
  upstream.once("response", (answered) => {
    answered.once("error", () => response.destroy());
    if (onText !== undefined && answered.statusCode === 200) readText(answered, onText);
    passOn(answered, response, authorization === null ? [] : givenCredentials);
  });
  request.pipe(upstream);
  return undefined;
}

function readText(answered: IncomingMessage, onText: (text: string) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  answered.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= indexBytes) chunks.push(chunk);
  });
  answered.once("end", () => {
    if (bytes <= indexBytes) onText(Buffer.concat(chunks).toString("utf8"));
  });
}

/** Connects, and by TLS proves who answers. @throws Error if either fails */
async function openTo(target: Target, signal: AbortSignal): Promise<Duplex> {
  const raw = await connectTo(target, signal);
  const { host } = target;
  const name = isIP(host) === 0 ? { servername: host } : { host };
  const socket = connectTls({ socket: raw, ...name, ALPNProtocols: ["http/1.1"], timeout: connectLimitMs });
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      socket.destroy();
      raw.destroy();
      reject(error);
    };
    signal.addEventListener("abort", () => raw.destroy(), { once: true });
    socket.once("timeout", () => fail(new Error("timed out"))).once("error", fail);
    socket.once("secureConnect", () => {
      socket.removeAllListeners("timeout").setTimeout(0);
      resolve(socket);
    });
  });
}
