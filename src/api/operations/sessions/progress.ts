import { z } from "zod";
import { NotFoundError } from "../../../domain/errors/errors.ts";
import { eventPageSchema } from "../../../domain/sessions/event.ts";
import { sessionDiffSchema } from "../../../domain/sessions/session.ts";
import { listEvents } from "../../../store/sessions/events.ts";
import { getDiff, requireSession } from "../../../store/sessions/sessions.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { wantsStream } from "../../http/server-sent-events.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";
import type { EventStreams } from "../event-stream.ts";

const tags = ["Sessions"];

/** Adds the operations on what a session did: its events, as pages and as a stream, and its diff. */
export function addSessionProgress(app: App, options: ApiOptions, streams: EventStreams): void {
  const { database } = options;
  const after = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(0);
  app.get(
    "/session/:id/events",
    {
      config: { operation: { scope: "read", isShared: true, streams: true } },
      schema: {
        tags,
        operationId: "listEvents",
        summary: "A page of events; with Accept: text/event-stream, all of them as they happen",
        params: idParameters,
        querystring: z.object({ after, limit: z.coerce.number().int().min(1).max(1_000).default(200) }),
        response: answers(eventPageSchema),
      },
    },
    async (request, reply) => {
      const organizationId = organizationOf(request);
      const { id } = await requireSession(database, organizationId, idOf(request, "session"));
      if (wantsStream(request)) {
        const last = Number(request.headers["last-event-id"]);
        await streams.stream(
          request,
          reply,
          { organizationId, id },
          Number.isSafeInteger(last) && last > 0 ? last : request.query.after,
        );
        return reply;
      }
      const page = await listEvents(database, organizationId, id, request.query.after, request.query.limit);
      if (page === null) throw new NotFoundError(`session ${id} was not found`);
      return page;
    },
  );
  app.get(
    "/session/:id/diff",
    {
      config: { operation: { scope: "read", isShared: true } },
      schema: {
        tags,
        operationId: "getDiff",
        summary: "Show what a session changed",
        params: idParameters,
        response: answers(sessionDiffSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const diff = await getDiff(database, organizationId, idOf(request, "session"));
      if (diff === null) throw new NotFoundError(`session ${request.params.id} was not found`);
      return diff;
    },
  );
}
