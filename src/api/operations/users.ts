import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import {
  invitationSchema,
  inviteAgainSchema,
  inviteUserSchema,
  type InvitationLanguage,
} from "../../domain/people/invitation.ts";
import { updateUserSchema, userSchema } from "../../domain/people/user.ts";
import { inviteAgain, inviteUser, type Invitation } from "../../store/people/invitations.ts";
import { eraseUser, listUsers, updateUser } from "../../store/people/users.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { databaseOfSecret, idOfCreated } from "../http/idempotency.ts";
import { shownInvitation } from "../http/shown-invitation.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";

type InvitationOptions = Pick<ApiOptions, "database" | "publicUrl" | "vault" | "sendsMail">;

const tags = ["Users"];

/** Adds the operations on the people of an organization: invite, list, change their roles, erase. */
export function addUserOperations(app: App, options: InvitationOptions): void {
  const { database } = options;
  addInvitations(app, options);
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

function addInvitations(app: App, { database, publicUrl, vault, sendsMail }: InvitationOptions): void {
  const mailing = (language: InvitationLanguage = "en") => (sendsMail ? { vault, language } : null);
  const shown = (invitation: Invitation) => shownInvitation(publicUrl(), invitation);
  app.post(
    "/user/invite",
    {
      config: { operation: { scope: "admin", creates: true, secretAnswer: true } },
      schema: {
        tags,
        operationId: "inviteUser",
        summary: "Invite a person, by a link that signs them in, and that nothing has but this response and the mail",
        body: inviteUserSchema,
        response: answers(invitationSchema),
      },
    },
    async (request) => {
      const { language, ...person } = request.body;
      const invited = { ...person, id: idOfCreated(request) };
      const held = databaseOfSecret(database, request);
      return shown(await inviteUser(held, organizationOf(request), invited, mailing(language)));
    },
  );
  app.post(
    "/user/:id/invite",
    {
      config: { operation: { scope: "admin", creates: true, secretAnswer: true, optionalBody: true } },
      schema: {
        tags,
        operationId: "inviteUserAgain",
        summary: "Make another link for a person who was invited, and end those before",
        params: idParameters,
        body: inviteAgainSchema,
        response: answers(invitationSchema),
      },
    },
    async (request) => {
      const id = idOf(request, "user");
      const held = databaseOfSecret(database, request);
      return shown(await inviteAgain(held, organizationOf(request), id, mailing(request.body.language)));
    },
  );
}
