import Fastify, { type FastifyInstance, type RouteOptions } from "fastify";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import type { App, OperationConfig } from "./http/context.ts";

/** Version of the API, as its OpenAPI description states it. */
const interfaceVersion = "1.0.0";

const introduction = `Runs coding agents in the background on code repositories: a prompt becomes one pull request.

Send an API key as \`Authorization: Bearer <key>\` or \`?apiKey=<key>\`. Every error is \`{"error": "<one sentence>"}\`.
Lists are newest first; pass \`nextCursor\` as \`cursor\` to get the next page.`;

type Transform = typeof jsonSchemaTransform;

/** Headers of a request that its answer depends on, for a file of the page. */
const askedWith: ReadonlySet<string> = new Set(["if-none-match", "if-modified-since", "range", "accept-encoding"]);
/** Headers that belong to a connection, or that the answer of the server itself gets. */
const ownHeaders: ReadonlySet<string> = new Set(["connection", "content-length", "date", "keep-alive"]);

/** A route as it describes itself. */
type Described = Pick<RouteOptions, "method" | "url" | "schema" | "config">;

/**
 * Adds `/openapi.json`, generated from the schemas that validate requests, and `/reference`, a page that shows it
 * without files from other sites. What makes them is loaded at the first request: most processes are never asked.
 * Call it before any route is added.
 */
export function addDocumentation(app: App): void {
  const routes: Described[] = [];
  app.addHook("onRoute", ({ method, url, schema, config }) => {
    if (method !== "HEAD" && schema?.hide !== true)
      routes.push({ method, url, ...(schema && { schema }), ...(config && { config }) });
  });
  let made: Promise<FastifyInstance> | null = null;
  const documentation = () =>
    (made ??= createDocumentation(routes).catch((error: unknown) => {
      made = null;
      throw error;
    }));
  app.addHook("onClose", async () => void (await made?.catch(() => null))?.close());
  app.get("/openapi.json", { schema: { hide: true } }, async () => (await documentation()).swagger());
  for (const page of ["/reference", "/reference/*"]) {
    app.get(page, { schema: { hide: true } }, async (request, reply) => {
      const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => askedWith.has(name)));
      const answer = await (await documentation()).inject({ url: request.url, headers });
      if (answer.statusCode === 404) return reply.callNotFound();
      for (const [name, value] of Object.entries(answer.headers)) {
        if (value !== undefined && !ownHeaders.has(name)) void reply.header(name, value);
      }
      return reply.status(answer.statusCode).send(answer.rawPayload);
    });
  }
}

/** A server that never listens, with the same routes for their descriptions only, and the pages. */
async function createDocumentation(routes: readonly Described[]): Promise<FastifyInstance> {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
    import("@fastify/swagger"),
    import("@fastify/swagger-ui"),
  ]);
  const app = Fastify({ exposeHeadRoutes: false, routerOptions: { ignoreTrailingSlash: true } });
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  const optionalBodies = new Set<unknown>();
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Offstage",
        version: interfaceVersion,
        description: introduction,
      },
      components: {
        securitySchemes: {
          bearer: { type: "http", scheme: "bearer" },
          apiKey: { type: "apiKey", in: "query", name: "apiKey" },
        },
      },
      security: [{ bearer: [] }, { apiKey: [] }],
    },
    transform: (input) => {
      const { schema, url } = jsonSchemaTransform(input);
      const operation = input.route.config?.operation;
      if (operation?.optionalBody === true) optionalBodies.add(schema["operationId"]);
      return { schema: operation === undefined ? schema : { ...schema, ...besideSchema(schema, operation) }, url };
    },
    transformObject: (input) => {
      const description = jsonSchemaTransformObject(input);
      for (const { post } of Object.values(description.paths ?? {}) as { post?: DescribedOperation }[]) {
        if (optionalBodies.has(post?.operationId) && post?.requestBody !== undefined) post.requestBody.required = false;
      }
      return description;
    },
  });
  await app.register(swaggerUi, { routePrefix: "/reference", staticCSP: true });
  for (const route of routes) app.route({ ...route, handler: () => undefined });
  await app.ready();
  return app;
}

interface DescribedOperation {
  readonly operationId?: string;
  readonly requestBody?: { required?: boolean };
}

/**
 * Describes what an operation does beyond its schemas: whether it needs a key, which headers it reads, whether it
 * streams.
 */
function besideSchema(schema: ReturnType<Transform>["schema"], operation: OperationConfig): Record<string, unknown> {
  const headers = {
    ...(operation.creates === true && {
      "Idempotency-Key": {
        type: "string",
        minLength: 1,
        maxLength: 255,
        pattern: "^[\\u0021-\\u007e]+$",
        description: "Repeating a request with the same key within 24 hours returns the first response.",
      },
    }),
    ...(operation.streams !== undefined && {
      "Last-Event-ID": {
        type: "string",
        description:
          "`id` of the last event seen; the stream continues after it. A stream that ends without the event `end` was cut off: ask again.",
      },
    }),
  };
  return {
    ...(operation.scope === null && { security: [] }),
    ...(Object.keys(headers).length > 0 && { headers: { type: "object", properties: headers } }),
    ...(operation.streams === true && { response: withStream(schema["response"] as Record<string, unknown>) }),
  };
}

function withStream(response: Record<string, unknown>): Record<string, unknown> {
  const page = { schema: response["200"] };
  const stream = { schema: { type: "string", description: "Server-Sent Events: id, event and data of each." } };
  const content = { "application/json": page, "text/event-stream": stream };
  return { ...response, 200: { description: "A page; with Accept: text/event-stream, a stream", content } };
}
