import { whileChoosing } from "../browse.ts";
import { browseGitea } from "./browse.ts";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge, ForgePullRequest, ForgeSettings, RepositoryAccess, RepositoryCall } from "../forge.ts";
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
import { createGiteaFeedback } from "./feedback.ts";

type GiteaSettings = Extract<ForgeSettings, { kind: "gitea" }>;

/** Fields used of Gitea's answer (https://docs.gitea.com/api, repoListPullRequests). */
interface PullRequest {
  readonly number: number;
  readonly html_url: string;
  readonly state: "open" | "closed";
  readonly merged: boolean;
  /** False also while Gitea checks for conflicts, and for a draft. */
  readonly mergeable?: boolean;
  readonly draft?: boolean;
  readonly body: string;
  /** `label` is the branch; `ref` is another ref once the branch is deleted. */
  readonly head: {
    readonly label: string;
    readonly ref: string;
    readonly sha: string;
    readonly repo_id: number;
    readonly repo?: { readonly full_name?: string } | null;
  };
  readonly base: { readonly ref: string; readonly repo_id: number };
}

/** Fields used of a repository (repoGet). */
interface Repository {
  readonly archived?: boolean;
  readonly mirror?: boolean;
  readonly has_pull_requests?: boolean;
  readonly permissions?: { readonly push?: boolean };
  readonly parent?: { readonly full_name?: string } | null;
}

/** Fields used of a branch (repoGetBranch). */
interface Branch {
  readonly protected?: boolean;
  readonly user_can_push?: boolean;
}

/** Asked for; an administrator may allow fewer (MAX_RESPONSE_ITEMS). */
const pageSize = 50;
/** Pages of pull requests that are searched for a branch: the list has no filter for it. */
const pageLimit = 100;

