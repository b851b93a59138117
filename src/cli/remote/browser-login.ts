import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Configuration, TokenEndpointResponse } from "openid-client";
import { OffstageError } from "../../domain/errors/errors.ts";
import { commandLineClient } from "../../domain/people/oauth-client.ts";
import { scopes } from "../../domain/people/key.ts";
import type { Terminal } from "../terminal/commands.ts";

/** The tokens that a server gave this machine after a person allowed it in their browser. */
export interface LoginTokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** When the access token ends, in ms since 1970. */
  readonly expiresAt: number;
}

/** The sign-in did not come about; the message says why, and what helps. */
export class LoginError extends OffstageError {
  readonly code = "login_failed";
}

/** How long the page in the browser is waited for, in ms: as long as the server keeps the request. */
const patienceMs = 600_000;

/**
 * Signs in by the browser: OAuth 2.1 with PKCE, whose answer comes to a server on this machine's loopback address (RFC 8252, section 7.3).
 * @throws LoginError if the person refuses, or does not answer in time
 */
export async function loginByBrowser(server: string, terminal: Terminal): Promise<LoginTokens> {
  const oauth = await import("openid-client");
  const config = await discover(server);
  const verifier = oauth.randomPKCECodeVerifier();
  const state = oauth.randomState();
  const listener = await listen();
  try {
    const redirectUri = `http://127.0.0.1:${listener.port}/callback`;
    const address = oauth.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: scopes.join(" "),
      resource: server,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    terminal.warn(`Allow this in your browser:\n${address.href}\n`);
    await terminal.openPage(address.href);
    const callback = await listener.answer(terminal.signal);
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    const given = await asking(server, () =>
      oauth.authorizationCodeGrant(config, callback, checks, { resource: server }),
    );
    return tokensOf(given);
  } catch (error) {
    if (terminal.signal.aborted) throw new LoginError("the sign-in was interrupted: nothing was kept");
    if (error instanceof oauth.AuthorizationResponseError) {
      throw new LoginError(`the sign-in was refused: ${error.error_description ?? error.error}`);
    }
    throw error;
  } finally {
    listener.close();
  }
}

/**
 * Exchanges a refresh token for new tokens.
 * @returns null if the server gives none: the person must sign in again
 */
export async function refreshed(server: string, { refreshToken }: LoginTokens): Promise<LoginTokens | null> {
  const oauth = await import("openid-client");
  const config = await discover(server);
  try {
    return tokensOf(await asking(server, () => oauth.refreshTokenGrant(config, refreshToken, { resource: server })));
  } catch (error) {
    if (error instanceof oauth.ResponseBodyError && error.error === "invalid_grant") return null;
    throw error;
  }
}

/** Revokes the tokens. */
export async function giveBack(server: string, { refreshToken }: LoginTokens): Promise<void> {
  const oauth = await import("openid-client");
  const config = await discover(server);
  await asking(server, () => oauth.tokenRevocation(config, refreshToken));
}

async function discover(server: string): Promise<Configuration> {
  const oauth = await import("openid-client");
  const isPlain = server.startsWith("http:");
  return asking(server, () =>
    oauth.discovery(new URL(server), commandLineClient.id, undefined, oauth.None(), {
      algorithm: "oauth2",
      // The named server has no encryption: with a key it would have none either.
      execute: isPlain ? [oauth.allowInsecureRequests] : [],
    }),
  );
}

/** @throws LoginError if what answers does not answer by the protocol: another program, or a proxy whose server is away */
async function asking<Result>(server: string, work: () => Promise<Result>): Promise<Result> {
  const { ClientError } = await import("openid-client");
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    throw new LoginError(`${server} did not answer like an Offstage: check the address, or try again`, {
      cause: error,
    });
  }
}

function tokensOf({
  access_token: accessToken,
  refresh_token: refreshToken,
  expires_in: seconds = 0,
}: TokenEndpointResponse): LoginTokens {
  if (refreshToken === undefined) throw new LoginError("the server gave no refresh token: is it an Offstage?");
  return { accessToken, refreshToken, expiresAt: Date.now() + seconds * 1_000 };
}

/** The last page in the browser; it loads nothing. */
const lastPage = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Offstage</title>
<p>Go back to your terminal. You can close this page.</p></html>`;

/** Waits for the browser's answer on this machine alone. */
async function listen(): Promise<{
  readonly port: number;
  answer(signal: AbortSignal): Promise<URL>;
  close(): void;
}> {
  const arrived = Promise.withResolvers<URL>();
  const server: Server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    const url = new URL(request.url ?? "/", `http://127.0.0.1:${port}`);
    // Browsers ask for an icon, too.
    if (url.pathname !== "/callback") return void response.writeHead(404).end();
    response.writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "default-src 'none'",
      connection: "close",
    });
    response.end(lastPage);
    arrived.resolve(url);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    answer(signal) {
      const late = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
      late.addEventListener("abort", () =>
        arrived.reject(new LoginError("it was not allowed in the browser in time: run `offstage login` again")),
      );
      return arrived.promise;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
