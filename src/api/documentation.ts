import { readFile } from "node:fs/promises";
import { join } from "node:path";
import Fastify, { type FastifyInstance, type RouteOptions } from "fastify";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { bodyExamples } from "./examples.ts";
import type { App, OperationConfig } from "./http/context.ts";
import { interfaceVersion } from "./http/interface-version.ts";

const introduction = `Runs coding agents in the background on code repositories: a prompt becomes one pull request.

Send an API key as \`Authorization: Bearer <key>\` or \`?apiKey=<key>\`. Every error is \`{"error": "<one sentence>"}\`.
Lists are newest first; pass \`nextCursor\` as \`cursor\` to get the next page.`;

type Transform = typeof jsonSchemaTransform;

/** Explains to an agent how to hand work over (https://agentskills.io). */
const skillFile = join(import.meta.dirname, "../../docs/skills/offstage/SKILL.md");

/** A route as it describes itself. */
type Described = Pick<RouteOptions, "method" | "url" | "schema" | "config">;

/**
 * Adds `/openapi.json`, generated from the schemas that validate requests, and the skill file for agents. What makes the former is loaded at the first request: most processes
 * are never asked. Call it before any route is added.
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
  app.get("/skills/offstage/SKILL.md", { schema: { hide: true } }, async (_request, reply) =>
    reply.type("text/markdown; charset=utf-8").send(await readFile(skillFile)),
  );
}

/** A server that never listens, with the same routes for their descriptions only. */
async function createDocumentation(routes: readonly Described[]): Promise<FastifyInstance> {
  const { default: swagger } = await import("@fastify/swagger");
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
      const example = bodyExamples[String(schema["operationId"])];
      const body = example === undefined ? {} : { body: { ...(schema["body"] as object), examples: [example] } };
      const beside = operation === undefined ? {} : operationDetails(schema, operation);
      return { schema: { ...schema, ...body, ...beside }, url };
    },
    transformObject: (input) => {
      const description = jsonSchemaTransformObject(input);
      for (const { post } of Object.values(description.paths ?? {}) as { post?: DescribedOperation }[]) {
        if (optionalBodies.has(post?.operationId) && post?.requestBody !== undefined) post.requestBody.required = false;
      }
      return description;
    },
  });
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
function operationDetails(
  schema: ReturnType<Transform>["schema"],
  operation: OperationConfig,
): Record<string, unknown> {
  const headers = {
    ...(operation.creates === true && {
      "Idempotency-Key": {
        type: "string",
        minLength: 1,
        maxLength: 255,
        pattern: "^[\\u0021-\\u007e]+$",
        description: `Repeating a request with the same key within 24 hours returns the first response.${operation.secretAnswer === undefined ? "" : " One with a secret is returned only to the key, person or program that made the first request."}`,
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
