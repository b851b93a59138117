import { ForbiddenError, InvalidInputError } from "../../../domain/errors/errors.ts";
import { hasScope, type Principal } from "../../../domain/people/key.ts";
import { newSession } from "../../../domain/sessions/new-session.ts";
import {
  createSessionFields,
  createSessionSchema,
  sessionSchema,
  type CreateSession,
  type Session,
} from "../../../domain/sessions/session.ts";
import { getOrganization } from "../../../store/people/organizations.ts";
import { principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { requestOrigin } from "../../http/origin.ts";
import { answers } from "../../http/shapes.ts";
import { checkAgent, resolveRepositories } from "../resolve.ts";
import { htmlUrl } from "./show.ts";

const tags = ["Sessions"];

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

/** Adds the operation that creates a session. */
export function addSessionCreation(app: App, options: ApiOptions): void {
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
}
