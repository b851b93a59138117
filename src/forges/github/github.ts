import { createSign } from "node:crypto";
import type { components } from "@octokit/openapi-types";
import { SessionError } from "../../domain/errors/errors.ts";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge, ForgePullRequest, ForgeSettings, RepositoryCall } from "../forge.ts";
import { whileChoosing, type Ask } from "../browse.ts";
import { browseGitHub } from "./browse.ts";
import { createGitHubFeedback } from "./feedback.ts";
import { gitHubApprovals } from "./approvals.ts";
import { graphqlUrlOf, resolveReviewThread } from "./review-threads.ts";
import { gitHubAccess, type InstallationPermissions } from "./access.ts";
import { callForge, onlyALook, type ForgeAnswer } from "../http.ts";
import {
  createPullRequestCalls,
  gitHubNames,
  hasNextPage,
  openAsGitHub,
  qualifiedHead,
  type Branches,
  type OpenRefusal,
  type PullRequestApi,
} from "../pull-requests.ts";
import type { LogReader } from "../feedback.ts";
import { readLogEnd } from "../logs.ts";
import { notForked, readyFork } from "../forks.ts";
import { refusedBy, wordsOf } from "../refusal.ts";
import { pathOn, servesAddress } from "../serves.ts";

type GitHubSettings = Extract<ForgeSettings, { kind: "github" }>;
type PullRequest = Pick<
  components["schemas"]["pull-request"],
  "number" | "html_url" | "state" | "merged_at" | "head" | "base" | "body"
> &
  // Not in lists. Null while GitHub computes it, which a request for the pull request starts
  // (https://docs.github.com/rest/pulls/pulls#get-a-pull-request).
  Partial<Pick<components["schemas"]["pull-request"], "mergeable" | "draft">>;

interface Installation {
  readonly token: string;
  readonly renewAt: number;
  readonly permissions: InstallationPermissions;
}

/** An installation's token is valid for an hour; it is renewed this long before its end. */
const renewBeforeMs = 10 * 60_000;
const apiVersion = "2022-11-28";
/** Installations of an App whose repositories are listed. */
const installationsAtMost = 20;
/** Pages of 100 pull requests of one branch and target that are read. */
const pageLimit = 10;

/**
 * Adapter for GitHub and GitHub Enterprise Server (https://docs.github.com/rest/pulls/pulls), with a token or as a
 * GitHub App.
 */
