import type { ForgeSettings, GitCredentials } from "../forge.ts";

type Settings = Pick<Extract<ForgeSettings, { kind: "bitbucket" }>, "token" | "username">;

/**
 * The header of requests to the API: access tokens of repositories, projects and workspaces, and OAuth's, are bearers; an API token
 * goes with its account's e-mail address (https://developer.atlassian.com/cloud/bitbucket/rest/intro/#authentication).
 */
export function authorizationOf({ token, username }: Settings): Record<string, string> {
  if (token === undefined) return {};
  const basic = (): string => Buffer.from(`${username}:${token}`).toString("base64");
  return { Authorization: username === undefined ? `Bearer ${token}` : `Basic ${basic()}` };
}

/**
 * The credentials for git. API tokens need a fixed name instead of the e-mail address
 * (https://support.atlassian.com/bitbucket-cloud/docs/using-api-tokens/); a name that is no address is that of an
 * account itself.
 */
export function gitCredentialsOf({ token, username }: Settings): GitCredentials | null {
  if (token === undefined) return null;
  if (username === undefined) return { username: "x-token-auth", password: token };
  return { username: username.includes("@") ? "x-bitbucket-api-token-auth" : username, password: token };
}
