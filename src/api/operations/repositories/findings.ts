import { z } from "zod";
import { allowedFindingSchema, allowedFindingsSchema } from "../../../domain/repositories/finding.ts";
import {
  allowFinding,
  getAllowedFindings,
  setAllowedFindings,
} from "../../../store/repositories/repository-settings.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";

const tags = ["Repositories"];
const findingsSchema = z.object({ allowedFindings: z.array(allowedFindingSchema) });

/**
 * Adds the operations on findings of the secret scan that don't stop a push. Only an admin may allow one, because a
 * push can't be undone.
 */
export function addFindingOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  app.get(
    "/repository/:id/findings",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getAllowedFindings",
        summary: "Show what may be pushed although it looks like a secret",
        params: idParameters,
        response: answers(findingsSchema),
      },
    },
    async (request) => {
      const id = idOf(request, "repository");
      const organizationId = organizationOf(request);
      return { allowedFindings: await getAllowedFindings(database, organizationId, id) };
    },
  );
  app.post(
    "/repository/:id/findings",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "setAllowedFindings",
        summary: "Set what may be pushed although it looks like a secret",
        params: idParameters,
        body: z.object({ allowedFindings: allowedFindingsSchema }),
        response: answers(findingsSchema),
      },
    },
    async (request) => {
      const id = idOf(request, "repository");
      const organizationId = organizationOf(request);
      const { allowedFindings } = request.body;
      return { allowedFindings: await setAllowedFindings(database, organizationId, id, allowedFindings) };
    },
  );
  app.post(
    "/repository/:id/allow-finding",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "allowFinding",
        summary: "Let one more finding pass, by its path, rule or fingerprint",
        params: idParameters,
        body: allowedFindingSchema,
        response: answers(findingsSchema),
      },
    },
    async (request) => {
      const id = idOf(request, "repository");
      const organizationId = organizationOf(request);
      return { allowedFindings: await allowFinding(database, organizationId, id, request.body) };
    },
  );
}
