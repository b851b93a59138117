import { whileChoosing } from "../browse.ts";
import { browseGitLab } from "./browse.ts";
import { cutAtWord } from "../../domain/fields/text.ts";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge, ForgePullRequest, ForgeSettings, RepositoryAccess, RepositoryCall } from "../forge.ts";
import { callForge, onlyALook, type ForgeAnswer } from "../http/http.ts";
import {
  createPullRequestCalls,
  hasNextPage,
  type Branches,
  type OpenRefusal,
  type PullRequestApi,
} from "../pull-requests.ts";
import { refusedBy, wordsOf } from "../http/refusal.ts";
import { pageOn, pathOn, servesAddress } from "../serves.ts";
import type { LogReader } from "../feedback/feedback.ts";
import { readLogEnd } from "../feedback/logs.ts";
import { gitLabApprovals } from "./approvals.ts";
import { gitLabAccess } from "./access.ts";
import { createGitLabFeedback } from "./feedback.ts";
import { forkOnGitLab } from "./fork.ts";
import type { Project, ProtectedBranch } from "./project.ts";
import { withoutQuickActions } from "./quick-actions.ts";

type GitLabSettings = Extract<ForgeSettings, { kind: "gitlab" }>;

/** Fields used of a merge request (https://docs.gitlab.com/api/merge_requests/#retrieve-a-merge-request). */
interface MergeRequest {
  readonly iid: number;
  readonly web_url: string;
  /** `locked` while GitLab merges it. */
  readonly state: "opened" | "closed" | "merged" | "locked";
  readonly source_branch: string;
  readonly target_branch: string;
  /** Null once the fork is deleted. */
  readonly source_project_id: number | null;
  readonly target_project_id: number;
  /** The last commit of the merge request; null until GitLab has read the branch. */
  readonly sha: string | null;
  /** Null if it was merged by a fast-forward: the target is at the squashed commit then, or at the last one, perhaps rebased. */
  readonly merge_commit_sha?: string | null;
  readonly squash_commit_sha?: string | null;
  readonly description: string | null;
  /** Deprecated, and the only field that is about conflicts alone: `detailed_merge_status` names what is wrong first. */
  readonly merge_status?: string;
  readonly detailed_merge_status?: string;
  /** False also while GitLab checks for conflicts. */
  readonly has_conflicts?: boolean;
  readonly draft?: boolean;
}

const names: PullRequestApi["names"] = { path: "/merge_requests", body: "description", edit: "PUT", sha: "id" };
/** Pages of 100 merge requests of one branch and target that are read. */
const pageLimit = 10;
/** Most characters of a title. */
const titleLimit = 255;

