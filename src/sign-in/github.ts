import * as client from "openid-client";
import { z } from "zod";
import { ForbiddenError, UnavailableError } from "../domain/errors/errors.ts";
import type { SignInMethod } from "../domain/people/user.ts";
import { checkedOrUnavailable } from "./oidc.ts";

/** Settings of an OAuth app of GitHub. */
export interface GitHubSignInSettings {
  /** `https://github.com`, or the address of a GitHub Enterprise server. */
  readonly webUrl: string;
  readonly apiUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Whether to ask for the user's organizations. */
  readonly asksOrganizations: boolean;
}

const timeLimitMs = 10_000;
/** The most that GitHub gives on one page, and how many pages are read. */
const pageSize = 100;
const mostPages = 20;
const userSchema = z.object({ id: z.number().int(), login: z.string(), name: z.string().nullish() });
const emailsSchema = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));
const organizationsSchema = z.array(z.object({ login: z.string() }));

/**
 * Makes the sign-in by an OAuth app of GitHub
 * (https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps). Its methods throw
 * UnavailableError if GitHub does not answer, and ForbiddenError if it rejects the sign-in.
 */
export function createGitHubSignIn(settings: GitHubSignInSettings): SignInMethod {
  const { webUrl, apiUrl, clientId, clientSecret } = settings;
  const provider = new client.Configuration(
    {
      issuer: webUrl,
      authorization_endpoint: `${webUrl}/login/oauth/authorize`,
      token_endpoint: `${webUrl}/login/oauth/access_token`,
    },
    clientId,
    clientSecret,
  );
  // The configuration allows http only for addresses of this machine.
  if (webUrl.startsWith("http:")) client.allowInsecureRequests(provider);

  async function read<T>(schema: z.ZodType<T>, path: string, token: string): Promise<T> {
    const response = await fetch(`${apiUrl}${path}`, {
      headers: { Authorization: `Bearer ${token}`, Accept: "application/vnd.github+json", "User-Agent": "offstage" },
      redirect: "error",
      signal: AbortSignal.timeout(timeLimitMs),
    });
    if (response.status >= 500) throw new UnavailableError("GitHub does not answer", 30);
    if (!response.ok) throw new ForbiddenError(`GitHub refused ${path} with ${response.status}`);
    return schema.parse(await response.json());
  }

  /** Reads the pages of a list to its end, or as many as a sign-in has time for. */
  async function readList<T>(schema: z.ZodType<T[]>, path: string, token: string): Promise<T[]> {
    const items: T[] = [];
    for (let page = 1; page <= mostPages; page += 1) {
      const found = await read(schema, `${path}?per_page=${pageSize}&page=${page}`, token);
      items.push(...found);
      if (found.length < pageSize) break;
    }
    return items;
  }

  return {
    id: "github",
    name: "GitHub",
    async begin({ state, verifier, redirectUrl }) {
      const scopes = ["read:user", "user:email", ...(settings.asksOrganizations ? ["read:org"] : [])];
      const url = client.buildAuthorizationUrl(provider, {
        redirect_uri: redirectUrl,
        scope: scopes.join(" "),
        state,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      return url.href;
    },
    async finish({ state, verifier }, callback) {
      try {
        const { access_token: token } = await client.authorizationCodeGrant(provider, callback, {
          expectedState: state,
          pkceCodeVerifier: verifier,
        });
        const user = await read(userSchema, "/user", token);
        const emails = await readList(emailsSchema, "/user/emails", token);
        const organizations = settings.asksOrganizations
          ? await readList(organizationsSchema, "/user/orgs", token)
          : [];
        return {
          issuer: webUrl,
          // GitHub may give a login to another user; ids are never reused.
          subject: String(user.id),
          name: user.name ?? user.login,
          email: emails.find(({ primary, verified }) => primary && verified)?.email ?? null,
          login: user.login,
          organizations: organizations.map(({ login }) => login),
        };
      } catch (cause) {
        if (cause instanceof UnavailableError) throw cause;
        throw checkedOrUnavailable(cause);
      }
    },
  };
}
