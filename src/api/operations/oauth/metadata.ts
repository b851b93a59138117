import type { FastifyReply } from "fastify";
import { resources, type Resource } from "../../../domain/people/grant.ts";
import { scopes, type Scope } from "../../../domain/people/key.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { baseUrlOf } from "../../http/hosts.ts";

/** The path of each resource, after the server's address. */
export const resourcePaths: Readonly<Record<Resource, string>> = { api: "", mcp: "/mcp" };
/** The scopes that a program usually needs (MCP authorization, "Scope Minimization"). */
const usualScopes: Readonly<Record<Resource, readonly Scope[]>> = { api: scopes, mcp: ["read", "write"] };

/** The address of a resource's metadata (RFC 9728, section 3.1). @param base this server's address */
export const resourceMetadataUrl = (base: string, resource: Resource): string =>
  `${base}/.well-known/oauth-protected-resource${resourcePaths[resource]}`;

/**
 * Adds the documents by which a program finds out how to ask people for access: protected resource metadata (RFC 9728) of the API
 * and of its MCP server, and the metadata of the authorization server (RFC 8414), which is this server.
 */
export function addOAuthMetadata(app: App, { publicUrl }: ApiOptions): void {
  for (const resource of resources) {
    app.get(resourceMetadataUrl("", resource), { schema: { hide: true } }, (request, reply) => {
      const base = baseUrlOf(request, publicUrl());
      return sendDocument(reply, {
        resource: `${base}${resourcePaths[resource]}`,
        authorization_servers: [base],
        scopes_supported: usualScopes[resource],
        bearer_methods_supported: ["header"],
        resource_name: resource === "mcp" ? "Offstage's MCP server" : "Offstage",
        resource_documentation: `${base}/reference`,
      });
    });
  }
  app.get("/.well-known/oauth-authorization-server", { schema: { hide: true } }, (request, reply) => {
    const issuer = baseUrlOf(request, publicUrl());
    return sendDocument(reply, {
      issuer,
      authorization_endpoint: `${issuer}/oauth/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      registration_endpoint: `${issuer}/oauth/register`,
      revocation_endpoint: `${issuer}/oauth/revoke`,
      scopes_supported: scopes,
      response_types_supported: ["code"],
      response_modes_supported: ["query"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["none"],
      revocation_endpoint_auth_methods_supported: ["none"],
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    });
  });
}

/** The documents are public, and pages of other sites may read them. */
function sendDocument(reply: FastifyReply, document: Record<string, unknown>): FastifyReply {
  return reply.header("Access-Control-Allow-Origin", "*").header("Cache-Control", "no-store").send(document);
}
