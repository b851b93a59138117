import { environmentSchema, updateEnvironmentSchema } from "../../../domain/environments/environment.ts";
import { getEnvironment, updateEnvironment } from "../../../store/repositories/repository-settings.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";

const tags = ["Repositories"];

/**
 * Adds the operations on a repository's setup script, variables and sparse checkout. Only an admin may change them, because the
 * script runs with setup secrets.
 */
export function addEnvironmentOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  app.get(
    "/repository/:id/environment",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getEnvironment",
        summary: "Show a repository's setup script, variables and sparse checkout",
        params: idParameters,
        response: answers(environmentSchema),
      },
    },
    async (request) => getEnvironment(database, organizationOf(request), idOf(request, "repository")),
  );
  app.post(
    "/repository/:id/environment",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "updateEnvironment",
        summary: "Set a repository's setup script, variables and sparse checkout",
        params: idParameters,
        body: updateEnvironmentSchema,
        response: answers(environmentSchema),
      },
    },
    async (request) => updateEnvironment(database, organizationOf(request), idOf(request, "repository"), request.body),
  );
}
