import { z } from "zod";
import type { Database } from "../../../database/database.ts";
import { oneOrMore, pageSchema, pageQuerySchema } from "../../../domain/fields/list.ts";
import type { Principal } from "../../../domain/people/key.ts";
import { attentionReasons } from "../../../domain/sessions/attention.ts";
import { labelLimit, labelSchema } from "../../../domain/sessions/labels.ts";
import { sessionDetailSchema } from "../../../domain/sessions/session.ts";
import { sessionStatuses } from "../../../domain/sessions/status.ts";
import type { SessionListQuery } from "../../../store/sessions/conditions.ts";
import { listSessions } from "../../../store/sessions/list.ts";
import { searchSessions } from "../../../store/sessions/search.ts";
import { personOf, principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers } from "../../http/shapes.ts";
import { toSessions } from "./show.ts";

const tags = ["Sessions"];

/** Filters of a list: what is given must all be so. */
const sessionQuerySchema = pageQuerySchema.extend({
  status: oneOrMore(z.enum(sessionStatuses), sessionStatuses.length)
    .optional()
    .meta({ description: "May be given several times: any of them." }),
  automationId: z.uuid().optional(),
  repositoryId: z.uuid().optional(),
  requestedBy: z
    .union([z.uuid(), z.literal("me")])
    .optional()
    .meta({ description: "Id of the user or key that asked; me: the caller." }),
  label: oneOrMore(labelSchema, labelLimit)
    .optional()
    .meta({ description: "May be given several times: all of them." }),
  archived: z
    .enum(["true", "false", "all"])
    .optional()
    .meta({ description: "Default false in a list, and all in a search." }),
  attention: oneOrMore(z.enum([...attentionReasons, "any"]), attentionReasons.length)
    .optional()
    .meta({ description: "Why they need a person, any of these; any: for whatever reason." }),
  unread: z.enum(["true"]).optional().meta({ description: "Only those that `unread` says of." }),
});
const sessionPageSchema = pageSchema("sessions", sessionDetailSchema);

/** The filter of a list, with `me` resolved: who signed in by a link of the server's is nobody by name, and asked for nothing. */
async function filterOf(
  database: Database,
  principal: Principal,
  { attention, archived, unread, ...query }: z.infer<typeof sessionQuerySchema>,
  archivedByDefault: "false" | "all",
): Promise<SessionListQuery> {
  const { userId, keyId, organizationId } = principal;
  // The organization's id is that of no user and of no key.
  const own = userId ?? keyId ?? organizationId;
  const wanted = archived ?? archivedByDefault;
  return {
    ...query,
    requestedBy: query.requestedBy === "me" ? own : query.requestedBy,
    archived: wanted === "all" ? undefined : wanted === "true",
    unreadBy: unread && ((await personOf(database, principal)) ?? organizationId),
    attention:
      attention && attentionReasons.filter((reason) => attention.some((each) => each === reason || each === "any")),
  };
}

/** Adds the operations that list and search sessions. */
export function addSessionLists(app: App, options: ApiOptions): void {
  const { database } = options;
  app.get(
    "/session/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listSessions",
        summary: "List sessions, newest first",
        description:
          "A page can be shorter than its limit although `nextCursor` is not null: then many sessions were looked at that not all filters leave.",
        querystring: sessionQuerySchema,
        response: answers(sessionPageSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const filter = await filterOf(database, principal, request.query, "false");
      const page = await listSessions(database, principal.organizationId, filter);
      return { sessions: await toSessions(options, principal, page.items), nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/session/search",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "searchSessions",
        summary: "Search sessions by words",
        querystring: sessionQuerySchema.extend({ q: z.string().min(1).max(500) }),
        response: answers(sessionPageSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const { organizationId } = principal;
      const filter = await filterOf(database, principal, request.query, "all");
      const page = await searchSessions(database, organizationId, request.query.q.replaceAll("\0", ""), filter);
      return { sessions: await toSessions(options, principal, page.items), nextCursor: page.nextCursor };
    },
  );
}
