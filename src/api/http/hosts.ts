import { isIP } from "node:net";
import type { FastifyRequest } from "fastify";
import { MisdirectedError } from "./errors.ts";

/**
 * Protects against DNS rebinding: another site can point its own name at this server, and its page then has our
 * origin in the browser. So only our own names are answered; an IP address can't be rebound.
 * @param names host names of the server, in addition to the public URL's and localhost
 * @throws MisdirectedError
 */
export function requireKnownHost(request: FastifyRequest, publicUrl: string, names: readonly string[]): void {
  const { host = "" } = request.headers;
  const name = host === "" ? "" : (URL.parse(`http://${host}/`)?.hostname.replace(/^\[|\]$/gu, "") ?? "");
  const ownHosts = [URL.parse(publicUrl)?.hostname ?? "", "localhost", ...names];
  if (isIP(name) !== 0 || name.endsWith(".localhost") || (name !== "" && ownHosts.includes(name))) return;
  throw new MisdirectedError(
    `the host ${name.slice(0, 200)} is not this server's: set OFFSTAGE_PUBLIC_URL, or add it to OFFSTAGE_HOSTS`,
  );
}