/** Adapter for Gitea and Forgejo. */
export function createGitea(settings: GiteaSettings): Forge {
  const { host } = new URL(settings.webUrl);

  const headers: Record<string, string> =
    settings.token === undefined ? {} : { Authorization: `token ${settings.token}` };

  const call: RepositoryCall = (address, method, path, signal, options = {}) => {
    return callForge(`${settings.apiUrl}/repos/${pathOn(settings.webUrl, address)}${path}`, {
      method,
      headers,
      signal,
      ...options,
    });
  };

  const readLog: LogReader = (address, path, bytes, signal) =>
    readLogEnd(`${settings.apiUrl}/repos/${pathOn(settings.webUrl, address)}${path}`, { headers, bytes, signal });

  /**
   * Asks for the pull request of the branches first. The forge names any of several, so a closed one does not show
   * whether there is a newer one.
   */
  async function list(address: RepositoryAddress, asked: Branches, signal: AbortSignal): Promise<ForgePullRequest[]> {
    const from = asked.from === undefined ? undefined : { ...asked.from, path: pathOn(settings.webUrl, asked.from) };
    const branches = { ...asked, from };
    const qualified = from === undefined ? branches.head : qualifiedHead(from, branches.head);
    const head = qualified.split("/").map(encodeURIComponent).join("/");
    const path = `/pulls/${encodeURIComponent(branches.target)}/${head}`;
    const answer = await call(address, "GET", path, signal);
    if (answer.status === 404 && saysThatThereIsNone(answer)) return [];
    const named = answer.status === 200 && isOf(answer.body, branches) ? toPullRequest(answer.body) : null;
    return named?.state === "open" ? [named] : search(address, branches, named?.number ?? 0, signal);
  }

  /**
   * Reads the list, newest first.
   * @param from number of the oldest pull request of the branches, if it is known; 0 if not
   */
  async function search(
    address: RepositoryAddress,
    branches: Branches,
    from: number,
    signal: AbortSignal,
  ): Promise<ForgePullRequest[]> {
    const found = new Map<number, ForgePullRequest>();
    const seen = new Set<number>();
    for (let page = 1; page <= pageLimit; page += 1) {
      const query = new URLSearchParams({
        state: "all",
        base_branch: branches.target,
        limit: String(pageSize),
        page: String(page),
      });
      const answer = await call(address, "GET", `/pulls?${query.toString()}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer);
      const listed = answer.body as PullRequest[];
      const before = seen.size;
      for (const each of listed) {
        seen.add(each.number);
        if (isOf(each, branches)) found.set(each.number, toPullRequest(each));
      }
      const isOver = seen.size === before || listed.some(({ number }) => number <= from);
      if (isOver || hasNextPage(answer, seen.size) === false) break;
      if ([...found.values()].some(({ state }) => state === "open")) break;
    }
    return [...found.values()].toSorted((a, b) => b.number - a.number);
  }

  /** A missing branch and a missing repository have the same answer. */
  const refusalOf: PullRequestApi["refusalOf"] = async (callAs, address, answer, signal): Promise<OpenRefusal> => {
    const words = wordsOf(answer.body);
    if (answer.status === 409) {
      const number = /issue_id: (\d+)/u.exec(words)?.[1];
      return { why: "exists", number: number === undefined ? null : Number(number) };
    }
    if (answer.status === 422 && /no changes between/iu.test(words)) return { why: "same" };
    if (answer.status !== 404) return { why: "refused" };
    return { why: (await callAs(address, "GET", "", signal)).status === 200 ? "unknown" : "refused" };
  };

  async function readAccess(
    address: RepositoryAddress,
    branch: string,
    signal: AbortSignal,
    { isNeeded = false }: { readonly isNeeded?: boolean } = {},
  ): Promise<RepositoryAccess> {
    const once = isNeeded ? {} : onlyALook;
    const [repository, found] = await Promise.all([
      call(address, "GET", "", signal, once),
      call(address, "GET", `/branches/${branch.split("/").map(encodeURIComponent).join("/")}`, signal, once),
    ]);
    if (repository.status !== 200) throw refusedBy(host, repository);
    const { archived, mirror, has_pull_requests: hasPullRequests, permissions } = repository.body as Repository;
    const { protected: isProtected, user_can_push: userCanPush } = (found.status === 200 ? found.body : {}) as Branch;
    const isShut = isProtected === true && userCanPush === false;
    return {
      readOnly: archived === true ? "archived" : mirror === true ? "a mirror" : null,
      mayPush: isShut ? false : (permissions?.push ?? null),
      hasPullRequests: hasPullRequests ?? null,
      mayChangeWorkflows: null,
      mayFork: settings.token === undefined ? false : null,
      rules: isShut ? ["a protected branch that the token's user may not push to"] : [],
    };
  }

  async function fork(address: RepositoryAddress, signal: AbortSignal): Promise<RepositoryAddress> {
    const answer = await call(address, "POST", "/forks", signal, { body: {} });
    const made = answer.status === 409 ? await ownFork(address, signal) : answer.status === 202 ? answer : null;
    if (made === null) throw notForked(host, address, answer);
    return readyFork({ host, webUrl: settings.webUrl, call }, address, made, signal);
  }

  /** The fork that the token's user has already; null if the repository of that name is none. */
  async function ownFork(address: RepositoryAddress, signal: AbortSignal): Promise<ForgeAnswer | null> {
    const user = await callForge(`${settings.apiUrl}/user`, { method: "GET", headers, signal });
    if (user.status !== 200) throw refusedBy(host, user);
    const { login } = user.body as { login: string };
    const path = `${login}/${address.path.split("/").at(-1) ?? ""}`;
    const found = await call({ ...address, path }, "GET", "", signal);
    const { parent } = (found.body ?? {}) as Partial<Repository>;
    const isFork = parent?.full_name?.toLowerCase() === pathOn(settings.webUrl, address).toLowerCase();
    return found.status === 200 && isFork ? found : null;
  }

  return {
    kind: "gitea",
    id: `gitea:${host}`,
    name: host,
    webUrl: settings.webUrl,
    opensPullRequests: true,
    pullRequestRef: (number) => `refs/pull/${number}/head`,
    filePages: "src/commit",
    commitPage: (address, sha) => `${pageOn(settings.webUrl, address)}/commit/${sha}`,
    feedback: createGiteaFeedback({ host, call, readLog }),
    browse: browseGitea(host, {
      ask: (path, signal) =>
        callForge(`${settings.apiUrl}${path}`, { method: "GET", headers, signal, ...whileChoosing }),
      call: (address, method, path, signal) => call(address, method, path, signal, whileChoosing),
    }),
    serves: (address) => servesAddress(settings.webUrl, address),
    credentials: () =>
      Promise.resolve(settings.token === undefined ? null : { username: "offstage", password: settings.token }),
    ...createPullRequestCalls({
      host,
      call,
      names: gitHubNames,
      // As `WIP:` is, unless the administrator named other beginnings (https://docs.gitea.com/usage/pull-request).
      open: openAsGitHub((title) => ({ title: `WIP: ${title}` })),
      list,
      read: (body) => toPullRequest(body as PullRequest),
      refusalOf,
      // The head of a closed one is where its branch is.
      keepsClosedHead: false,
    }),
    readAccess,
    fork,
  };
}

/** Whether a 404 is about the pull request: a version without the endpoint (before 1.22) answers with a page or other words. */
function saysThatThereIsNone({ body }: ForgeAnswer): boolean {
  const { message, url } = (body ?? {}) as { message?: unknown; url?: unknown };
  return typeof url === "string" && typeof message === "string" && /target couldn't be found/iu.test(message);
}

/** Whether it is a pull request of the branches: a fork's branch may have the same name. */
function isOf(body: unknown, { head, target, from }: Branches): body is PullRequest {
  const candidate = (body ?? {}) as Partial<PullRequest>;
  const isFrom =
    from === undefined
      ? candidate.head?.repo_id === candidate.base?.repo_id
      : candidate.head?.repo?.full_name?.toLowerCase() === from.path.toLowerCase();
  return (
    typeof candidate.number === "number" &&
    candidate.head !== undefined &&
    candidate.base !== undefined &&
    isFrom &&
    branchOf(candidate.head) === head &&
    candidate.base.ref === target
  );
}

function branchOf({ label, ref }: Partial<PullRequest["head"]>): string | undefined {
  return label === undefined || label === "" ? ref : label;
}

function toPullRequest(pullRequest: PullRequest): ForgePullRequest {
  const { number, html_url: url, state, merged, mergeable = null, draft, body, head, base } = pullRequest;
  return {
    number,
    url,
    state: merged ? "merged" : state,
    head: branchOf(head) ?? "",
    target: base.ref,
    mergeable: mergeable === false && draft === true ? null : mergeable,
    headSha: head.sha,
    mark: readMark(body ?? ""),
    ...(draft !== undefined && { draft }),
  };
}
