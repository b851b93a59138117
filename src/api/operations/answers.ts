import { answerSchema } from "../../domain/answers/answer.ts";
import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import { listAnswers } from "../../store/answers/answer-list.ts";
import { requireSession } from "../../store/sessions/sessions.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";

/** Adds the operation that lists what Offstage writes on forges and in services because of a session. */
export function addAnswerOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  app.get(
    "/session/:id/answer/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags: ["Sessions"],
        operationId: "listAnswers",
        summary: "What was written on forges, in Slack and in Linear because of a session, or is to be",
        params: idParameters,
        querystring: pageQuerySchema,
        response: answers(pageSchema("answers", answerSchema)),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const { id } = await requireSession(database, organizationId, idOf(request, "session"));
      const page = await listAnswers(database, organizationId, id, request.query);
      return { answers: page.items, nextCursor: page.nextCursor };
    },
  );
}
