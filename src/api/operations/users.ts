import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import { updateUserSchema, userSchema } from "../../domain/people/user.ts";
import { eraseUser, listUsers, updateUser } from "../../store/people/users.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";

const tags = ["Users"];

/** Adds the operations on users who signed in by an identity provider, and on their roles. */
export function addUserOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  app.get(
    "/user/list",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "listUsers",
        summary: "List users",
        querystring: pageQuerySchema,
        response: answers(pageSchema("users", userSchema)),
      },
    },
    async (request) => {
      const page = await listUsers(database, organizationOf(request), request.query);
      return { users: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/user/:id/update",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "updateUser",
        summary: "Change a user's role, or disable them",
        params: idParameters,
        body: updateUserSchema,
        response: answers(userSchema),
      },
    },
    async (request) => updateUser(database, organizationOf(request), idOf(request, "user"), request.body),
  );
  app.post(
    "/user/:id/erase",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "eraseUser",
        summary: "Erase who a user is, sign them out and revoke their keys",
        params: idParameters,
        response: answers(userSchema),
      },
    },
    async (request) => eraseUser(database, organizationOf(request), idOf(request, "user")),
  );
}
