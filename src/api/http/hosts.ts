import { isIP } from "node:net";
import type { FastifyRequest } from "fastify";
import { MisdirectedError } from "./errors.ts";

/**
 * A page of another site can have its own name lead to this server (DNS rebinding), and is then of our origin for the
 * browser: only names that are ours are answered. An address can't be made to lead elsewhere.
 * @param names of the server, beside the public URL's and localhost
 * @throws MisdirectedError
 */
export function requireKnownHost(request: FastifyRequest, publicUrl: string, names: readonly string[]): void {
  const { host = "" } = request.headers;
  const url = `http://${host}/`;
  const name = host !== "" && URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/gu, "") : "";
  const ours = [URL.canParse(publicUrl) ? new URL(publicUrl).hostname : "", "localhost", ...names];
  if (isIP(name) !== 0 || name.endsWith(".localhost") || (name !== "" && ours.includes(name))) return;
  throw new MisdirectedError(
    `the host ${name.slice(0, 200)} is not this server's: set OFFSTAGE_PUBLIC_URL, or add it to OFFSTAGE_HOSTS`,
  );
}
