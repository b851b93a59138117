import { z } from "zod";
import { createSessionSchema, sessionSchema } from "../../../domain/sessions/session.ts";
import { pageSessions } from "../../../store/sessions/sessions.ts";
import { organizationOf, principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { requestOrigin } from "../../http/origin.ts";
import { answers } from "../../http/shapes.ts";
import { createFromRequest } from "./create.ts";
import { toSession } from "./show.ts";

const tags = ["Older clients"];
const query = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  page: z.coerce.number().int().min(1).max(1_000_000).default(1),
});
const metaSchema = z.object({
  currentPage: z.number().int(),
  pageSize: z.number().int(),
  totalCount: z.number().int(),
  totalPages: z.number().int(),
  hasNext: z.boolean(),
  hasPrevious: z.boolean(),
});

/** Adds the session operations under their older noun "task", which published clients use. */
export function addOlderOperations(app: App, options: ApiOptions): void {
  app.post(
    "/task/create",
    {
      config: { operation: { scope: "write", creates: true, queues: true, missingKey: 400 } },
      schema: {
        tags,
        operationId: "createTask",
        summary: "Create a session (the older name)",
        body: createSessionSchema,
        response: answers(sessionSchema),
      },
    },
    (request) => createFromRequest(options, principalOfRequest(request), request.body, requestOrigin(request)),
  );
  app.get(
    "/task/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listTasks",
        summary: "List sessions (the older name)",
        querystring: query,
        response: answers(z.object({ issues: z.array(sessionSchema), meta: metaSchema })),
      },
    },
    (request) => numberedPage(options, organizationOf(request), request.query),
  );
  app.get(
    "/task/search",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "searchTasks",
        summary: "Search sessions (the older name)",
        querystring: query.extend({ q: z.string().min(1).max(500) }),
        response: answers(z.object({ issues: z.array(sessionSchema), meta: metaSchema, query: z.string() })),
      },
    },
    async (request) => ({
      ...(await numberedPage(options, organizationOf(request), request.query)),
      query: request.query.q,
    }),
  );
}

async function numberedPage(
  options: ApiOptions,
  organizationId: string,
  { limit, page, q }: { limit: number; page: number; q?: string },
) {
  const { items, totalCount } = await pageSessions(options.database, organizationId, {
    limit,
    page,
    q: q?.replaceAll("\0", ""),
  });
  const totalPages = Math.ceil(totalCount / limit);
  return {
    issues: items.map((record) => toSession(options, record)),
    meta: {
      currentPage: page,
      pageSize: limit,
      totalCount,
      totalPages,
      hasNext: page < totalPages,
      hasPrevious: page > 1,
    },
  };
}
