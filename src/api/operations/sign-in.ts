import { randomBytes } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { ForbiddenError, NotFoundError, OffstageError, UnavailableError } from "../../domain/errors/errors.ts";
import { ownOrganizationsPage, pagePath, type SignInProblem } from "../../domain/people/sign-in.ts";
import { roleFor, scopesOf, signInMethodIds, type SignInMethod } from "../../domain/people/user.ts";
import { createBrowserSession } from "../../store/people/logins.ts";
import { signInPerson } from "../../store/people/own-accounts.ts";
import { beginSignIn, takeSignIn } from "../../store/people/users.ts";
import { cookieName } from "../http/auth.ts";
import { browserCookie, browserOf } from "../http/browser-cookie.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { isSameSecret } from "../http/same-secret.ts";
import { createFailureLimit, type FailureLimit } from "../http/failure-limit.ts";
import { answers } from "../http/shapes.ts";

/** Binds a sign-in to the browser that began it. */
const attemptCookie = "offstage_sign_in";
const attemptSeconds = 600;
/** Sign-ins that one address may begin per minute. */
const startsPerMinute = 60;
const tags = ["Sign-in"];
const methodParameters = z.object({ method: z.enum(signInMethodIds) });

/**
 * Adds the sign-in of users by an identity provider: a redirect to the provider, bound to this browser, and the
 * provider's callback.
 * @param failures limit of failed sign-ins
 */
export function addSignInOperations(app: App, options: ApiOptions, failures: FailureLimit): void {
  const { publicUrl } = options;
  const methodOf = (id: string): SignInMethod => {
    const method = options.signInMethods.find((known) => known.id === id);
    if (method === undefined) throw new NotFoundError(`there is no sign-in by ${id} on this server`);
    return method;
  };
  const starts = createFailureLimit(startsPerMinute);
  const redirectUrl = (method: SignInMethod): string => `${publicUrl()}/login/${method.id}/callback`;
  const cookie = () => ({
    path: "/login",
    httpOnly: true,
    // "lax", because the provider's redirect comes from another site and must include the cookie.
    sameSite: "lax" as const,
    secure: publicUrl().startsWith("https:"),
    maxAge: attemptSeconds,
  });

  app.get(
    "/login/methods",
    {
      config: { operation: { scope: null } },
      schema: {
        tags,
        operationId: "listSignInMethods",
        summary: "List the ways to sign in",
        response: answers(z.object({ methods: z.array(z.object({ id: z.enum(signInMethodIds), name: z.string() })) })),
      },
    },
    () => Promise.resolve({ methods: options.signInMethods.map(({ id, name }) => ({ id, name })) }),
  );
  app.get(
    "/login/:method",
    {
      config: { operation: { scope: null } },
      schema: { hide: true, params: methodParameters, querystring: z.object({ next: z.string().max(300).optional() }) },
    },
    async (request, reply) => {
      const method = methodOf(request.params.method);
      // Each begun sign-in is a row until it is finished or expires.
      starts.check(request.ip);
      starts.fail(request.ip);
      const next = request.query.next !== undefined && pagePath.test(request.query.next) ? request.query.next : "/";
      const [state, nonce, verifier] = [randomText(), randomText(), randomText()];
      let address: string;
      try {
        address = await method.begin({ state, nonce, verifier, redirectUrl: redirectUrl(method) });
      } catch (error) {
        return reply.redirect(problemPage(problemOf(error, request)));
      }
      await beginSignIn(options.database, { method: method.id, state, nonce, verifier, next });
      return reply.setCookie(attemptCookie, state, cookie()).redirect(address);
    },
  );
  app.get(
    "/login/:method/callback",
    {
      config: { operation: { scope: null, changes: true } },
      schema: { hide: true, operationId: "signIn", params: methodParameters },
    },
    async (request, reply) => {
      failures.check(request.ip);
      void reply.clearCookie(attemptCookie, cookie());
      try {
        const next = await finish(options, methodOf(request.params.method), redirectUrl, request, reply);
        return await reply.redirect(next);
      } catch (error) {
        failures.fail(request.ip);
        return reply.redirect(problemPage(problemOf(error, request)));
      }
    },
  );
}

/** The user must not sign in: the page explains the problem. */
class SignInRefused extends OffstageError {
  readonly code = "sign_in_refused";
  readonly problem: SignInProblem;

  constructor(problem: SignInProblem) {
    super(problem);
    this.problem = problem;
  }
}

async function finish(
  options: Pick<ApiOptions, "database" | "publicUrl" | "signInPolicy" | "signInDays">,
  method: SignInMethod,
  redirectUrl: (method: SignInMethod) => string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<string> {
  const { database, publicUrl, signInPolicy } = options;
  const { state } = request.query as { state?: unknown };
  const begun = request.cookies[attemptCookie];
  if (typeof state !== "string" || begun === undefined || !isSameSecret(state, begun))
    throw new SignInRefused("expired");
  const kept = await takeSignIn(database, method.id, state);
  if (kept === null) throw new SignInRefused("expired");
  const { search } = new URL(request.url, publicUrl());
  const attempt = { state, nonce: kept.nonce, verifier: kept.verifier, redirectUrl: redirectUrl(method) };
  const identity = await method.finish(attempt, new URL(`${redirectUrl(method)}${search}`));
  const chosen = await signInPerson(database, identity, roleFor(identity, signInPolicy));
  if (typeof chosen === "string") throw new SignInRefused(chosen);
  const { organizationId, userId, role } = chosen;
  const principal = { organizationId, keyId: null, userId, scopes: scopesOf(role), automationIds: null };
  const browser = { ...browserOf(options, request), issuer: identity.issuer };
  const token = await createBrowserSession(database, principal, browser);
  request.principal = principal;
  void reply.setCookie(cookieName, token, browserCookie(options));
  // Whoever was invited elsewhere is told so, unless they were on their way to something.
  return kept.next === "/" && chosen.isInvitedElsewhere ? ownOrganizationsPage : kept.next;
}

function problemOf(error: unknown, request: FastifyRequest): SignInProblem {
  if (error instanceof SignInRefused) return error.problem;
  request.log.warn({ err: error }, "sign-in failed");
  if (error instanceof UnavailableError) return "unavailable";
  if (error instanceof ForbiddenError) return "denied";
  throw error;
}

/** The page gets only one of our own codes: text from a provider or an attacker is not passed on. */
function problemPage(problem: SignInProblem): string {
  return `/sign-in?problem=${problem}`;
}

function randomText(): string {
  return randomBytes(32).toString("base64url");
}