/** Adapter for GitLab (https://docs.gitlab.com/api/rest/), gitlab.com and self-managed, also below a path. */
export function createGitLab(settings: GitLabSettings): Forge {
  const { webUrl, apiUrl, token } = settings;
  const { host } = new URL(webUrl);
  // Personal, project, group and OAuth tokens: https://docs.gitlab.com/api/rest/authentication/
  const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };

  const urlOf = (address: RepositoryAddress, path: string): string =>
    `${apiUrl}/projects/${encodeURIComponent(pathOn(webUrl, address))}${path}`;
  const call: RepositoryCall = (address, method, path, signal, options = {}) =>
    callForge(urlOf(address, path), {
      method,
      headers,
      signal,
      ...options,
    });

  const readLog: LogReader = (address, path, bytes, signal) =>
    readLogEnd(urlOf(address, path), { headers, bytes, signal });

  async function readProject(address: RepositoryAddress, signal: AbortSignal): Promise<Project> {
    const answer = await call(address, "GET", "", signal);
    if (answer.status !== 200) throw refusedBy(host, answer);
    return answer.body as Project;
  }

  async function list(
    address: RepositoryAddress,
    { head, target, from }: Branches,
    signal: AbortSignal,
  ): Promise<ForgePullRequest[]> {
    const source = from === undefined ? null : (await readProject(from, signal)).id;
    const listed: MergeRequest[] = [];
    for (let page = 1; page <= pageLimit; page += 1) {
      const query = new URLSearchParams({
        source_branch: head,
        target_branch: target,
        state: "all",
        scope: "all",
        per_page: "100",
        page: String(page),
      });
      const answer = await call(address, "GET", `${names.path}?${query.toString()}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer);
      listed.push(...(answer.body as MergeRequest[]));
      if (hasNextPage(answer, listed.length) !== true) break;
    }
    return listed
      .filter((each) => each.source_project_id === (source ?? each.target_project_id))
      .filter((each) => each.source_branch === head && each.target_branch === target)
      .map((each) => ({ ...toPullRequest(each), mergeable: null }))
      .toSorted((a, b) => b.number - a.number);
  }

  /** Searches for the branch first: GitLab opens a merge request for a branch that it does not know, too. */
  const open: PullRequestApi["open"] = async (callAs, address, { head, target, from, title, body, draft }, signal) => {
    const source = from ?? address;
    const branch = await callAs(source, "GET", `/repository/branches/${encodeURIComponent(head)}`, signal);
    if (branch.status !== 200) return branch;
    const into = from === undefined ? {} : { target_project_id: (await readProject(address, signal)).id };
    return callAs(source, "POST", names.path, signal, {
      body: {
        source_branch: head,
        target_branch: target,
        ...into,
        title: cutAtWord(draft === true ? `Draft: ${title}` : title, titleLimit),
        description: body,
      },
    });
  };

  async function readAccess(
    address: RepositoryAddress,
    branch: string,
    signal: AbortSignal,
    { isNeeded = false }: { readonly isNeeded?: boolean } = {},
  ): Promise<RepositoryAccess> {
    const once = isNeeded ? {} : onlyALook;
    const [project, rules] = await Promise.all([
      call(address, "GET", "", signal, once),
      call(address, "GET", "/protected_branches?per_page=100", signal, once),
    ]);
    if (project.status !== 200) throw refusedBy(host, project);
    // The kindest of all rules counts, so of some nothing follows.
    const isWhole = rules.status === 200 && Array.isArray(rules.body) && hasNextPage(rules, rules.body.length) !== true;
    const known = isWhole ? (rules.body as readonly ProtectedBranch[]) : null;
    return gitLabAccess(project.body as Project, known, { branch, hasToken: token !== undefined });
  }

  return {
    kind: "gitlab",
    id: `gitlab:${host}`,
    name: host === "gitlab.com" ? "GitLab" : host,
    webUrl,
    opensPullRequests: true,
    pullRequestRef: (number) => `refs/merge-requests/${number}/head`,
    filePages: "-/blob",
    commitPage: (address, sha) => `${pageOn(webUrl, address)}/-/commit/${sha}`,
    feedback: createGitLabFeedback({
      host,
      webUrl,
      call,
      readLog,
      users: (name, signal) =>
        callForge(`${apiUrl}/users?${new URLSearchParams({ username: name }).toString()}`, {
          method: "GET",
          headers,
          signal,
        }),
    }),
    browse: browseGitLab(host, {
      ask: (path, signal) => callForge(`${apiUrl}${path}`, { method: "GET", headers, signal, ...whileChoosing }),
      call: (address, method, path, signal) => call(address, method, path, signal, whileChoosing),
    }),
    serves: (address) => servesAddress(webUrl, address),
    credentials: () => Promise.resolve(token === undefined ? null : { username: "oauth2", password: token }),
    ...createPullRequestCalls({
      host,
      call,
      names,
      open,
      list,
      read: (body) => toPullRequest(body as MergeRequest),
      refusalOf: (_call, _address, answer) => Promise.resolve(refusalOf(answer)),
      harmless: withoutQuickActions,
      keepsClosedHead: true,
    }),
    readAccess,
    readApprovalRules: async (address, _target, signal) =>
      gitLabApprovals(await call(address, "GET", "/approvals", signal, onlyALook)),
    fork: (address, signal) => {
      const user = (): Promise<ForgeAnswer> => callForge(`${apiUrl}/user`, { method: "GET", headers, signal });
      return forkOnGitLab({ host, webUrl, call, user }, address, signal);
    },
  };
}

/** Why a merge request was not opened: https://docs.gitlab.com/api/merge_requests/#create-a-merge-request. */
function refusalOf({ status, body }: ForgeAnswer): OpenRefusal {
  const words = wordsOf(body);
  if (status === 409) {
    const number = /!(\d+)/u.exec(words)?.[1];
    return { why: "exists", number: number === undefined ? null : Number(number) };
  }
  if (status === 404) return { why: /branch not found/iu.test(words) ? "unknown" : "refused" };
  if (status !== 400 && status !== 422) return { why: "refused" };
  if (/same project\/branch/iu.test(words)) return { why: "same" };
  return { why: /source.branch\b.*(?:does not|doesn't) exist/iu.test(words) ? "unknown" : "refused" };
}

function toPullRequest(mergeRequest: MergeRequest): ForgePullRequest {
  const {
    iid,
    web_url: url,
    state,
    source_branch: head,
    target_branch: target,
    sha,
    description,
    draft,
  } = mergeRequest;
  return {
    number: iid,
    url,
    state: state === "merged" || state === "closed" ? state : "open",
    head,
    target,
    mergeable: mergeableOf(mergeRequest),
    headSha: sha ?? "",
    mark: readMark(description ?? ""),
    ...(state === "merged" && mergedAs(mergeRequest)),
    ...(draft !== undefined && { draft }),
  };
}

function mergedAs({
  merge_commit_sha: merge,
  squash_commit_sha: squash,
  sha,
}: MergeRequest): Pick<ForgePullRequest, "mergeSha"> {
  const mergeSha = merge ?? squash ?? sha;
  return mergeSha === null ? {} : { mergeSha };
}

/**
 * Whether it goes together with its target: what else a merge waits for (approvals, pipelines, a draft) does not count. GitLab
 * computes it once it is asked for the merge request, and says so meanwhile (`unchecked`, `checking`, `cannot_be_merged_recheck`).
 */
function mergeableOf({
  state,
  merge_status: status,
  detailed_merge_status: detailed,
  has_conflicts: hasConflicts,
}: MergeRequest): boolean | null {
  if (state !== "opened") return null;
  if (hasConflicts === true || detailed === "conflict") return false;
  return status === "can_be_merged" || detailed === "mergeable" ? true : null;
}
