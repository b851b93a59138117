import { z } from "zod";
import { InvalidInputError } from "../../../domain/errors/errors.ts";
import { organizationOf } from "../../http/auth.ts";
import type { App } from "../../http/context.ts";
import { errorSchema } from "../../http/errors.ts";
import { wantsStream, type Streams } from "../../http/server-sent-events.ts";
import { feedPositionOf, type SessionChanges } from "./session-changes.ts";

/** Adds the stream of changes in the list of sessions, so that clients that show it need not poll. */
export function addListStream(app: App, streams: Streams, changes: SessionChanges): void {
  app.get(
    "/session/changes",
    {
      config: { operation: { scope: "read", streams: "alone" } },
      schema: {
        tags: ["Sessions"],
        operationId: "streamSessionChanges",
        summary: "Sessions of the organization as they change, as Server-Sent Events",
        description:
          "`session`: one that was created or has changed, as the list has it; `deleted`: the id of one that is gone; `reset`: what happened before is not known here, so read the list now. The first event is `reset`, unless the stream goes on after `Last-Event-ID`.",
        response: {
          200: { content: { "text/event-stream": { schema: z.string() } } },
          "4xx": errorSchema,
          "5xx": errorSchema,
        } as never,
      },
    },
    async (request, reply) => {
      const organizationId = organizationOf(request);
      if (!wantsStream(request)) throw new InvalidInputError("Accept: must be text/event-stream, as this is a stream");
      const last = request.headers["last-event-id"];
      await streams.send(request, reply, changes.of(organizationId), feedPositionOf([last].flat()[0]));
      return reply;
    },
  );
}
