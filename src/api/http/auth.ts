import type { FastifyRequest } from "fastify";
import { ForbiddenError, InvalidInputError, UnauthenticatedError } from "../../domain/errors/errors.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { hasScope, type Principal } from "../../domain/people/key.ts";
import { defaultOrganization } from "../../domain/people/organization.ts";
import { accessPrefix, findGrantPrincipal } from "../../store/oauth/grants.ts";
import { ownerOfKey } from "../../store/people/keys.ts";
import { findBrowserPrincipal } from "../../store/people/logins.ts";
import { findOrganization } from "../../store/people/organizations.ts";
import { findShareReader, sharePrefix } from "../../store/people/share-links.ts";
import type { Database } from "../../database/database.ts";
import type { ApiOptions, OperationConfig } from "./context.ts";

/** The cookie of a signed-in browser. */
export const cookieName = "offstage_session";

const noKey = "send an API key as `Authorization: Bearer <key>` or `?apiKey=<key>`";

/**
 * Finds the principal of a request, before its body is read; null if the operation needs no key.
 * @throws UnauthenticatedError if the key or cookie is wrong, revoked or expired, or missing
 * @throws InvalidInputError if the key is missing and the specification demands 400
 * @throws ForbiddenError if the principal lacks the operation's scope, or has a link to a session and asks for something else
 */
export async function authenticate(
  options: Pick<ApiOptions, "database" | "signInDays" | "findPrincipal">,
  request: FastifyRequest,
  operation: OperationConfig,
): Promise<Principal | null> {
  if (operation.scope === null) return null;
  const principal = (await readerByLink(options.database, request, operation)) ?? (await identify(options, request));
  if (principal === null) {
    if (operation.missingKey === 400) throw new InvalidInputError(`the organization cannot be determined: ${noKey}`);
    throw new UnauthenticatedError(`no API key: ${noKey}`);
  }
  if (!hasScope(principal, operation.scope)) {
    throw new ForbiddenError(
      principal.userId === null
        ? `this key lacks the scope ${operation.scope}: use one that has it`
        : `your role lacks the scope ${operation.scope}: ask an admin of this server`,
    );
  }
  return principal;
}

/**
 * The reader of a session by a link; null: the request has none. It is valid only for operations that show that
 * session.
 */
async function readerByLink(
  database: Database,
  request: FastifyRequest,
  { isShared = false }: OperationConfig,
): Promise<Principal | null> {
  const token = presentedKey(request);
  if (token?.startsWith(sharePrefix) !== true) return null;
  const { id } = request.params as { readonly id?: string };
  if (!isShared || id === undefined)
    throw new ForbiddenError("this link shows one session, and lets nobody do anything");
  const reader = isUuid(id) ? await findShareReader(database, token, id) : null;
  if (reader === null)
    throw new UnauthenticatedError(
      "the link does not show this session: it is wrong, revoked or expired. Ask for another one",
    );
  return reader;
}

/**
 * The principal of a request: the owner of its key, of a program's access token, or of a browser's cookie; null if it
 * has none of these.
 * @throws UnauthenticatedError if its credential is invalid
 */
export async function identify(
  { database, signInDays, findPrincipal }: Pick<ApiOptions, "database" | "signInDays" | "findPrincipal">,
  request: FastifyRequest,
): Promise<Principal | null> {
  const key = presentedKey(request);
  if (key?.startsWith(accessPrefix) === true) {
    const principal = await findGrantPrincipal(database, key, request.resource);
    if (principal === null)
      throw new UnauthenticatedError("the access token is wrong, revoked, expired or for another resource");
    return principal;
  }
  if (key !== null) {
    const principal = await findPrincipal(key);
    if (principal === null) throw new UnauthenticatedError("the API key is wrong, revoked or expired");
    return principal;
  }
  const cookie = request.cookies[cookieName];
  if (cookie === undefined) return null;
  requireSameOrigin(request);
  const principal = await findBrowserPrincipal(database, cookie, signInDays);
  if (principal === null) throw new UnauthenticatedError("the sign-in has expired: sign in again");
  return principal;
}

/** Whether a signed-in browser asks: the request has a cookie, and no key beside it, in the header or the query, which would count instead. */
export function isOfBrowser(request: FastifyRequest): boolean {
  return request.cookies[cookieName] !== undefined && presentedKey(request) === null;
}

