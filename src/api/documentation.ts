import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import type { App, OperationConfig } from "./http/context.ts";

/** Version of the API, as its OpenAPI description states it. */
const interfaceVersion = "1.0.0";

const introduction = `Runs coding agents in the background on code repositories: a prompt becomes one pull request.

Send an API key as \`Authorization: Bearer <key>\` or \`?apiKey=<key>\`. Every error is \`{"error": "<one sentence>"}\`.
Lists are newest first; pass \`nextCursor\` as \`cursor\` to get the next page.`;

type Transform = typeof jsonSchemaTransform;

/**
 * Adds `/openapi.json`, generated from the schemas that validate requests, and `/reference`, a page that shows it
 * without files from other sites.
 */
export async function addDocumentation(app: App): Promise<void> {
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
      for (const { post } of Object.values(description.paths ?? {}) as { post?: Described }[]) {
        if (optionalBodies.has(post?.operationId) && post?.requestBody !== undefined) post.requestBody.required = false;
      }
      return description;
    },
  });
  await app.register(swaggerUi, { routePrefix: "/reference", staticCSP: true });
  app.get("/openapi.json", { schema: { hide: true } }, () => app.swagger());
}

interface Described {
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
    ...(operation.streams === true && {
      "Last-Event-ID": { type: "string", description: "Number of the last event seen; the stream continues after it." },
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
