import { z } from "zod";
import { egressRuleSchema } from "../../../domain/environments/egress.ts";
import { allowEgress, getEgress, setEgress } from "../../../store/repositories/repository-settings.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";

const tags = ["Repositories"];
const egressSchema = z.object({ egress: z.array(z.string()) });

/**
 * Adds the operations on the hosts that a repository's sandboxes may reach. Only an admin may change them, because
 * each host is a way out for secrets.
 */
export function addEgressOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  app.get(
    "/repository/:id/egress",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getEgress",
        summary: "Show which hosts a repository's sandboxes may reach",
        params: idParameters,
        response: answers(egressSchema),
      },
    },
    async (request) => ({
      egress: await getEgress(database, organizationOf(request), idOf(request, "repository")),
    }),
  );
  app.post(
    "/repository/:id/egress",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "setEgress",
        summary: "Set which hosts a repository's sandboxes may reach",
        params: idParameters,
        body: z.object({ egress: z.array(egressRuleSchema).max(500) }),
        response: answers(egressSchema),
      },
    },
    async (request) => {
      const id = idOf(request, "repository");
      const organizationId = organizationOf(request);
      return { egress: await setEgress(database, organizationId, id, request.body.egress) };
    },
  );
  app.post(
    "/repository/:id/allow",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "allowEgress",
        summary: "Let a repository's sandboxes reach one more host",
        params: idParameters,
        body: z.object({ host: egressRuleSchema }),
        response: answers(egressSchema),
      },
    },
    async (request) => {
      const id = idOf(request, "repository");
      const organizationId = organizationOf(request);
      return { egress: await allowEgress(database, organizationId, id, request.body.host.toLowerCase()) };
    },
  );
}
