import { z } from "zod";
import type { Database } from "../../database/database.ts";
import { ForbiddenError, InvalidInputError } from "../../domain/errors/errors.ts";
import { oneOrMore, pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import { hasScope, type Principal } from "../../domain/people/key.ts";
import { attentionReasons } from "../../domain/sessions/attention.ts";
import { labelLimit, labelSchema } from "../../domain/sessions/labels.ts";
import { newSession } from "../../domain/sessions/new-session.ts";
import {
  createSessionFields,
  createSessionSchema,
  sendMessageSchema,
  sessionBudgetSchema,
  sessionDetailSchema,
  sessionSchema,
  type CreateSession,
  type Session,
  type SessionDetail,
} from "../../domain/sessions/session.ts";
import { withoutSurroundings } from "../../domain/sessions/share.ts";
import { isFinal, sessionStatuses } from "../../domain/sessions/status.ts";
import { getOrganization } from "../../store/people/organizations.ts";
import { setSessionBudget } from "../../store/queue/budgets.ts";
import { estimateWait } from "../../store/queue/queue.ts";
import { deleteSession } from "../../store/sessions/delete-session.ts";
import type { SessionListQuery } from "../../store/sessions/conditions.ts";
import { listSessions } from "../../store/sessions/list.ts";
import { unreadAmong } from "../../store/notices/read-marks.ts";
import { searchSessions } from "../../store/sessions/search.ts";
import {
  addMessage,
  cancelSession,
  queueSession,
  requireSession,
  resolveConflicts,
  type SessionRecord,
} from "../../store/sessions/sessions.ts";
import { organizationOf, personOf, principalOfRequest } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { idOfCreated } from "../http/idempotency.ts";
import { requestOrigin } from "../http/origin.ts";
import { answers, idOf, idParameters, requireUuid } from "../http/shapes.ts";
import type { EventStreams } from "./event-stream.ts";
import { checkAgent, resolveRepositories } from "./resolve.ts";
import { addSessionProgress } from "./session-progress.ts";

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

/** The filter of a list, with `me` resolved: a sign-in by a link of the server's has no person, and so no sessions. */
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

/**
 * A session as the API shows it: the record with its address in the web app. @param unread whether its end is unread
 * for the caller
 */
export function toSession(options: ApiOptions, record: SessionRecord, unread = false): SessionDetail {
  return { ...record, htmlUrl: htmlUrl(options, record.id), unread };
}

/** Sessions as the API shows them to a caller. */
async function toSessions(
  options: ApiOptions,
  principal: Principal,
  records: readonly SessionRecord[],
): Promise<SessionDetail[]> {
  const over = records.filter(({ status }) => isFinal(status)).map(({ id }) => id);
  const unread = await unreadAmong(options.database, principal, over);
  return records.map((record) => toSession(options, record, unread.has(record.id)));
}

function htmlUrl(options: ApiOptions, id: string): string {
  return `${options.publicUrl()}/sessions/${id}`;
}

/**
 * Creates a session for `/session/create` and the older `/task/create`.
 * @throws InvalidInputError if the agent, a repository or the branch name is not valid
 */
export async function createFromRequest(
  options: ApiOptions,
  principal: Principal,
  body: CreateSession,
  { id, traceParent }: { readonly id: string; readonly traceParent: string | null },
): Promise<Session> {
  await checkAgent(options, body.agent);
  await checkBudget(options, principal, body.budgetUsd ?? null);
  const repositories = await resolveRepositories(options, principal.organizationId, body);
  const unknown = Object.keys(body).filter((field) => !createSessionFields.has(field));
  const notices =
    unknown.length === 0 ? [] : [`Offstage ignored unknown fields of the request: ${unknown.join(", ").slice(0, 500)}`];
  const { prompt, description, agent, targetBranch, branchName, queueRightAway } = body;
  const { pullRequest, pullRequestsTogether, budgetUsd, labels } = body;
  // Applies to every target branch, because work pushed directly to the configured branch would not be reviewed. The
  // default branch is not checked here: only the remote knows it.
  const configured = repositories.find(({ branch }) => branch !== null && branch === branchName);
  if (configured !== undefined) {
    throw new InvalidInputError(
      `branchName must differ from ${branchName}, the branch that ${configured.name} is configured for`,
    );
  }
  // Fields are listed one by one: the body may contain other fields, and a client must not set the session's internal
  // ones.
  const session = newSession({
    prompt,
    description,
    agent,
    targetBranch,
    branchName,
    queueRightAway,
    pullRequest,
    pullRequestsTogether,
    budgetUsd,
    labels,
    id,
    repositories,
    createdBy: principal.keyId,
    requestedBy: principal.userId,
    sandboxed: options.sandboxed,
    traceParent,
    notices: notices.map((notice) => notice.replaceAll("\0", "").toWellFormed()),
  });
  const created = await options.inserts.createSession(principal.organizationId, session);
  return { ...created, htmlUrl: htmlUrl(options, created.id) };
}

/** @throws ForbiddenError if it is more than the organization's, and not an admin's */
async function checkBudget({ database }: ApiOptions, principal: Principal, budgetUsd: number | null): Promise<void> {
  if (budgetUsd === null || hasScope(principal, "admin")) return;
  const { sessionBudgetUsd } = await getOrganization(database, principal.organizationId);
  if (sessionBudgetUsd === null || budgetUsd <= sessionBudgetUsd) return;
  throw new ForbiddenError(`budgetUsd: only an admin may set more than ${sessionBudgetUsd}, the organization's budget`);
}

/**
 * Adds the operations on sessions: create, list, search, show, queue, cancel (also as stop), delete, message (also as messages),
 * resolve conflicts, budget, events, diff.
 */
export function addSessionOperations(app: App, options: ApiOptions, streams: EventStreams): void {
  const { database } = options;
  const show = (record: SessionRecord): SessionDetail => toSession(options, record);

  app.post(
    "/session/create",
    {
      config: { operation: { scope: "write", creates: true, queues: true, missingKey: 400 } },
      schema: {
        tags,
        operationId: "postPublic-apiSessionCreate",
        summary: "Create a session",
        body: createSessionSchema,
        response: answers(sessionSchema),
      },
    },
    (request) => createFromRequest(options, principalOfRequest(request), request.body, requestOrigin(request)),
  );
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
  app.get(
    "/session/:id",
    {
      config: { operation: { scope: "read", isShared: true } },
      schema: {
        tags,
        operationId: "getSession",
        summary: "Show a session",
        params: idParameters,
        response: answers(sessionDetailSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const session = await readSession(options, principal, request.params.id);
      if (principal.shareId !== undefined) return withoutSurroundings(show(session));
      if (session.queuePosition === null) return (await toSessions(options, principal, [session]))[0] ?? show(session);
      const { organizationId, queuePosition } = session;
      const maximum = options.maxRunningPerOrganization;
      const estimatedWaitSeconds = await estimateWait(database, organizationId, queuePosition, maximum);
      return { ...show(session), estimatedWaitSeconds };
    },
  );
  addChanges(app, options, show);
  addResolveConflicts(app, options, show);
  addBudget(app, options, show);
  addSessionProgress(app, options, streams);
}

function addChanges(app: App, options: ApiOptions, show: (record: SessionRecord) => SessionDetail): void {
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

/** @throws NotFoundError if the organization has no such session */
function readSession({ database }: ApiOptions, principal: Principal, id: string): Promise<SessionRecord> {
  return requireSession(database, principal.organizationId, requireUuid("session", id));
}
