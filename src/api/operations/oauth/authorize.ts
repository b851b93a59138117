import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { ForbiddenError, NotFoundError } from "../../../domain/errors/errors.ts";
import type { ConsentProblem } from "../../../domain/people/consent-problem.ts";
import { consentSchema, grantable, requestedScopes, type Consent } from "../../../domain/people/grant.ts";
import { isDocumentAddress, isLoopback, isRegistered, type OAuthClient } from "../../../domain/people/oauth-client.ts";
import {
  allowRequest,
  beginGrantRequest,
  findRequest,
  refuseRequest,
  type OAuthRequest,
} from "../../../store/oauth/requests.ts";
import { isOfBrowser, principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { createFailureLimit } from "../../http/failure-limit.ts";
import { baseUrlOf, resourceOf } from "../../http/hosts.ts";
import { answers, idParameters } from "../../http/shapes.ts";
import { clientOf, UnknownClientError } from "./known-clients.ts";

/** Requests that one address may begin per minute: each is a row until it expires. */
const startsPerMinute = 60;
const tags = ["Sign-in"];
/** Challenge of PKCE by S256: the hash of a verifier (RFC 7636, section 4.2). */
const challengePattern = /^[\w-]{43}$/u;

/**
 * Adds the authorization endpoint (OAuth 2.1), which sends a browser to our page that asks the person, and the
 * operations of that page. The person is the one signed in to the web app there.
 */
export function addAuthorizeOperations(app: App, options: ApiOptions): void {
  const starts = createFailureLimit(startsPerMinute);
  app.get(
    "/oauth/authorize",
    { config: { operation: { scope: null } }, schema: { hide: true } },
    async (request, reply) => {
      starts.check(request.ip);
      starts.fail(request.ip);
      return begin(options, request, reply);
    },
  );
  app.get(
    "/oauth/request/:id",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getOAuthRequest",
        summary: "What a program asks the signed-in person for",
        params: idParameters,
        response: answers(consentSchema),
      },
    },
    async (request) => {
      requireBrowser(request);
      return consentOf(await found(options, request.params.id), request);
    },
  );
  app.post(
    "/oauth/request/:id/decide",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "decideOAuthRequest",
        summary: "Let a program act for the signed-in person, or refuse; the browser goes on at redirectUrl",
        params: idParameters,
        body: z.object({ allow: z.boolean() }),
        response: answers(z.object({ redirectUrl: z.string() })),
      },
    },
    (request) => {
      requireBrowser(request);
      return decide(options, request, request.params.id, request.body.allow);
    },
  );
}

/** A program must not let itself, or another program, act: only a person at our page. */
function requireBrowser(request: FastifyRequest): void {
  if (isOfBrowser(request)) return;
  throw new ForbiddenError("only a person who is signed in to the web app can let a program act for them");
}

async function found({ database }: ApiOptions, token: string): Promise<OAuthRequest> {
  const request = await findRequest(database, token);
  if (request === null)
    throw new NotFoundError(`this request was not found: it was decided, or is older than ten minutes`);
  return request;
}

/** Checks the request, keeps it, and sends the browser to our page; an error is shown if that is safe. */
async function begin(options: ApiOptions, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const given = parametersOf(request);
  const redirectUri = given["redirect_uri"] ?? "";
  let client: OAuthClient;
  try {
    client = await clientOf(options, given["client_id"] ?? "");
  } catch (error) {
    if (!(error instanceof UnknownClientError)) throw error;
    request.log.info({ err: error }, "a program that asks for access can't be used");
    return reply.redirect(problemPage("client"));
  }
  // The browser is not redirected to an address before that is known to be the client's.
  if (!isRegistered(client, redirectUri)) return reply.redirect(problemPage("redirect"));
  const publicUrl = options.publicUrl();
  const issuer = baseUrlOf(request, publicUrl);
  const resource = resourceOf(given["resource"] ?? issuer, publicUrl, options.hosts);
  const problem = problemOf(given, resource !== null);
  const state = given["state"] ?? null;
  if (problem !== null || resource === null)
    return reply.redirect(answerUrl({ redirectUri, state, issuer }, problem ?? {}));
  const token = await beginGrantRequest(options.database, {
    clientId: client.id,
    clientName: client.name,
    redirectUri,
    state,
    scopes: requestedScopes(given["scope"]),
    resource,
    challenge: given["code_challenge"] ?? "",
    issuer,
  });
  return reply.redirect(`/authorize/${token}`);
}

/** The query's parameters that occur once; a parameter must not be repeated (RFC 6749, section 3.1). */
function parametersOf({ query }: FastifyRequest): Readonly<Record<string, string | undefined>> {
  const given = Object.entries((query ?? {}) as Record<string, unknown>);
  return Object.fromEntries(
    given.flatMap(([name, value]) => (typeof value === "string" ? [[name, storable(value)]] : [])),
  );
}

const storable = (value: string): string => value.slice(0, 4_000).replaceAll("\0", "").toWellFormed();

/**
 * The error of a request, in OAuth's words (RFC 6749, section 4.1.2.1, and RFC 8707, section 2); null if nothing is.
 */
function problemOf(
  given: Readonly<Record<string, string | undefined>>,
  hasResource: boolean,
): Record<string, string> | null {
  const invalid = (error: string, description: string) => ({ error, error_description: description });
  if (given["response_type"] !== "code") return invalid("unsupported_response_type", "response_type must be code");
  if (given["code_challenge_method"] !== "S256" || !challengePattern.test(given["code_challenge"] ?? "")) {
    return invalid("invalid_request", "send a code_challenge of PKCE with code_challenge_method=S256");
  }
  return hasResource
    ? null
    : invalid("invalid_target", "resource must be this server's address, or that of its MCP server");
}

/** Codes only: the address is untrusted. */
const problemPage = (problem: ConsentProblem): string => `/authorize?problem=${problem}`;

function consentOf(
  { clientId, clientName, redirectUri, resource, scopes }: OAuthRequest,
  request: FastifyRequest,
): Consent {
  const redirect = new URL(redirectUri);
  return {
    clientName,
    clientHost: isDocumentAddress(clientId) ? new URL(clientId).host : null,
    redirectHost: redirect.host,
    isLocal: isLoopback(redirect),
    resource,
    scopes: grantable(scopes, principalOfRequest(request)),
  };
}

async function decide(
  options: ApiOptions,
  request: FastifyRequest,
  token: string,
  allow: boolean,
): Promise<{ redirectUrl: string }> {
  const { database } = options;
  const asked = await found(options, token);
  const person = principalOfRequest(request);
  const scopes = grantable(asked.scopes, person);
  if (!allow || scopes.length === 0) {
    await refuseRequest(database, token);
    const description = allow ? "you may do nothing of what the program asks for" : "the person refused";
    return { redirectUrl: answerUrl(asked, { error: "access_denied", error_description: description }) };
  }
  const code = await allowRequest(database, token, { person, scopes, address: request.ip });
  if (code === null) throw new NotFoundError("this request was not found: it was decided meanwhile");
  return { redirectUrl: answerUrl(asked, { code }) };
}

/** The address to which the browser is redirected with an answer, which names this server (RFC 9207). */
function answerUrl(
  { redirectUri, state, issuer }: Pick<OAuthRequest, "redirectUri" | "state" | "issuer">,
  answer: Readonly<Record<string, string>>,
): string {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries({ ...answer, ...(state !== null && { state }), iss: issuer })) {
    url.searchParams.set(name, value);
  }
  return url.href;
}
