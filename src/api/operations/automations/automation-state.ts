import { stateSchema, updateStateSchema } from "../../../domain/automations/state.ts";
import type { Principal } from "../../../domain/people/key.ts";
import { changeState, readState } from "../../../store/automations/state.ts";
import { principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, keyOrIdParameters } from "../../http/shapes.ts";
import { requireAutomation } from "./triggers.ts";

const tags = ["Automations"];

/** Adds the operations on what automations remember between their runs. */
export function addAutomationStateOperations(app: App, options: Pick<ApiOptions, "database">): void {
  const { database } = options;
  /** The organization and automation that a request names. @throws NotFoundError */
  const ownerOf = async (principal: Principal, keyOrId: string) => {
    const { id } = await requireAutomation(options, principal, keyOrId);
    return { organizationId: principal.organizationId, automationId: id };
  };
  app.get(
    "/automation/:keyOrId/state",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getAutomationState",
        summary: "Show what an automation's runs remember",
        params: keyOrIdParameters,
        response: answers(stateSchema),
      },
    },
    async (request) => {
      const owner = await ownerOf(principalOfRequest(request), request.params.keyOrId);
      return { entries: await readState(database.pool, owner) };
    },
  );
  app.post(
    "/automation/:keyOrId/state/update",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "updateAutomationState",
        summary: "Change what an automation's runs remember",
        params: keyOrIdParameters,
        body: updateStateSchema,
        response: answers(stateSchema),
      },
    },
    async (request) => {
      const owner = await ownerOf(principalOfRequest(request), request.params.keyOrId);
      return {
        entries: await database.transaction((transaction) => changeState(transaction, owner, request.body, null)),
      };
    },
  );
}
