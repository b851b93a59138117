import { organizationSchema, updateOrganizationSchema } from "../../domain/people/organization.ts";
import { getOrganization, updateOrganization } from "../../store/people/organizations.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { answers } from "../http/shapes.ts";
import { checkAgent } from "./resolve.ts";

const tags = ["Organization"];

/** Adds the operations on the organization's settings: models, hosts, budgets. Only an admin may change them. */
export function addOrganizationOperations(app: App, options: ApiOptions): void {
  const { database } = options;
  app.get(
    "/organization",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getOrganization",
        summary: "Show the organization, its settings and this month's costs",
        response: answers(organizationSchema),
      },
    },
    (request) => getOrganization(database, organizationOf(request)),
  );
  app.post(
    "/organization/update",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "updateOrganization",
        summary: "Change the organization's settings",
        body: updateOrganizationSchema,
        response: answers(organizationSchema),
      },
    },
    async (request) => {
      await checkAgent(options, request.body.defaultAgent, "defaultAgent");
      return updateOrganization(database, organizationOf(request), request.body);
    },
  );
}
