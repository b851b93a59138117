import * as client from "openid-client";
import { ForbiddenError, UnavailableError } from "../domain/errors.ts";
import type { Identity, SignInMethod } from "../domain/user.ts";

export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly name: string;
  /** Takes an e-mail address as verified of which the provider says nothing. */
  readonly trustEmail: boolean;
}

const timeoutSeconds = 10;

/** OpenID Connect's authorization code flow with PKCE (https://openid.net/specs/openid-connect-core-1_0.html). */
export function createOidc(settings: OidcSettings): SignInMethod {
  let discovered: Promise<client.Configuration> | null = null;

  /** Asked when it is first needed, and again after a failure: a server starts while its provider is down. */
  async function configuration(): Promise<client.Configuration> {
    discovered ??= client.discovery(new URL(settings.issuer), settings.clientId, settings.clientSecret, undefined, {
      timeout: timeoutSeconds,
      execute: [
        // Without it who answered over TLS is believed, and the identity's signature is not looked at.
        client.enableNonRepudiationChecks,
        // The configuration takes such an address on this machine alone.
        ...(settings.issuer.startsWith("http:") ? [client.allowInsecureRequests] : []),
      ],
    });
    try {
      return await discovered;
    } catch (cause) {
      discovered = null;
      throw unavailable(cause);
    }
  }

  async function identityOf(
    provider: client.Configuration,
    tokens: client.TokenEndpointResponse & client.TokenEndpointResponseHelpers,
  ): Promise<Identity> {
    const claims = tokens.claims();
    if (claims === undefined) throw new ForbiddenError("the provider sent no identity");
    const told =
      claims["email"] === undefined && provider.serverMetadata().userinfo_endpoint !== undefined
        ? { ...(await client.fetchUserInfo(provider, tokens.access_token, claims.sub)), ...claims }
        : claims;
    const { email, email_verified: verified } = told;
    const isVerified = verified === true || (settings.trustEmail && verified !== false);
    const name = [told["name"], told["preferred_username"], email, claims.sub].find(
      (value) => typeof value === "string",
    );
    return {
      issuer: claims.iss,
      subject: claims.sub,
      name: name ?? claims.sub,
      email: typeof email === "string" && isVerified ? email : null,
      login: null,
      organizations: [],
    };
  }

  return {
    id: "oidc",
    name: settings.name,
    async begin({ state, nonce, verifier, redirectUrl }) {
      const url = client.buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUrl,
        scope: "openid email profile",
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      return url.href;
    },
    async finish({ state, nonce, verifier }, callback) {
      const provider = await configuration();
      try {
        const tokens = await client.authorizationCodeGrant(provider, callback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        return await identityOf(provider, tokens);
      } catch (cause) {
        throw checkedOrUnavailable(cause);
      }
    },
  };
}

/** A provider that can't be reached is not one that said no. */
export function checkedOrUnavailable(cause: unknown): Error {
  if (cause instanceof ForbiddenError) return cause;
  const isNetwork = cause instanceof TypeError || (cause instanceof Error && /abort|timeout/iu.test(cause.name));
  return isNetwork ? unavailable(cause) : new ForbiddenError("the sign-in did not check out", { cause });
}

function unavailable(cause: unknown): UnavailableError {
  return new UnavailableError("the sign-in provider does not answer", 30, { cause });
}
