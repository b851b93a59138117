import type { FastifyReply, FastifyRequest } from "fastify";
import { createClient } from "../../client.ts";
import { UnauthenticatedError } from "../../domain/errors/errors.ts";
import type { McpEndpoint } from "../../mcp/http.ts";
import { accessPrefix } from "../../store/oauth/grants.ts";
import { identify } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { baseUrlOf, requireOwnOrigin } from "../http/hosts.ts";
import type { InnerCalls } from "../http/inner-calls.ts";
import type { createRateLimit } from "../http/rate-limit.ts";
import { interfaceVersion } from "../http/interface-version.ts";
import { resourceMetadataUrl, resourcePaths } from "./oauth/metadata.ts";

/**
 * Adds the MCP server at `/mcp`, by streamable HTTP (https://modelcontextprotocol.io/specification). It keeps nothing between two
 * requests, so any API node answers any of them. Its tools are requests of this API, made with the caller's own key or token.
 */
export function addMcp(
  app: App,
  options: ApiOptions,
  { inner, takeToken }: { readonly inner: InnerCalls; readonly takeToken: ReturnType<typeof createRateLimit> },
): void {
  let endpoint: Promise<McpEndpoint> | null = null;
  // Most processes are never asked, and the protocol's package is large.
  const load = (): Promise<McpEndpoint> =>
    (endpoint ??= makeEndpoint(app).catch((error: unknown) => {
      endpoint = null;
      throw error;
    }));
  app.addHook("preClose", async () => (await endpoint)?.close());

  async function serve(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    requireOwnOrigin(request, options.publicUrl(), options.hosts);
    const base = baseUrlOf(request, options.publicUrl());
    const metadataUrl = resourceMetadataUrl(base, "mcp");
    void reply.header("WWW-Authenticate", `Bearer resource_metadata="${metadataUrl}", scope="read write"`);
    request.resource = "mcp";
    // Neither a cookie, which a browser sends by itself, nor a key in the address (MCP authorization, "Token Requirements").
    if (request.headers.authorization === undefined) {
      throw new UnauthenticatedError("send an API key or an access token as `Authorization: Bearer <key>`");
    }
    const principal = await identify(options, request);
    if (principal === null) throw new UnauthenticatedError("the API key is wrong, revoked or expired");
    request.principal = principal;
    void reply.removeHeader("WWW-Authenticate");
    takeToken(principal, reply);
    const client = createClient({ baseUrl: "", fetch: inner.fetchFor(request) });
    const gone = new AbortController();
    reply.raw.once("close", () => gone.abort());
    const response = await (
      await load()
    ).answer({
      request: new Request(`${base}${resourcePaths.mcp}`, {
        method: request.method,
        headers: Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
          typeof value === "string" && name !== "content-length" ? [[name, value]] : [],
        ),
        signal: gone.signal,
      }),
      body: request.body,
      client,
      caller: {
        // A key has the scopes that it has; a program can ask its person for more.
        mayAskForMore: isProgram(request),
        scopes: principal.scopes,
        metadataUrl,
      },
    });
    request.isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    if (request.method === "HEAD") {
      await response.body?.cancel();
      return reply.code(response.status).send();
    }
    return reply.send(response);
  }
  app.route({
    method: ["GET", "POST", "DELETE"],
    url: resourcePaths.mcp,
    // A tool's input may have an event.
    config: { operation: { scope: null, passesOn: true, hasEvent: true } },
    schema: { hide: true, operationId: "mcp" },
    handler: serve,
  });
}

async function makeEndpoint({ log }: App): Promise<McpEndpoint> {
  const { createMcpEndpoint } = await import("../../mcp/http.ts");
  return createMcpEndpoint({
    version: interfaceVersion,
    onBug: (error) => log.error({ err: error }, "a tool of the MCP server failed unexpectedly"),
    onRefusal: (error) => log.debug({ err: error }, "the MCP server refused a request"),
  });
}

/** Whether a request has a program's access token, rather than a key. */
const isProgram = ({ headers }: FastifyRequest): boolean =>
  headers.authorization?.includes(` ${accessPrefix}`) === true;
