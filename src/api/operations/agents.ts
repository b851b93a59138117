import { agentListSchema } from "../../domain/agents/agent.ts";
import { hasScope, scopes } from "../../domain/people/key.ts";
import { meSchema } from "../../domain/people/me.ts";
import { ownOrganizations } from "../../store/people/own-accounts.ts";
import { cookieName, isOfBrowser, isServerAdmin, personOf, principalOfRequest } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { answers } from "../http/shapes.ts";

/**
 * Adds the operations that list the agents, with the reason why one is unavailable, and that show whose key is used.
 */
export function addAgentOperations(app: App, options: Pick<ApiOptions, "agents" | "database">): void {
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
        response: answers(meSchema),
      },
    },
    async (request) => {
      const { database } = options;
      const principal = principalOfRequest(request);
      const cookie = isOfBrowser(request) && principal.userId !== null ? request.cookies[cookieName] : undefined;
      return {
        orgId: principal.organizationId,
        userId: await personOf(database, principal),
        scopes: scopes.filter((scope) => hasScope(principal, scope)),
        isServerAdmin: await isServerAdmin(database, principal),
        organizations: cookie === undefined ? [] : await ownOrganizations(database, cookie),
      };
    },
  );
}
