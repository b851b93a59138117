import { z } from "zod";
import { createSecretSchema, secretSchema, updateSecretSchema } from "../../domain/environments/secret.ts";
import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import { createSecret, deleteSecret, listSecrets, updateSecret } from "../../store/secrets/secrets.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { idOfCreated } from "../http/idempotency.ts";
import { answers, idOf, idParameters, requireUuid } from "../http/shapes.ts";

const tags = ["Secrets"];

/** Adds the operations on secrets for setup scripts and agents. Their values can be set, but not read. */
export function addSecretOperations(app: App, { database, vault }: Pick<ApiOptions, "database" | "vault">): void {
  app.post(
    "/secret/create",
    {
      config: { operation: { scope: "admin", creates: true, secretBody: true } },
      schema: {
        tags,
        operationId: "createSecret",
        summary: "Create a secret",
        body: createSecretSchema,
        response: answers(secretSchema),
      },
    },
    async (request) => {
      const { name, value, phases = ["setup"], repositoryId } = request.body;
      return createSecret(database, vault, organizationOf(request), {
        id: idOfCreated(request),
        name,
        value,
        phases,
        repositoryId: repositoryId == null ? null : requireUuid("repository", repositoryId),
      });
    },
  );
  app.get(
    "/secret/list",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "listSecrets",
        summary: "List secrets, without their values",
        querystring: pageQuerySchema.extend({ repositoryId: z.uuid().optional() }),
        response: answers(pageSchema("secrets", secretSchema)),
      },
    },
    async (request) => {
      const page = await listSecrets(database, organizationOf(request), request.query);
      return { secrets: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/secret/:id/update",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "updateSecret",
        summary: "Change a secret",
        params: idParameters,
        body: updateSecretSchema,
        response: answers(secretSchema),
      },
    },
    async (request) => updateSecret(database, vault, organizationOf(request), idOf(request, "secret"), request.body),
  );
  app.post(
    "/secret/:id/delete",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "deleteSecret",
        summary: "Delete a secret",
        params: idParameters,
        response: answers(secretSchema),
      },
    },
    async (request) => deleteSecret(database, organizationOf(request), idOf(request, "secret")),
  );
}
