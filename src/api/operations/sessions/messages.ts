import { z } from "zod";
import { pageSchema, pageQuerySchema } from "../../../domain/fields/list.ts";
import { messageSchema } from "../../../domain/sessions/message.ts";
import { sessionDetailSchema } from "../../../domain/sessions/session.ts";
import { listMessages, withdrawMessage } from "../../../store/sessions/messages.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters, requireUuid } from "../../http/shapes.ts";
import { toSession } from "./show.ts";

const tags = ["Sessions"];

/** Adds the operations on a session's messages: list, withdraw. */
export function addMessageOperations(app: App, options: ApiOptions): void {
  const { database } = options;
  app.get(
    "/session/:id/message/list",
    {
      config: { operation: { scope: "read", isShared: true } },
      schema: {
        tags,
        operationId: "listMessages",
        summary: "List what the session was asked, and what of it no turn has taken yet",
        params: idParameters,
        querystring: pageQuerySchema,
        response: answers(pageSchema("messages", messageSchema)),
      },
    },
    async (request) => {
      const page = await listMessages(database, organizationOf(request), idOf(request, "session"), request.query);
      return { messages: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/session/:id/message/:messageId/withdraw",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "withdrawMessage",
        summary: "Take back a message that no turn has taken; a session that was queued for nothing else is cancelled",
        params: idParameters.extend({ messageId: z.string() }),
        response: answers(sessionDetailSchema),
      },
    },
    async (request) => {
      const messageId = requireUuid("message", request.params.messageId);
      const id = idOf(request, "session");
      return toSession(options, await withdrawMessage(database, organizationOf(request), id, messageId));
    },
  );
}
