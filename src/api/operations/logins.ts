import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { ForbiddenError, UnauthenticatedError } from "../../domain/errors/errors.ts";
import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import { hasScope } from "../../domain/people/key.ts";
import { loginSchema } from "../../domain/people/login.ts";
import {
  createBrowserSession,
  deleteBrowserSession,
  findBrowserPrincipal,
  listLogins,
  redeemLoginLink,
  revokeLogin,
  type LoginOwner,
} from "../../store/people/logins.ts";
import { switchOrganization } from "../../store/people/own-accounts.ts";
import { appendAudit } from "../../store/requests/audit.ts";
import { cookieName, isOfBrowser, organizationOf, principalOfRequest, requireSameOrigin } from "../http/auth.ts";
import { browserCookie, browserOf } from "../http/browser-cookie.ts";
import type { ApiOptions, App } from "../http/context.ts";
import type { FailureLimit } from "../http/failure-limit.ts";
import { answers, idParameters, requireUuid } from "../http/shapes.ts";

const tags = ["Sign-in"];

/**
 * Adds the operations that sign browsers in and out. A browser exchanges a one-time link's token, or a key, for a
 * cookie that scripts can't read.
 * @param failures limit of failed sign-ins
 */
export function addLoginOperations(
  app: App,
  options: Pick<ApiOptions, "database" | "signInDays" | "findPrincipal" | "publicUrl">,
  failures: FailureLimit,
): void {
  const { database, signInDays } = options;
  app.post(
    "/login/create",
    {
      config: { operation: { scope: null } },
      schema: {
        tags,
        operationId: "createLogin",
        summary: "Sign a browser in with a one-time link or a key",
        body: z.union(
          [z.strictObject({ token: z.string().max(200) }), z.strictObject({ key: z.string().max(500) })],
          'must be {"token": <of a one-time link>} or {"key": <an API key>}',
        ),
        response: answers(z.object({ organizationId: z.uuid() })),
      },
    },
    async (request, reply) => {
      failures.check(request.ip);
      // Otherwise another site's page could sign the browser in as another user, who could then read what the victim
      // enters.
      requireSameOrigin(request);
      const token =
        "token" in request.body
          ? await redeemLoginLink(database, request.body.token, browserOf(options, request))
          : await byKey(request.body.key, request);
      const principal = token === null ? null : await findBrowserPrincipal(database, token, signInDays);
      if (token === null || principal === null) {
        failures.fail(request.ip);
        throw new UnauthenticatedError(
          "this link was already used or has expired: ask an admin for a new one, or create one with `offstage login-link`",
        );
      }
      request.principal = principal;
      void reply.setCookie(cookieName, token, browserCookie(options));
      return { organizationId: principal.organizationId };
    },
  );
  async function byKey(key: string, request: FastifyRequest): Promise<string> {
    const principal = await options.findPrincipal(key.trim());
    if (principal === null) failures.fail(request.ip);
    if (principal === null) throw new UnauthenticatedError("the API key is wrong, revoked or expired");
    if (!hasScope(principal, "read")) {
      throw new ForbiddenError("this key may only trigger automations: sign in with one that may read");
    }
    return createBrowserSession(database, principal, browserOf(options, request));
  }
  app.post(
    "/login/delete",
    {
      config: { operation: { scope: null } },
      schema: { tags, operationId: "deleteLogin", summary: "Sign the browser out", response: answers(z.object({})) },
    },
    async (request, reply) => {
      requireSameOrigin(request);
      const token = request.cookies[cookieName];
      if (token !== undefined) await deleteBrowserSession(database, token);
      void reply.clearCookie(cookieName, browserCookie(options));
      return {};
    },
  );
  addSwitch(app, options);
  addSignInList(app, options);
}

/** Adds the operation by which a person who is signed in goes on in another organization of theirs. */
function addSwitch(app: App, options: Pick<ApiOptions, "database" | "signInDays" | "publicUrl">): void {
  const { database } = options;
  app.post(
    "/login/switch",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "switchOrganization",
        summary:
          "Sign this browser in to another organization in which the same person of the identity provider has an account",
        body: z.object({ organizationId: z.uuid() }),
        response: answers(z.object({ organizationId: z.uuid() })),
      },
    },
    async (request, reply) => {
      const left = principalOfRequest(request);
      const cookie = request.cookies[cookieName];
      if (cookie === undefined || !isOfBrowser(request))
        throw new ForbiddenError(
          "a key or a program is of one organization for good: only a signed-in browser can switch",
        );
      const organizationId = request.body.organizationId.toLowerCase();
      const { token, principal } = await switchOrganization(database, cookie, organizationId);
      // The organization that was left has it in its log, too. Where to is not for its admins to know.
      await appendAudit(database, [
        {
          organizationId: left.organizationId,
          actor: "user",
          keyId: null,
          userId: left.userId,
          action: "leaveOrganization",
          target: null,
          status: 200,
          address: request.ip,
          requestId: request.id,
        },
      ]);
      request.principal = principal;
      void reply.setCookie(cookieName, token, browserCookie(options));
      return { organizationId };
    },
  );
}

/**
 * The sign-ins that a caller may see and end: an admin all of them, a user or key its own, a browser that signed in
 * by a link only itself.
 */
function mayManage(request: FastifyRequest): LoginOwner {
  const principal = principalOfRequest(request);
  if (hasScope(principal, "admin")) return { all: true };
  if (principal.userId !== null) return { userId: principal.userId };
  if (principal.keyId !== null) return { keyId: principal.keyId };
  return { token: request.cookies[cookieName] ?? "" };
}

function addSignInList(app: App, { database, signInDays: days }: Pick<ApiOptions, "database" | "signInDays">): void {
  app.get(
    "/login/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listLogins",
        summary: "List browsers that are signed in: your own, as an admin all",
        querystring: pageQuerySchema,
        response: answers(pageSchema("logins", loginSchema)),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const current = request.cookies[cookieName] ?? null;
      const query = { ...request.query, of: mayManage(request), days, current };
      const page = await listLogins(database, organizationId, query);
      return { logins: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/login/:id/revoke",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "revokeLogin",
        summary: "Sign a browser out",
        params: idParameters,
        response: answers(loginSchema),
      },
    },
    (request) => {
      const id = requireUuid("sign-in", request.params.id);
      const organizationId = organizationOf(request);
      const current = request.cookies[cookieName] ?? null;
      return revokeLogin(database, organizationId, id, { of: mayManage(request), days, current });
    },
  );
}
