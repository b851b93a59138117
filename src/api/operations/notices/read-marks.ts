import { z } from "zod";
import { countUnread, markAllRead, markRead } from "../../../store/notices/read-marks.ts";
import { personOf, principalOfRequest, requirePerson } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";

const tags = ["Notices"];

/** Adds the operations on a person's unread outcomes: count them, mark one or all as read. */
export function addReadMarkOperations(app: App, { database }: ApiOptions): void {
  app.get(
    "/session/unread",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "countUnread",
        summary: "Count your sessions that are over and that you have not looked at, up to a hundred",
        response: answers(z.object({ count: z.number().int(), more: z.boolean() })),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const userId = await personOf(database, principal);
      if (userId === null) return { count: 0, more: false };
      return countUnread(database, { organizationId: principal.organizationId, userId });
    },
  );
  app.post(
    "/session/:id/read",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "markRead",
        summary: "Mark a session as looked at by you",
        params: idParameters,
        response: answers(z.object({})),
      },
    },
    async (request) => {
      await markRead(database, await requirePerson(database, request), idOf(request, "session"));
      return {};
    },
  );
  app.post(
    "/session/read-all",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "markAllRead",
        summary: "Mark everything that is over as looked at by you",
        response: answers(z.object({})),
      },
    },
    async (request) => {
      await markAllRead(database, await requirePerson(database, request));
      return {};
    },
  );
}
