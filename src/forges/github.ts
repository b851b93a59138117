import { createSign } from "node:crypto";
import type { components } from "@octokit/openapi-types";
import { SessionError } from "../domain/errors/errors.ts";
import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import type { Forge, ForgePullRequest, ForgeSettings } from "./forge.ts";
import { callForge, refusedBy, type ForgeAnswer } from "./http.ts";
import { createPullRequestCalls } from "./pull-requests.ts";
import { servesAddress } from "./serves.ts";

type GitHubSettings = Extract<ForgeSettings, { kind: "github" }>;
type PullRequest = Pick<
  components["schemas"]["pull-request"],
  "number" | "html_url" | "state" | "merged_at" | "head" | "base"
> &
  // Not in lists. Null while GitHub computes it, which a request for the pull request starts
  // (https://docs.github.com/rest/pulls/pulls#get-a-pull-request).
  Partial<Pick<components["schemas"]["pull-request"], "mergeable">>;

/** An installation's token is valid for an hour; it is renewed this long before its end. */
const renewBeforeMs = 10 * 60_000;
const apiVersion = "2022-11-28";

/**
 * Adapter for GitHub and GitHub Enterprise Server (https://docs.github.com/rest/pulls/pulls), with a token or as a
 * GitHub App.
 */
export function createGitHub(settings: GitHubSettings): Forge {
  const host = new URL(settings.webUrl).host;
  const installations = new Map<string, { token: string; renewAt: number }>();

  async function token(address: RepositoryAddress, signal: AbortSignal): Promise<string | null> {
    if (settings.app === undefined) return settings.token ?? null;
    const owner = ownerOf(address);
    const known = installations.get(owner);
    if (known !== undefined && Date.now() < known.renewAt) return known.token;
    const fresh = await installationToken(address, settings.app, signal);
    installations.set(owner, fresh);
    return fresh.token;
  }

  async function installationToken(
    address: RepositoryAddress,
    app: { id: string; privateKey: string },
    signal: AbortSignal,
  ) {
    const headers = {
      Authorization: `Bearer ${appToken(app)}`,
      Accept: "application/vnd.github+json",
      "X-GitHub-Api-Version": apiVersion,
    };
    const installation = await callForge(`${settings.apiUrl}/repos/${address.path}/installation`, {
      method: "GET",
      headers,
      signal,
    });
    if (installation.status !== 200) throw refusedBy(host, installation);
    const { id } = installation.body as { id: number };
    const made = await callForge(`${settings.apiUrl}/app/installations/${id}/access_tokens`, {
      method: "POST",
      headers,
      body: {},
      signal,
    });
    if (made.status !== 201) throw refusedBy(host, made);
    const { token: value, expires_at: expiresAt } = made.body as { token: string; expires_at: string };
    return { token: value, renewAt: Date.parse(expiresAt) - renewBeforeMs };
  }

  async function call(
    address: RepositoryAddress,
    method: "GET" | "POST" | "PATCH",
    path: string,
    signal: AbortSignal,
    body?: unknown,
  ): Promise<ForgeAnswer> {
    const secret = await token(address, signal);
    const answer = await callForge(`${settings.apiUrl}/repos/${address.path}${path}`, {
      method,
      signal,
      headers: {
        Accept: "application/vnd.github+json",
        "X-GitHub-Api-Version": apiVersion,
        ...(secret !== null && { Authorization: `Bearer ${secret}` }),
      },
      ...(body !== undefined && { body }),
    });
    // An App's token has the permissions of its creation: permissions granted later need a new one.
    if ([401, 403, 404].includes(answer.status)) installations.delete(ownerOf(address));
    return answer;
  }

  async function findPullRequest(
    address: RepositoryAddress,
    head: string,
    target: string,
    signal: AbortSignal,
  ): Promise<ForgePullRequest | null> {
    const query = new URLSearchParams({
      head: `${ownerOf(address)}:${head}`,
      base: target,
      state: "all",
      per_page: "100",
    });
    const answer = await call(address, "GET", `/pulls?${query.toString()}`, signal);
    if (answer.status !== 200) throw refusedBy(host, answer);
    const found = (answer.body as PullRequest[]).map(toPullRequest);
    return found.find((pullRequest) => pullRequest.state === "open") ?? found[0] ?? null;
  }

  return {
    kind: "github",
    id: `github:${host}`,
    name: host === "github.com" ? "GitHub" : host,
    webUrl: settings.webUrl,
    opensPullRequests: true,
    serves: (address) => servesAddress(settings.webUrl, address),
    async credentials(address, signal) {
      const password = await token(address, signal);
      return password === null ? null : { username: "x-access-token", password };
    },
    ...createPullRequestCalls({
      host,
      call,
      find: findPullRequest,
      existsStatus: 422,
      read: (body) => toPullRequest(body as PullRequest),
    }),
  };
}

function ownerOf({ path }: RepositoryAddress): string {
  return path.split("/")[0] ?? "";
}

function toPullRequest(pullRequest: PullRequest): ForgePullRequest {
  return {
    number: pullRequest.number,
    url: pullRequest.html_url,
    state: pullRequest.merged_at !== null ? "merged" : pullRequest.state === "open" ? "open" : "closed",
    head: pullRequest.head.ref,
    target: pullRequest.base.ref,
    mergeable: pullRequest.mergeable ?? null,
  };
}

/**
 * JSON Web Token of the App itself (RS256, valid for at most ten minutes):
 * https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app
 */
function appToken({ id, privateKey }: { readonly id: string; readonly privateKey: string }): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = Math.floor(Date.now() / 1_000);
  const unsigned = `${encode({ alg: "RS256", typ: "JWT" })}.${encode({ iat: now - 60, exp: now + 540, iss: id })}`;
  try {
    return `${unsigned}.${createSign("RSA-SHA256").update(unsigned).sign(privateKey, "base64url")}`;
  } catch (cause) {
    throw new SessionError(
      {
        code: "repository_access_denied",
        reason: "The GitHub App's private key can't be used to sign.",
        retryable: false,
        remedy: "Set OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE to the .pem file that GitHub gave for the App.",
      },
      { cause },
    );
  }
}
