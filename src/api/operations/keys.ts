import type { Database } from "../../database/database.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import { createdKeySchema, createKeySchema, keySchema } from "../../domain/people/key.ts";
import { scopesOf } from "../../domain/people/user.ts";
import { getAutomation } from "../../store/automations/automations.ts";
import { createKey, listKeys, revokeKey } from "../../store/people/keys.ts";
import { organizationOf, principalOfRequest } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { databaseOfSecret, idOfCreated } from "../http/idempotency.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";

const tags = ["Keys"];

/** Adds the operations on API keys: create, list, revoke. */
export function addKeyOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  app.post(
    "/key/create",
    {
      config: { operation: { scope: "admin", creates: true, secretAnswer: true } },
      schema: {
        tags,
        operationId: "createKey",
        summary: "Create an API key, shown only in this response",
        body: createKeySchema,
        response: answers(createdKeySchema),
      },
    },
    async (request) => {
      const { name, role, scopes = role === undefined ? ["read", "write"] : scopesOf(role), expiresAt } = request.body;
      const { automationIds } = request.body;
      const { organizationId, userId } = principalOfRequest(request);
      await requireAutomations(database, organizationId, automationIds ?? []);
      const input = { id: idOfCreated(request), name, scopes, automationIds, expiresAt, userId };
      const { record, key } = await createKey(databaseOfSecret(database, request), organizationId, input);
      return { ...record, key };
    },
  );
  app.get(
    "/key/list",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "listKeys",
        summary: "List API keys, by their prefix",
        querystring: pageQuerySchema,
        response: answers(pageSchema("keys", keySchema)),
      },
    },
    async (request) => {
      const page = await listKeys(database, organizationOf(request), request.query);
      return { keys: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/key/:id/revoke",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "revokeKey",
        summary: "Revoke an API key at once",
        params: idParameters,
        response: answers(keySchema),
      },
    },
    async (request) => revokeKey(database, organizationOf(request), idOf(request, "key")),
  );
}

/**
 * Checks that all ids are automations of the organization.
 * @throws InvalidInputError naming the entry that is not
 */
async function requireAutomations(database: Database, organizationId: string, ids: readonly string[]): Promise<void> {
  for (const [index, id] of ids.entries()) {
    if ((await getAutomation(database, organizationId, id)) === null) {
      throw new InvalidInputError(`automationIds.${index}: this organization has no automation ${id}`);
    }
  }
}