export function createGitHub(settings: GitHubSettings): Forge {
  const host = new URL(settings.webUrl).host;
  const installations = new Map<string, Installation>();
  /** Until when each token of an installation is valid, in ms since 1970. */
  const issued = new Map<string, number>();

  async function token(address: RepositoryAddress, signal: AbortSignal): Promise<string | null> {
    if (settings.app === undefined) return settings.token ?? null;
    return (await installationOf(address, settings.app, signal)).token;
  }

  const installationOf = (
    address: RepositoryAddress,
    app: { id: string; privateKey: string },
    signal: AbortSignal,
  ): Promise<Installation> => keptToken(ownerOf(address), () => makeInstallationToken(address, app, signal));

  const installationToken = (
    owner: string,
    app: { id: string; privateKey: string },
    id: number,
    signal: AbortSignal,
  ): Promise<Installation> => keptToken(owner, () => makeToken(app, id, signal));

  async function keptToken(owner: string, make: () => Promise<Installation>): Promise<Installation> {
    const known = installations.get(owner);
    if (known !== undefined && Date.now() < known.renewAt) return known;
    const fresh = await make();
    installations.set(owner, fresh);
    return fresh;
  }

  async function makeInstallationToken(
    address: RepositoryAddress,
    app: { id: string; privateKey: string },
    signal: AbortSignal,
  ): Promise<Installation> {
    const headers = asking(appToken(app));
    const installation = await callForge(`${settings.apiUrl}/repos/${pathOn(settings.webUrl, address)}/installation`, {
      method: "GET",
      headers,
      signal,
    });
    if (installation.status !== 200) throw refusedBy(host, installation);
    const { id } = installation.body as { id: number };
    return makeToken(app, id, signal);
  }

  async function makeToken(
    app: { id: string; privateKey: string },
    id: number,
    signal: AbortSignal,
  ): Promise<Installation> {
    const made = await callForge(`${settings.apiUrl}/app/installations/${id}/access_tokens`, {
      method: "POST",
      headers: asking(appToken(app)),
      body: {},
      signal,
    });
    if (made.status !== 201) throw refusedBy(host, made);
    const given = made.body as { token: string; expires_at: string; permissions?: InstallationPermissions };
    const endsAt = Date.parse(given.expires_at);
    for (const [known, until] of issued) if (until < Date.now()) issued.delete(known);
    issued.set(given.token, endsAt);
    const renewAt = endsAt - renewBeforeMs;
    return { token: given.token, renewAt, permissions: given.permissions ?? {} };
  }

  const asking = (secret: string | null): Record<string, string> => ({
    Accept: "application/vnd.github+json",
    "X-GitHub-Api-Version": apiVersion,
    ...(secret !== null && { Authorization: `Bearer ${secret}` }),
  });

  /** Asks once, for people who choose. */
  const askOnce = (path: string, secret: string | null, signal: AbortSignal): Promise<ForgeAnswer> =>
    callForge(`${settings.apiUrl}${path}`, { method: "GET", headers: asking(secret), signal, ...whileChoosing });

  /** The lists of what the credential sees: a user's, or that of each installation of the App. */
  async function repositoryLists(signal: AbortSignal): Promise<Ask[]> {
    const { app } = settings;
    if (app === undefined) {
      const own = "/user/repos?affiliation=owner,collaborator,organization_member&sort=pushed&";
      return [(query, asked) => askOnce(own + query, settings.token ?? null, asked)];
    }
    const answer = await askOnce(`/app/installations?per_page=${installationsAtMost}`, appToken(app), signal);
    if (answer.status !== 200) throw refusedBy(host, answer);
    const all = answer.body as { id: number; account: { login: string } | null }[];
    return all.flatMap(({ id, account }) =>
      account === null
        ? []
        : [
            async (query, asked) => {
              const secret = await installationToken(account.login, app, id, asked);
              return askOnce(`/installation/repositories?${query}`, secret.token, asked);
            },
          ],
    );
  }

  const call: RepositoryCall = async (address, method, path, signal, options = {}): Promise<ForgeAnswer> => {
    const secret = await token(address, signal);
    const answer = await callForge(`${settings.apiUrl}/repos/${pathOn(settings.webUrl, address)}${path}`, {
      method,
      signal,
      headers: asking(secret),
      ...options,
    });
    // An App's token has the permissions of its creation: permissions granted later need a new one.
    if ([401, 403, 404].includes(answer.status)) installations.delete(ownerOf(address));
    return answer;
  };

  async function askGraphQL(address: RepositoryAddress, body: unknown, signal: AbortSignal): Promise<ForgeAnswer> {
    const secret = await token(address, signal);
    const headers = secret === null ? {} : { Authorization: `Bearer ${secret}` };
    return callForge(graphqlUrlOf(settings.apiUrl), { method: "POST", headers, body, signal });
  }

  const readLog: LogReader = async (address, path, bytes, signal) => {
    const secret = await token(address, signal);
    const headers = secret === null ? {} : { Authorization: `Bearer ${secret}` };
    const url = `${settings.apiUrl}/repos/${pathOn(settings.webUrl, address)}${path}`;
    return readLogEnd(url, { headers, bytes, signal });
  };

  async function list(
    address: RepositoryAddress,
    branches: Branches,
    signal: AbortSignal,
  ): Promise<ForgePullRequest[]> {
    const { head, target, from = address } = branches;
    const listed: PullRequest[] = [];
    for (let page = 1; page <= pageLimit; page += 1) {
      const query = new URLSearchParams({
        head: qualifiedHead(from, head),
        base: target,
        state: "all",
        per_page: "100",
        page: String(page),
      });
      const answer = await call(address, "GET", `/pulls?${query.toString()}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer);
      listed.push(...(answer.body as PullRequest[]));
      if (hasNextPage(answer, listed.length) !== true) break;
    }
    return listed
      .filter((candidate) => isOf(candidate, branches))
      .map(toPullRequest)
      .toSorted((a, b) => b.number - a.number);
  }

  return {
    kind: "github",
    id: `github:${host}`,
    name: host === "github.com" ? "GitHub" : host,
    webUrl: settings.webUrl,
    opensPullRequests: true,
    pullRequestRef: (number) => `refs/pull/${number}/head`,
    feedback: createGitHubFeedback({
      host,
      call,
      readLog,
      resolveThread: (address, thread, signal) =>
        resolveReviewThread(
          { host, ask: (query, variables, asked) => askGraphQL(address, { query, variables }, asked) },
          pathOn(settings.webUrl, address),
          thread,
          signal,
        ),
    }),
    browse: browseGitHub(host, {
      ask: (path, signal) => askOnce(path, settings.token ?? null, signal),
      call: (address, method, path, signal) => call(address, method, path, signal, whileChoosing),
      lists: repositoryLists,
    }),
    issuedTokens: () => [...issued.keys()],
    serves: (address) => servesAddress(settings.webUrl, address),
    async credentials(address, signal) {
      const password = await token(address, signal);
      return password === null ? null : { username: "x-access-token", password };
    },
    ...createPullRequestCalls({
      host,
      call,
      names: gitHubNames,
      open: openOnGitHub,
      list,
      read: (body) => toPullRequest(body as PullRequest),
      refusalOf: (_call, _address, answer) => Promise.resolve(refusalOf(answer)),
      keepsClosedHead: true,
    }),
    async readAccess(address, branch, signal, isNeeded = false) {
      const once = isNeeded ? {} : onlyALook;
      const [repository, rules] = await Promise.all([
        call(address, "GET", "", signal, once),
        call(address, "GET", `/rules/branches/${encodeURIComponent(branch)}`, signal, once),
      ]);
      if (repository.status !== 200) throw refusedBy(host, repository);
      const { app } = settings;
      const granted = app === undefined ? null : (await installationOf(address, app, signal)).permissions;
      return gitHubAccess(repository, rules, { granted, token: settings.token ?? null });
    },
    async readApprovalRules(address, target, signal) {
      const branch = encodeURIComponent(target);
      const [rules, protection] = await Promise.all([
        call(address, "GET", `/rules/branches/${branch}`, signal, onlyALook),
        call(address, "GET", `/branches/${branch}/protection`, signal, onlyALook),
      ]);
      return gitHubApprovals(rules, protection);
    },
    async fork(address, signal) {
      const answer = await call(address, "POST", "/forks", signal, { body: { default_branch_only: true } });
      if (answer.status !== 202) throw notForked(host, address, answer);
      return readyFork({ host, webUrl: settings.webUrl, call }, address, answer, signal);
    },
  };
}

/** Private repositories have drafts with a paid plan alone: without, a draft is opened as ready for review. */
const openOnGitHub: PullRequestApi["open"] = async (call, address, request, signal) => {
  const answer = await openGitHubPullRequest(call, address, request, signal);
  const isUnknown = answer.status === 422 && /draft pull requests are not supported/iu.test(wordsOf(answer.body));
  if (request.draft !== true || !isUnknown) return answer;
  return openGitHubPullRequest(call, address, { ...request, draft: false }, signal);
};

const openGitHubPullRequest = openAsGitHub(() => ({ draft: true }));

/** Why a pull request was not opened: https://docs.github.com/rest/pulls/pulls#create-a-pull-request. */
function refusalOf({ status, body }: ForgeAnswer): OpenRefusal {
  if (status !== 422) return { why: "refused" };
  const words = wordsOf(body);
  if (/already exists/iu.test(words)) return { why: "exists", number: null };
  if (/\bhead: invalid\b|head (?:sha|ref)\b|not all refs are readable/iu.test(words)) return { why: "unknown" };
  if (/no commits between|\bbase: invalid\b|base (?:sha|ref)\b/iu.test(words)) return { why: "same" };
  return { why: "refused" };
}

/** The list's filter by `head` is ignored if it is malformed, and a fork of the same owner may have the branch too. */
function isOf({ head, base }: PullRequest, { from, ...wanted }: Branches): boolean {
  const repo = head.repo as { id: number; full_name?: string } | null | undefined;
  const isFrom =
    from === undefined ? repo?.id === base.repo?.id : repo?.full_name?.toLowerCase() === from.path.toLowerCase();
  return isFrom && head.ref === wanted.head && base.ref === wanted.target;
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
    headSha: pullRequest.head.sha,
    mark: readMark(pullRequest.body ?? ""),
    ...(pullRequest.draft !== undefined && { draft: pullRequest.draft }),
  };
}

/**
 * JSON Web Token of the App itself (RS256, valid for at most ten minutes):
 * https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app
 */
export function appToken({ id, privateKey }: { readonly id: string; readonly privateKey: string }): string {
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
