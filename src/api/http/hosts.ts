import { isIP } from "node:net";
import type { FastifyRequest } from "fastify";
import { ForbiddenError, InvalidInputError } from "../../domain/errors/errors.ts";
import type { Resource } from "../../domain/people/grant.ts";
import { MisdirectedError } from "./errors.ts";

/** @throws InvalidInputError if a request lacks what every one of HTTP/1.1 must have (RFC 9112, section 3.2) */
export function requireHost({ raw: { httpVersion, headers } }: FastifyRequest): void {
  if (headers.host !== undefined || httpVersion !== "1.1") return;
  throw new InvalidInputError("the Host header is missing: send the server's name");
}

/**
 * Protects against DNS rebinding: another site can point its own name at this server, and its page then has our
 * origin in the browser. So only our own names are answered; an IP address can't be rebound.
 * @param names host names of the server, in addition to the public URL's and localhost
 * @throws MisdirectedError
 */
export function requireKnownHost(request: FastifyRequest, publicUrl: string, names: readonly string[]): void {
  const { host = "" } = request.headers;
  const name = host === "" ? "" : (URL.parse(`http://${host}/`)?.hostname.replace(/^\[|\]$/gu, "") ?? "");
  if (isOwnName(name, publicUrl, names)) return;
  throw new MisdirectedError(
    `the host ${name.slice(0, 200)} is not this server's: set OFFSTAGE_PUBLIC_URL, or add it to OFFSTAGE_HOSTS`,
  );
}

/** Whether a host name, an IPv6 address without brackets, is one of this server's. */
function isOwnName(name: string, publicUrl: string, names: readonly string[]): boolean {
  const ownHosts = [URL.parse(publicUrl)?.hostname ?? "", "localhost", ...names];
  return isIP(name) !== 0 || name.endsWith(".localhost") || (name !== "" && ownHosts.includes(name));
}

/**
 * Protects what no browser of another site's page may use: a request that a page makes carries the page's origin.
 * @throws ForbiddenError if that is not one of this server's
 */
export function requireOwnOrigin(request: FastifyRequest, publicUrl: string, names: readonly string[]): void {
  const { origin, host } = request.headers;
  if (origin === undefined) return;
  const url = URL.parse(origin);
  // Any address is a host of ours that can't be rebound; but a page at some address is another site's.
  const isOwn =
    url !== null && (url.host === host || url.origin === URL.parse(publicUrl)?.origin || names.includes(url.hostname));
  if (!isOwn) throw new ForbiddenError("this request came from another site");
}

/**
 * This server's address as the client knows it, without a trailing slash: the public URL, unless the request names another of the
 * server's hosts, such as `localhost` in addition to `127.0.0.1`.
 */
export function baseUrlOf(request: FastifyRequest, publicUrl: string): string {
  return request.host === URL.parse(publicUrl)?.host ? publicUrl : `${request.protocol}://${request.host}`;
}

/** The resource of this server that a resource identifier (RFC 8707) names; null if it names none. */
export function resourceOf(identifier: string, publicUrl: string, names: readonly string[]): Resource | null {
  const url = URL.parse(identifier);
  if (url === null || !isOwnName(url.hostname.replace(/^\[|\]$/gu, ""), publicUrl, names)) return null;
  if (url.hash !== "" || url.search !== "") return null;
  const path = url.pathname.replace(/\/$/u, "");
  return path === "" ? "api" : path === "/mcp" ? "mcp" : null;
}