/** The key in the header or the query; null if there is none. */
function presentedKey(request: FastifyRequest): string | null {
  const header = request.headers.authorization;
  if (header !== undefined) {
    const bearer = /^Bearer +(\S+) *$/iu.exec(header);
    if (bearer?.[1] === undefined) throw new UnauthenticatedError("the Authorization header must be `Bearer <key>`");
    return bearer[1];
  }
  const query = (request.query as Record<string, unknown>)["apiKey"];
  return typeof query === "string" && query !== "" ? query : null;
}

/**
 * Protects against cross-site request forgery: browsers send the cookie also with requests that another site's page
 * makes. A request that changes something must come from our own pages.
 * @throws ForbiddenError
 */
export function requireSameOrigin(request: FastifyRequest): void {
  if (request.method === "GET" || request.method === "HEAD") return;
  const { origin, host } = request.headers;
  if (origin !== undefined && URL.parse(origin)?.host !== host) {
    throw new ForbiddenError("this request came from another site");
  }
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin") throw new ForbiddenError("this request came from another site");
}

/**
 * The principal of a request whose operation needs one.
 * @throws UnauthenticatedError if it has none
 */
export function principalOfRequest(request: FastifyRequest): Principal {
  if (request.principal === null) throw new UnauthenticatedError(`no API key: ${noKey}`);
  return request.principal;
}

/** Id of the requesting person: signed in, or by their own key; null: no user. */
export async function personOf(database: Database, { userId, keyId }: Principal): Promise<string | null> {
  return userId ?? (keyId === null ? null : await ownerOfKey(database, keyId));
}

/**
 * The requesting person: signed in, or by their own key.
 * @param what belongs to a person, for the message
 * @throws ForbiddenError if the caller is no user
 */
export async function requirePerson(
  database: Database,
  request: FastifyRequest,
  what = "this",
): Promise<{ readonly organizationId: string; readonly userId: string }> {
  const principal = principalOfRequest(request);
  const userId = await personOf(database, principal);
  if (userId !== null) return { organizationId: principal.organizationId, userId };
  throw new ForbiddenError(
    `${what} belongs to a person, and this key or sign-in has no person: sign in with your identity provider, or use a key that you made while signed in`,
  );
}

/** Whether a caller looks after the whole server: whoever may do all in the organization `default`, and nobody of another one. */
export async function isServerAdmin(database: Database, principal: Principal): Promise<boolean> {
  if (!hasScope(principal, "admin")) return false;
  return principal.organizationId === (await findOrganization(database, defaultOrganization));
}

/**
 * Admits only admins of the organization `default`, whose server this is: the server's own data shows all
 * organizations.
 * @throws ForbiddenError
 */
export async function requireServerAdmin(database: Database, request: FastifyRequest): Promise<void> {
  if (await isServerAdmin(database, principalOfRequest(request))) return;
  throw new ForbiddenError(
    `this concerns the whole server: only admins of the organization ${defaultOrganization} may see and change it`,
  );
}

/** The organization on whose behalf the caller asks. @throws UnauthenticatedError without a key */
export function organizationOf(request: FastifyRequest): string {
  return principalOfRequest(request).organizationId;
}

const secretParameters: ReadonlySet<string> = new Set(["apikey", "access_token", "code", "code_challenge", "state"]);

/**
 * A URL that is safe to log: without the values of keys and of a provider's sign-in response, even if the parameters'
 * names are percent-encoded.
 */
export function withoutKey(url: string): string {
  // The router takes a path whose letters are written as %68, and what follows a # for the query.
  const [, path = "", query = ""] = /^([^?#]*)(.*)$/su.exec(url) ?? [];
  const plain = path.includes("%") ? decoded(path) : path;
  // Anyone who knows the address of an unsigned webhook may post to it.
  return (
    `${/^\/(?:hook|oauth|authorize)\//u.test(plain) ? plain : path}${query}`
      .replace(/^(\/hook\/)(?!forge\/)[^/?#]+/u, "$1[redacted]")
      // So may who knows a request of a program, and is signed in, decide it.
      .replace(/^(\/(?:oauth\/request|authorize)\/)[^/?#]+/u, "$1[redacted]")
      .replace(/([?&#])([^=&#]*)=[^&#]*/gu, (whole, mark: string, name: string) =>
        secretParameters.has(decoded(name).toLowerCase()) ? `${mark}${name}=[redacted]` : whole,
      )
  );
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
