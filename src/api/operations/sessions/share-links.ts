import { z } from "zod";
import { pageQuerySchema, pageSchema } from "../../../domain/fields/list.ts";
import {
  createdShareSchema,
  createShareSchema,
  defaultShareDays,
  listedShareSchema,
  shareSchema,
} from "../../../domain/sessions/share.ts";
import { createShare, listShares, listSharesOfAll, revokeShare } from "../../../store/people/share-links.ts";
import { requireSession } from "../../../store/sessions/sessions.ts";
import { organizationOf, principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { databaseOfSecret, idOfCreated } from "../../http/idempotency.ts";
import { answers, idOf, idParameters, requireUuid } from "../../http/shapes.ts";

const tags = ["Sessions"];

/** Adds the operations on the links that show a session: create, list, revoke. */
export function addShareLinkOperations(
  app: App,
  { database, publicUrl }: Pick<ApiOptions, "database" | "publicUrl">,
): void {
  app.post(
    "/session/:id/share/create",
    {
      config: { operation: { scope: "write", creates: true, secretAnswer: true, optionalBody: true } },
      schema: {
        tags,
        operationId: "createShare",
        summary: "Make a link that shows the session to whoever has it, shown only in this response",
        params: idParameters,
        body: createShareSchema,
        response: answers(createdShareSchema),
      },
    },
    async (request) => {
      const id = idOf(request, "session");
      const days = request.body.expiresInDays ?? defaultShareDays;
      const link = { id: idOfCreated(request), sessionId: id, days };
      const { share, token } = await createShare(
        databaseOfSecret(database, request),
        principalOfRequest(request),
        link,
      );
      // The fragment stays in the browser: no server and no proxy logs it.
      return { ...share, url: `${publicUrl()}/shared/${id}#${token}` };
    },
  );
  app.get(
    "/session/:id/share/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listShares",
        summary: "List the links that show the session",
        params: idParameters,
        querystring: pageQuerySchema,
        response: answers(pageSchema("shares", shareSchema)),
      },
    },
    async (request) => {
      const [organizationId, id] = [organizationOf(request), idOf(request, "session")];
      await requireSession(database, organizationId, id);
      const page = await listShares(database, organizationId, id, request.query);
      return { shares: page.items, nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/share/list",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "listSharesOfAll",
        summary: "List the links that show any session of the organization, with its title",
        querystring: pageQuerySchema,
        response: answers(pageSchema("shares", listedShareSchema)),
      },
    },
    async (request) => {
      const page = await listSharesOfAll(database, organizationOf(request), request.query);
      return { shares: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/session/:id/share/:shareId/revoke",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "revokeShare",
        summary: "End what a link shows, at once",
        params: idParameters.extend({ shareId: z.string() }),
        response: answers(shareSchema),
      },
    },
    (request) => {
      const shareId = requireUuid("share link", request.params.shareId);
      return revokeShare(database, organizationOf(request), idOf(request, "session"), shareId);
    },
  );
}
