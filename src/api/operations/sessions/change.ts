import { z } from "zod";
import {
  sendMessageSchema,
  sessionBudgetSchema,
  sessionDetailSchema,
  type SessionDetail,
} from "../../../domain/sessions/session.ts";
import { setSessionBudget } from "../../../store/queue/budgets.ts";
import { deleteSession } from "../../../store/sessions/delete-session.ts";
import {
  addMessage,
  cancelSession,
  queueSession,
  resolveConflicts,
  type SessionRecord,
} from "../../../store/sessions/sessions.ts";
import { organizationOf, principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { idOfCreated } from "../../http/idempotency.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";
import { readSession, toSession } from "./show.ts";

const tags = ["Sessions"];

/**
 * Adds the operations that change a session: queue, cancel (also as stop), delete, message (also as messages), resolve conflicts,
 * budget.
 */
export function addSessionChanges(app: App, options: ApiOptions): void {
  const show = (record: SessionRecord): SessionDetail => toSession(options, record);
  addMoves(app, options, show);
  addMessages(app, options, show);
  addResolveConflicts(app, options, show);
  addBudget(app, options, show);
}

function addMoves(app: App, options: ApiOptions, show: (record: SessionRecord) => SessionDetail): void {
  const { database } = options;
  const changes = {
    queue: { change: queueSession, summary: "Start a draft, or retry a session that ended" },
    cancel: { change: cancelSession, summary: "Cancel a session" },
    stop: { change: cancelSession, summary: "Cancel a session (the name of published clients)" },
  } as const;
  for (const [verb, { change, summary }] of Object.entries(changes)) {
    app.post(
      `/session/:id/${verb}`,
      {
        config: { operation: { scope: "write" } },
        schema: {
          tags,
          operationId: `${verb}Session`,
          summary,
          params: idParameters,
          response: answers(sessionDetailSchema),
        },
      },
      async (request) => show(await change(database, organizationOf(request), idOf(request, "session"))),
    );
  }
  app.post(
    "/session/:id/delete",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "deleteSession",
        summary: "Delete a session that is not at work, with its events, changes, checkpoints and recording",
        params: idParameters,
        response: answers(z.object({})),
      },
    },
    async (request) => {
      await deleteSession(database, organizationOf(request), idOf(request, "session"));
      return {};
    },
  );
}

function addMessages(app: App, options: ApiOptions, show: (record: SessionRecord) => SessionDetail): void {
  const { database } = options;
  const messages = {
    message: { operationId: "sendMessage", summary: "Send a follow-up message" },
    messages: { operationId: "sendMessages", summary: "Send a follow-up message (the name of published clients)" },
  } as const;
  for (const [noun, described] of Object.entries(messages)) {
    app.post(
      `/session/:id/${noun}`,
      {
        config: { operation: { scope: "write", creates: true, queues: true } },
        schema: {
          tags,
          ...described,
          params: idParameters,
          body: sendMessageSchema,
          response: answers(sessionDetailSchema),
        },
      },
      async (request) => {
        const { organizationId, keyId } = principalOfRequest(request);
        const id = idOf(request, "session");
        const message = { id: idOfCreated(request), text: request.body.message, from: keyId };
        return show(await addMessage(database, organizationId, id, message));
      },
    );
  }
}

function addResolveConflicts(app: App, options: ApiOptions, show: (record: SessionRecord) => SessionDetail): void {
  app.post(
    "/session/:id/resolve-conflicts",
    {
      config: { operation: { scope: "write", creates: true, queues: true } },
      schema: {
        tags,
        operationId: "resolveConflicts",
        summary: "Have the target branch merged into the work branch, and conflicts resolved",
        params: idParameters,
        response: answers(sessionDetailSchema),
      },
    },
    async (request) => {
      const { organizationId, keyId } = principalOfRequest(request);
      const message = { id: idOfCreated(request), from: keyId };
      return show(await resolveConflicts(options.database, organizationId, idOf(request, "session"), message));
    },
  );
}

function addBudget(app: App, options: ApiOptions, show: (record: SessionRecord) => SessionDetail): void {
  const { database } = options;
  app.post(
    "/session/:id/budget",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "setSessionBudget",
        summary: "Set the session's budget; a session that waits for it continues",
        params: idParameters,
        body: sessionBudgetSchema,
        response: answers(sessionDetailSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const id = idOf(request, "session");
      await setSessionBudget(database, principal.organizationId, id, request.body.budgetUsd);
      return show(await readSession(options, principal, id));
    },
  );
}
