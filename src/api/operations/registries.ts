import { createRegistrySchema, registrySchema, updateRegistrySchema } from "../../domain/environments/registry.ts";
import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import { createRegistry, deleteRegistry, listRegistries, updateRegistry } from "../../store/secrets/registries.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { idOfCreated } from "../http/idempotency.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";

const tags = ["Registries"];

/** Adds the operations on private package registries. Their tokens can be set, but not read. */
export function addRegistryOperations(app: App, { database, vault }: Pick<ApiOptions, "database" | "vault">): void {
  app.post(
    "/registry/create",
    {
      config: { operation: { scope: "admin", creates: true, secretBody: true } },
      schema: {
        tags,
        operationId: "createRegistry",
        summary: "Add a private package registry",
        body: createRegistrySchema,
        response: answers(registrySchema),
      },
    },
    async (request) => {
      const { scope = null, username = null, ...body } = request.body;
      const input = { ...body, id: idOfCreated(request), scope, username };
      return createRegistry(database, vault, organizationOf(request), input);
    },
  );
  app.get(
    "/registry/list",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "listRegistries",
        summary: "List private package registries, without their tokens",
        querystring: pageQuerySchema,
        response: answers(pageSchema("registries", registrySchema)),
      },
    },
    async (request) => {
      const page = await listRegistries(database, organizationOf(request), request.query);
      return { registries: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/registry/:id/update",
    {
      config: { operation: { scope: "admin", secretBody: true } },
      schema: {
        tags,
        operationId: "updateRegistry",
        summary: "Replace a registry's token",
        params: idParameters,
        body: updateRegistrySchema,
        response: answers(registrySchema),
      },
    },
    async (request) =>
      updateRegistry(database, vault, organizationOf(request), idOf(request, "registry"), request.body),
  );
  app.post(
    "/registry/:id/delete",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "deleteRegistry",
        summary: "Delete a registry with its token",
        params: idParameters,
        response: answers(registrySchema),
      },
    },
    async (request) => deleteRegistry(database, organizationOf(request), idOf(request, "registry")),
  );
}
