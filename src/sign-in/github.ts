import * as client from "openid-client";
import { z } from "zod";
import { ForbiddenError, UnavailableError } from "../domain/errors.ts";
import type { SignInMethod } from "../domain/user.ts";
import { checkedOrUnavailable } from "./oidc.ts";

export interface GitHubSignInSettings {
  /** `https://github.com`, or an Enterprise server's address. */
  readonly webUrl: string;
  readonly apiUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Whether the organizations of whoever signs in are asked for. */
  readonly asksOrganizations: boolean;
}

const timeLimitMs = 10_000;
const userSchema = z.object({ id: z.number().int(), login: z.string(), name: z.string().nullish() });
const emailsSchema = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));
const organizationsSchema = z.array(z.object({ login: z.string() }));

/** An OAuth app of GitHub's (https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps). */
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
  // The configuration takes such an address on this machine alone.
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
        const emails = await read(emailsSchema, "/user/emails", token);
        const organizations = settings.asksOrganizations
          ? await read(organizationsSchema, "/user/orgs?per_page=100", token)
          : [];
        return {
          issuer: webUrl,
          // Logins can be given to somebody else; ids are not.
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
