import { pageQuerySchema } from "../../../domain/fields/list.ts";
import { optionalText } from "../../../domain/fields/text.ts";
import { changeLabelsSchema, labelPageSchema } from "../../../domain/sessions/labels.ts";
import { sessionDetailSchema } from "../../../domain/sessions/session.ts";
import { archiveSession } from "../../../store/sessions/archive.ts";
import { changeLabels, listLabels } from "../../../store/sessions/labels.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";
import { toSession } from "./show.ts";

const tags = ["Sessions"];

/** Adds the operations that keep the list of sessions in order: labels, archive, unarchive. */
export function addLabelOperations(app: App, options: ApiOptions): void {
  const { database } = options;
  app.get(
    "/label/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listLabels",
        summary: "List the labels that sessions have, in the order of their letters",
        querystring: pageQuerySchema.extend({
          prefix: optionalText(50).optional().meta({ description: "What they begin with." }),
        }),
        response: answers(labelPageSchema),
      },
    },
    (request) => listLabels(database, organizationOf(request), request.query),
  );
  app.post(
    "/session/:id/labels",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "changeLabels",
        summary: "Set a session's labels, or add some and remove others",
        params: idParameters,
        body: changeLabelsSchema,
        response: answers(sessionDetailSchema),
      },
    },
    async (request) =>
      toSession(options, await changeLabels(database, organizationOf(request), idOf(request, "session"), request.body)),
  );
  for (const verb of ["archive", "unarchive"] as const) {
    app.post(
      `/session/:id/${verb}`,
      {
        config: { operation: { scope: "write" } },
        schema: {
          tags,
          operationId: `${verb}Session`,
          summary:
            verb === "archive"
              ? "Take a session that has ended out of the usual list; new work brings it back"
              : "Bring an archived session back to the usual list",
          params: idParameters,
          response: answers(sessionDetailSchema),
        },
      },
      async (request) =>
        toSession(
          options,
          await archiveSession(database, organizationOf(request), idOf(request, "session"), verb === "archive"),
        ),
    );
  }
}
