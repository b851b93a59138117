import { repositoryLimitsSchema } from "../../../domain/repositories/repository.ts";
import { getLimits, setLimits } from "../../../store/repositories/repository-settings.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";

const tags = ["Repositories"];

/** Adds the operations on how many sessions may work on a repository at once. */
export function addLimitOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  app.get(
    "/repository/:id/limits",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getLimits",
        summary: "Show a repository's limits",
        params: idParameters,
        response: answers(repositoryLimitsSchema),
      },
    },
    async (request) => getLimits(database, organizationOf(request), idOf(request, "repository")),
  );
  app.post(
    "/repository/:id/limits",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "setLimits",
        summary: "Set how many sessions may run on a repository at once",
        params: idParameters,
        body: repositoryLimitsSchema,
        response: answers(repositoryLimitsSchema),
      },
    },
    async (request) => setLimits(database, organizationOf(request), idOf(request, "repository"), request.body),
  );
}
