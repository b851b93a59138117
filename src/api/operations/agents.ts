import { z } from "zod";
import { agentListSchema } from "../../domain/agents/agent.ts";
import { principalOfRequest } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { answers } from "../http/shapes.ts";

/**
 * Adds the operations that list the agents, with the reason why one is unavailable, and that show whose key is used.
 */
export function addAgentOperations(app: App, options: ApiOptions): void {
  app.get(
    "/agent/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags: ["Agents"],
        operationId: "listAgents",
        summary: "List agents, whether each is available, and what it lacks",
        response: answers(agentListSchema),
      },
    },
    async () => ({ agents: await options.agents(), nextCursor: null }),
  );
  app.get(
    "/me",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags: ["Keys"],
        operationId: "getMe",
        summary: "Show whose key this is",
        response: answers(z.object({ orgId: z.uuid().nullable(), userId: z.uuid().nullable() })),
      },
    },
    (request) => {
      const { organizationId, userId } = principalOfRequest(request);
      return Promise.resolve({ orgId: organizationId, userId });
    },
  );
}
