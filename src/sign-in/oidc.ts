import * as client from "openid-client";
import { ForbiddenError, UnavailableError } from "../domain/errors/errors.ts";
import type { SignInIdentity, SignInMethod } from "../domain/people/user.ts";

/** Settings of an OpenID Connect provider. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly name: string;
  /** Treat an e-mail address as verified if the provider does not say whether it is. */
  readonly trustEmail: boolean;
}

const timeoutSeconds = 10;

/**
 * Makes the sign-in by OpenID Connect's authorization code flow with PKCE
 * (https://openid.net/specs/openid-connect-core-1_0.html). Its methods throw UnavailableError if the provider does
 * not answer, and ForbiddenError if the sign-in is not valid.
 */
export function createOidc(settings: OidcSettings): SignInMethod {
  let discovered: Promise<client.Configuration> | null = null;

  /**
   * Reads the provider's configuration at first use, and again after a failure, so that the server can start while
   * its provider is down.
   */
  async function configuration(): Promise<client.Configuration> {
    discovered ??= client.discovery(new URL(settings.issuer), settings.clientId, settings.clientSecret, undefined, {
      timeout: timeoutSeconds,
      execute: [
        // Without this the library would trust TLS and not verify the identity token's signature.
        client.enableNonRepudiationChecks,
        // The configuration allows http only for addresses of this machine.
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
  ): Promise<SignInIdentity> {
    const claims = tokens.claims();
    if (claims === undefined) throw new ForbiddenError("the provider sent no identity");
    const reason =
      claims["email"] === undefined && provider.serverMetadata().userinfo_endpoint !== undefined
        ? { ...(await client.fetchUserInfo(provider, tokens.access_token, claims.sub)), ...claims }
        : claims;
    const { email, email_verified: verified } = reason;
    const isVerified = verified === true || (settings.trustEmail && verified !== false);
    const name = [reason["name"], reason["preferred_username"], email, claims.sub].find(
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

/**
 * Converts an error of a sign-in: ForbiddenError if the provider rejected it, UnavailableError if the provider could
 * not be reached.
 */
export function checkedOrUnavailable(cause: unknown): Error {
  if (cause instanceof ForbiddenError) return cause;
  const isNetwork = cause instanceof TypeError || (cause instanceof Error && /abort|timeout/iu.test(cause.name));
  return isNetwork ? unavailable(cause) : new ForbiddenError("the sign-in did not check out", { cause });
}

function unavailable(cause: unknown): UnavailableError {
  return new UnavailableError("the sign-in provider does not answer", 30, { cause });
}
