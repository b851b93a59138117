import { z } from "zod";
import { ForbiddenError, UnauthenticatedError } from "../domain/errors.ts";
import { hasScope } from "../domain/key.ts";
import { createBrowserSession, deleteBrowserSession, findBrowserPrincipal, redeemLoginLink } from "../store/logins.ts";
import { findPrincipal } from "../store/keys.ts";
import { cookieName, requireSameOrigin } from "./auth.ts";
import type { ApiOptions, App } from "./context.ts";
import type { FailureLimit } from "./failure-limit.ts";
import { answers } from "./shapes.ts";

const cookieDays = 30;
const tags = ["Sign-in"];

/** What a signed-in browser's cookie is set with: no script reads it, and no other site's page has it sent. */
export function browserCookie(publicUrl: string) {
  return {
    path: "/",
    httpOnly: true,
    sameSite: "strict",
    secure: publicUrl.startsWith("https:"),
    maxAge: cookieDays * 24 * 60 * 60,
  } as const;
}

/** Signs a browser in: a one-time link's token, or a pasted key, for a cookie that scripts can't read. */
export function addLoginOperations(app: App, { database, publicUrl }: ApiOptions, failures: FailureLimit): void {
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
      // Else another site's page could sign a browser in as somebody else, who then reads what is written there.
      requireSameOrigin(request);
      const token =
        "token" in request.body
          ? await redeemLoginLink(database, request.body.token)
          : await byKey(request.body.key, request.ip);
      const principal = token === null ? null : await findBrowserPrincipal(database, token);
      if (token === null || principal === null) {
        failures.fail(request.ip);
        throw new UnauthenticatedError(
          "this link was already used or has expired: create a new one with `offstage login-link`",
        );
      }
      request.principal = principal;
      void reply.setCookie(cookieName, token, browserCookie(publicUrl()));
      return { organizationId: principal.organizationId };
    },
  );
  async function byKey(key: string, address: string): Promise<string> {
    const principal = await findPrincipal(database, key.trim());
    if (principal === null) failures.fail(address);
    if (principal === null) throw new UnauthenticatedError("the API key is wrong, revoked or expired");
    if (!hasScope(principal, "read")) {
      throw new ForbiddenError("this key is for triggering automations alone: sign in with one that may read");
    }
    return createBrowserSession(database, principal);
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
      void reply.clearCookie(cookieName, browserCookie(publicUrl()));
      return {};
    },
  );
}
