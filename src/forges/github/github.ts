import { setTimeout as pause } from "node:timers/promises";
import type { components } from "@octokit/openapi-types";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge, ForgePullRequest, ForgeSettings, RepositoryCall } from "../forge.ts";
import { createInstallations } from "./app.ts";
import { whileChoosing, type Ask } from "../browse.ts";
import { browseGitHub } from "./browse.ts";
import { createGitHubFeedback } from "./feedback.ts";
import { gitHubApprovals } from "./approvals.ts";
import { graphqlUrlOf, type GraphQLApi } from "./graphql.ts";
import { reactToReview } from "./review-reactions.ts";
import { resolveReviewThread } from "./review-threads.ts";
import { gitHubAccess } from "./access.ts";
import { callForge, onlyALook, type ForgeAnswer } from "../http/http.ts";
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
import type { LogReader } from "../feedback/feedback.ts";
import { readLogEnd } from "../feedback/logs.ts";
import { notForked, readyFork } from "../forks.ts";
import { refusedBy, wordsOf } from "../http/refusal.ts";
import { pageOn, pathOn, servesAddress } from "../serves.ts";

type GitHubSettings = Extract<ForgeSettings, { kind: "github" }>;
type PullRequest = Pick<
  components["schemas"]["pull-request"],
  "number" | "html_url" | "state" | "merged_at" | "head" | "base" | "body"
> &
  // Not in lists. Null while GitHub computes it, which a request for the pull request starts
  // (https://docs.github.com/rest/pulls/pulls#get-a-pull-request).
  Partial<Pick<components["schemas"]["pull-request"], "mergeable" | "draft">>;

const apiVersion = "2022-11-28";
/** Pause before a request with a token that was just made is sent again, in ms. */
const freshPauseMs = 1_000;
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
  const installations = settings.app === undefined ? null : createInstallations(settings.app, settings);

  async function token(address: RepositoryAddress, signal: AbortSignal): Promise<string | null> {
    return installations === null ? (settings.token ?? null) : (await installations.tokenFor(address, signal)).token;
  }

  /**
   * Sends a request with a token. GitHub does not know an App's new one everywhere at once: its 401 is waited out for a
   * few seconds. One that it has forgotten is replaced once.
   */
  async function send(
    address: RepositoryAddress,
    signal: AbortSignal,
    ask: (headers: Readonly<Record<string, string>>) => Promise<ForgeAnswer>,
  ): Promise<ForgeAnswer> {
    for (let isAnew = false; ;) {
      const access = (await installations?.tokenFor(address, signal)) ?? null;
      const secret = access?.token ?? settings.token ?? null;
      const answer = await ask(secret === null ? {} : { Authorization: `Bearer ${secret}` });
      // An App's token has the permissions of its creation: permissions granted later need a new one.
      const isRefused = [401, 403, 404].includes(answer.status);
      if (access === null || !isRefused) return answer;
      if (answer.status === 401 && access.isFresh()) {
        await pause(freshPauseMs, undefined, { signal });
        continue;
      }
      installations?.forget(address);
      if (answer.status !== 401 || isAnew) return answer;
      isAnew = true;
    }
  }

  const common = { Accept: "application/vnd.github+json", "X-GitHub-Api-Version": apiVersion };
  const call: RepositoryCall = (address, method, path, signal, options = {}) => {
    const url = `${settings.apiUrl}/repos/${pathOn(settings.webUrl, address)}${path}`;
    return send(address, signal, (headers) =>
      callForge(url, { method, signal, headers: { ...common, ...headers }, ...options }),
    );
  };

  const askGraphQL = (address: RepositoryAddress, body: unknown, signal: AbortSignal): Promise<ForgeAnswer> =>
    send(address, signal, (headers) =>
      callForge(graphqlUrlOf(settings.apiUrl), { method: "POST", headers, body, signal }),
    );

  const graphqlAt = (address: RepositoryAddress): GraphQLApi => ({
    host,
    ask: (query, variables, signal) => askGraphQL(address, { query, variables }, signal),
  });

  /** Asks once, for people who choose. */
  const askOnce = (path: string, secret: string | null, signal: AbortSignal): Promise<ForgeAnswer> => {
    const headers = { ...common, ...(secret !== null && { Authorization: `Bearer ${secret}` }) };
    return callForge(`${settings.apiUrl}${path}`, { method: "GET", headers, signal, ...whileChoosing });
  };

  /** The lists of what the credential sees: a user's, or that of each installation of the App. */
  async function repositoryLists(signal: AbortSignal): Promise<Ask[]> {
    if (installations === null) {
      // Without a token there is no list of a user's repositories, which is no error to show.
      if (settings.token === undefined) return [];
      const own = "/user/repos?affiliation=owner,collaborator,organization_member&sort=pushed&";
      return [(query, asked) => askOnce(own + query, settings.token ?? null, asked)];
    }
    const all = await installations.list(installationsAtMost, signal);
    return all.map((installation) => async (query, asked) => {
      const { token: secret } = await installations.tokenOf(installation, asked);
      return askOnce(`/installation/repositories?${query}`, secret, asked);
    });
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
    filePages: "blob",
    commitPage: (address, sha) => `${pageOn(settings.webUrl, address)}/commit/${sha}`,
    feedback: createGitHubFeedback({
      host,
      call,
      readLog,
      resolveThread: (address, thread, signal) =>
        resolveReviewThread(graphqlAt(address), pathOn(settings.webUrl, address), thread, signal),
      reactToReview: (address, review, reaction, signal) =>
        reactToReview(graphqlAt(address), pathOn(settings.webUrl, address), review, reaction, signal),
    }),
    browse: browseGitHub(host, {
      ask: (path, signal) => askOnce(path, settings.token ?? null, signal),
      call: (address, method, path, signal) => call(address, method, path, signal, whileChoosing),
      lists: repositoryLists,
    }),
    issuedTokens: () => installations?.issued() ?? [],
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
    async readAccess(address, branch, signal, { isNeeded = false } = {}) {
      const once = isNeeded ? {} : onlyALook;
      const [repository, rules] = await Promise.all([
        call(address, "GET", "", signal, once),
        call(address, "GET", `/rules/branches/${encodeURIComponent(branch)}`, signal, once),
      ]);
      if (repository.status !== 200) throw refusedBy(host, repository);
      const granted = (await installations?.tokenFor(address, signal))?.permissions ?? null;
      const access = gitHubAccess(repository, rules, { granted, token: settings.token ?? null });
      // For a fine-grained token GitHub reports its user's rights. These requests lack their fields: 422 means that the
      // token has the right.
      const isUncertain = granted === null && access.mayPush === true && !repository.headers.has("x-oauth-scopes");
      if (!isUncertain) return access;
      const trials = ["/git/refs", "/pulls"].map((path) => call(address, "POST", path, signal, { ...once, body: {} }));
      const [push, open] = await Promise.all(trials);
      return {
        ...access,
        ...(push?.status === 403 && { mayPush: false }),
        ...(open?.status === 403 && { mayOpenPullRequests: false }),
      };
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
    // null if the fork is gone.
    isFromHere: (pullRequest.head.repo as { id: number } | null | undefined)?.id === pullRequest.base.repo.id,
  };
}
