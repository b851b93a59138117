import { z } from "zod";
import { text } from "../fields/text.ts";

/** A program that may ask people to let it act for them. */
export interface OAuthClient {
  readonly id: string;
  readonly name: string;
  readonly redirectUris: readonly string[];
}

/** Our own command line, which every server knows. */
export const commandLineClient: OAuthClient = {
  id: "offstage-cli",
  name: "Offstage command line",
  redirectUris: ["http://127.0.0.1/callback"],
};

const loopbackHosts: ReadonlySet<string> = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** Whether an address is one of the person's own machine. */
export function isLoopback({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && loopbackHosts.has(hostname);
}

/**
 * Whether a browser may be sent to an address with an answer: by https, or to the person's own machine, as the authorization
 * specification of MCP demands (revision 2026-07-28, Security Considerations, "Communication Security").
 */
export function mayRedirectTo(address: string): boolean {
  const url = URL.parse(address);
  if (url === null || url.hash !== "" || address.includes("#") || url.username !== "" || url.password !== "")
    return false;
  return url.protocol === "https:" || isLoopback(url);
}

/** Whether an address is one of those that a client registered: exactly, but at any port of the person's own machine (RFC 8252, section 7.3). */
export function isRegistered({ redirectUris }: OAuthClient, address: string): boolean {
  if (!mayRedirectTo(address)) return false;
  return redirectUris.some((known) => known === address || withoutPort(known) === withoutPort(address));
}

/** An address of the person's own machine without its port; any other as it is. */
function withoutPort(address: string): string {
  const url = URL.parse(address);
  if (url === null || !isLoopback(url)) return address;
  url.port = "";
  return url.href;
}

const redirectUri = text(2_000).refine(
  mayRedirectTo,
  "must be https, or http on localhost, 127.0.0.1 or [::1], without a fragment",
);

/** The used fields of a program's description: when it registers (RFC 7591), or in its own document. */
export const clientMetadataSchema = z.object({
  client_name: text(200).optional(),
  redirect_uris: z.array(redirectUri).min(1).max(20),
});

/** A program's own document (draft-ietf-oauth-client-id-metadata-document-00), which is its id's address. */
export const clientDocumentSchema = clientMetadataSchema.extend({ client_id: z.string(), client_name: text(200) });

/**
 * Whether a client's id is the address of its own document: https, with a path, and nothing else than these and a query
 * (draft-ietf-oauth-client-id-metadata-document-00, section 3).
 */
export function isDocumentAddress(id: string): boolean {
  const url = URL.parse(id);
  if (url?.protocol !== "https:" || url.pathname === "/" || url.username !== "" || url.password !== "") return false;
  return !id.includes("#") && !/\/\.{1,2}(?:\/|$|\?)/u.test(id);
}
