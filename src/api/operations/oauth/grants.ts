import type { FastifyRequest } from "fastify";
import { NotFoundError } from "../../../domain/errors/errors.ts";
import { pageSchema, pageQuerySchema } from "../../../domain/fields/list.ts";
import { grantSchema } from "../../../domain/people/grant.ts";
import { hasScope } from "../../../domain/people/key.ts";
import { listGrants, revokeGrant, type GrantOwner } from "../../../store/oauth/grants.ts";
import { organizationOf, principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";

const tags = ["Sign-in"];

/**
 * The grants that a caller may see and end: an admin all of them, a user or key its own; null: a reader by a share link
 * has none.
 */
function mayManage(request: FastifyRequest): GrantOwner | null {
  const principal = principalOfRequest(request);
  if (hasScope(principal, "admin")) return { all: true };
  if (principal.userId !== null) return { userId: principal.userId };
  return principal.keyId === null ? null : { keyId: principal.keyId };
}

/** Adds the operations on programs that people let act for them: list and revoke. */
export function addGrantOperations(app: App, { database }: ApiOptions): void {
  app.get(
    "/grant/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listGrants",
        summary: "List programs that were let act for people: for you, as an admin for all",
        querystring: pageQuerySchema,
        response: answers(pageSchema("grants", grantSchema)),
      },
    },
    async (request) => {
      const of = mayManage(request);
      if (of === null) return { grants: [], nextCursor: null };
      const page = await listGrants(database, organizationOf(request), { ...request.query, of });
      return { grants: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/grant/:id/revoke",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "revokeGrant",
        summary: "End what a program may do: its tokens are refused from then on",
        params: idParameters,
        response: answers(grantSchema),
      },
    },
    async (request) => {
      const of = mayManage(request);
      const id = idOf(request, "grant");
      if (of === null) throw new NotFoundError(`grant ${id} was not found`);
      return revokeGrant(database, organizationOf(request), id, of);
    },
  );
}
