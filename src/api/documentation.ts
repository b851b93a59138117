import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import type { App } from "./context.ts";

/** The interface's own version, which its description carries. */
const interfaceVersion = "1.0.0";

/** `/openapi.json`, generated from the schemas that validate, and `/reference`, a page of it served by ourselves. */
export async function addDocumentation(app: App): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Offstage",
        version: interfaceVersion,
        description: "Runs coding agents in the background on code repositories: a prompt becomes one pull request.",
      },
      components: {
        securitySchemes: {
          bearer: { type: "http", scheme: "bearer" },
          apiKey: { type: "apiKey", in: "query", name: "apiKey" },
        },
      },
      security: [{ bearer: [] }, { apiKey: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  await app.register(swaggerUi, { routePrefix: "/reference", staticCSP: true });
  app.get("/openapi.json", { schema: { hide: true } }, () => app.swagger());
}
