import { browseAzure } from "./browse.ts";
import { cutAtWord } from "../../domain/fields/text.ts";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge, ForgePullRequest, RepositoryAccess, RepositoryCall } from "../forge.ts";
import { onlyALook } from "../http/http.ts";
import { createPullRequestCalls, type Branches, type OpenRefusal, type PullRequestApi } from "../pull-requests.ts";
import { refusedBy, wordsOf, type Refusal } from "../http/refusal.ts";
import { servesAddress } from "../serves.ts";
import { azureAccess, evaluationsFor } from "./access.ts";
import { createAzureApi, type AzureApi, type AzureSettings } from "./api.ts";
import { withinLimit } from "./description.ts";
import { createAzureFeedback } from "./feedback.ts";
import { forkOnAzure } from "./fork.ts";
import { readRepository } from "./repository.ts";

/** Fields used of a pull request (https://learn.microsoft.com/rest/api/azure/devops/git/pull-requests/get-pull-request). */
interface PullRequest {
  readonly pullRequestId: number;
  readonly status: "notSet" | "active" | "abandoned" | "completed" | "all";
  /** Full names of refs. */
  readonly sourceRefName: string;
  readonly targetRefName: string;
  /** In lists only its first 400 characters. Omitted if it is empty. */
  readonly description?: string | null;
  /** Computed again after each push; `queued` until then. */
  readonly mergeStatus?: string;
  /** The last commit of the source for which Azure DevOps computed a merge. */
  readonly lastMergeSourceCommit?: { readonly commitId: string } | null;
  readonly isDraft?: boolean | null;
  readonly forkSource?: { readonly repository?: { readonly id: string } } | null;
}

const names: PullRequestApi["names"] = {
  path: "/pullrequests",
  body: "description",
  edit: "PATCH",
  sha: "commitId",
};
const pageSize = 100;
/** Pages of pull requests of one branch and target, and of commits of one of them, that are read. */
const pageLimit = 10;
/** Characters of a description that lists have. */
const listedLength = 400;
/** Pull requests that are not open and are read whole, the newest first. */
const mostWhole = 5;
/** Most characters of a title. */
const titleLimit = 255;
const heads = "refs/heads/";

/** Adapter for Azure DevOps (https://learn.microsoft.com/rest/api/azure/devops/git/), Services and Server. */
export function createAzure(settings: AzureSettings): Forge {
  const { webUrl, token } = settings;
  const api = createAzureApi(settings);
  const call: RepositoryCall = (address, method, path, signal, options = {}) =>
    api.call(api.repositoryUrl(api.repositoryOf(address), path), method, signal, options);
  const read: PullRequestApi["read"] = (body, address) => toPullRequest(api, body as PullRequest, address);

  return {
    kind: "azure",
    id: `azure:${api.host}`,
    name: api.host === "dev.azure.com" ? "Azure DevOps" : api.host,
    webUrl,
    opensPullRequests: true,
    // Its refs/pull/<number>/merge has a merge that it made, and none if that collides.
    pullRequestRef: null,
    filePages: null,
    commitPage: (address, sha) => `${api.pageOf(api.repositoryOf(address))}/commit/${sha}`,
    feedback: createAzureFeedback(api, settings, call),
    browse: browseAzure(api),
    serves: (address) => servesAddress(webUrl, address, true),
    credentials: () => Promise.resolve(token === undefined ? null : { username: "offstage", password: token }),
    ...createPullRequestCalls({
      host: api.host,
      call,
      names,
      read,
      open: (callAs, address, request, signal) => open(callAs, api, address, request, signal),
      list: (address, branches, signal) => list(call, api, address, branches, signal),
      hasCommit: (address, number, sha, signal) => hasCommit(call, address, { number, sha }, signal),
      refusalOf: (_call, _address, answer) => Promise.resolve(refusalOf(answer)),
      keepsClosedHead: true,
      harmless: withinLimit,
    }),
    readAccess: (address, branch, signal, { isNeeded = false } = {}) =>
      readAccess(api, address, { branch, hasToken: token !== undefined, isNeeded }, signal),
    fork: (address, signal) => forkOnAzure(api, webUrl, address, signal),
  };
}

/** The request goes to the repository of the target, and names a fork by its id. */
const open = async (
  call: RepositoryCall,
  api: AzureApi,
  address: RepositoryAddress,
  { head, target, from, title, body, draft }: Parameters<PullRequestApi["open"]>[2],
  signal: AbortSignal,
): ReturnType<PullRequestApi["open"]> => {
  const source = from === undefined ? null : await readRepository(api, from, signal);
  const answer = await call(address, "POST", names.path, signal, {
    body: {
      sourceRefName: `${heads}${head}`,
      targetRefName: `${heads}${target}`,
      title: cutAtWord(title, titleLimit),
      description: withinLimit(body),
      ...(source !== null && { forkSource: { repository: { id: source.id } } }),
      ...(draft === true && { isDraft: true }),
    },
  });
  // Described as 200, and answered with 201.
  return answer.status === 200 ? { ...answer, status: 201 } : answer;
};

async function list(
  call: RepositoryCall,
  api: AzureApi,
  address: RepositoryAddress,
  { head, target, from }: Branches,
  signal: AbortSignal,
): Promise<ForgePullRequest[]> {
  const source = from === undefined ? null : (await readRepository(api, from, signal)).id;
  const listed: PullRequest[] = [];
  for (let page = 0; page < pageLimit; page += 1) {
    const query = new URLSearchParams({
      "searchCriteria.status": "all",
      "searchCriteria.sourceRefName": `${heads}${head}`,
      "searchCriteria.targetRefName": `${heads}${target}`,
      ...(source !== null && { "searchCriteria.sourceRepositoryId": source }),
      $top: String(pageSize),
      $skip: String(page * pageSize),
    });
    const answer = await call(address, "GET", `${names.path}?${query.toString()}`, signal);
    if (answer.status !== 200 || !Array.isArray(answer.body)) throw refusedBy(api.host, answer);
    listed.push(...(answer.body as PullRequest[]));
    if (answer.body.length < pageSize) break;
  }
  const found = listed
    .filter((each) => (each.forkSource?.repository?.id ?? null) === source)
    .filter((each) => each.sourceRefName === `${heads}${head}` && each.targetRefName === `${heads}${target}`)
    .toSorted((a, b) => b.pullRequestId - a.pullRequestId);
  const ended = new Set(found.filter(({ status }) => status !== "active").slice(0, mostWhole));
  return Promise.all(
    found.map(async (each) => {
      const isRead = each.status === "active" || ended.has(each);
      const whole = isRead ? await withWholeDescription(call, address, each, signal) : each;
      return { ...toPullRequest(api, whole, address), mergeable: null };
    }),
  );
}

/** The mark is at the description's end, which a list cuts off. */
async function withWholeDescription(
  call: RepositoryCall,
  address: RepositoryAddress,
  listed: PullRequest,
  signal: AbortSignal,
): Promise<PullRequest> {
  if ((listed.description?.length ?? 0) < listedLength) return listed;
  const answer = await call(address, "GET", `${names.path}/${listed.pullRequestId}`, signal);
  if (answer.status !== 200) return listed;
  return { ...listed, description: (answer.body as PullRequest).description ?? "" };
}

/** Whether a pull request has a commit, as far as Azure DevOps lists them. */
async function hasCommit(
  call: RepositoryCall,
  address: RepositoryAddress,
  { number, sha }: { readonly number: number; readonly sha: string },
  signal: AbortSignal,
): Promise<boolean> {
  let token: string | null = null;
  for (let page = 0; page < pageLimit; page += 1) {
    const more = token === null ? "" : `&continuationToken=${encodeURIComponent(token)}`;
    const answer = await call(address, "GET", `/pullRequests/${number}/commits?$top=${pageSize}${more}`, signal);
    if (answer.status !== 200 || !Array.isArray(answer.body)) return false;
    const commits = answer.body as readonly { readonly commitId?: unknown }[];
    if (commits.some(({ commitId }) => commitId === sha)) return true;
    token = answer.headers.get("x-ms-continuationtoken");
    if (token === null) return false;
  }
  return false;
}

async function readAccess(
  api: AzureApi,
  address: RepositoryAddress,
  { branch, hasToken, isNeeded }: { readonly branch: string; readonly hasToken: boolean; readonly isNeeded: boolean },
  signal: AbortSignal,
): Promise<RepositoryAccess> {
  const once = isNeeded ? { onceWithinMs: undefined } : onlyALook;
  const repository = await readRepository(api, address, signal, once.onceWithinMs);
  const url = api.urlOf(
    api.repositoryOf(address).collection,
    "/_apis/security/permissionevaluationbatch",
    "7.0-preview.1",
  );
  const { status, body } = await api.call(url, "POST", signal, {
    body: { evaluations: evaluationsFor(repository, branch), alwaysAllowAdministrators: false },
    ...once,
  });
  const { evaluations } = (body ?? {}) as { readonly evaluations?: readonly { readonly value?: unknown }[] };
  const values = status === 200 && Array.isArray(evaluations) ? evaluations.map(({ value }) => value) : null;
  return azureAccess(repository, values, hasToken);
}

/** Why a pull request was not opened, by the code in the message or the type of the error. */
function refusalOf({ status, body }: Refusal): OpenRefusal {
  const words = wordsOf(body);
  const { typeKey } = (body ?? {}) as { readonly typeKey?: unknown };
  // Its number is not in the answer: the list shows it.
  if (status === 409 && (words.includes("TF401179") || typeKey === "GitPullRequestExistsException"))
    return { why: "exists", number: null };
  if (words.includes("TF401398") || typeKey === "GitPullRequestCannotBeActivated") return { why: "unknown" };
  return { why: "refused" };
}

function toPullRequest(api: AzureApi, pull: PullRequest, address: RepositoryAddress): ForgePullRequest {
  const { pullRequestId: number, status, sourceRefName, targetRefName, description, isDraft: draft } = pull;
  return {
    number,
    url: `${api.pageOf(api.repositoryOf(address))}/pullrequest/${number}`,
    state: status === "completed" ? "merged" : status === "abandoned" ? "closed" : "open",
    head: branchOf(sourceRefName),
    target: branchOf(targetRefName),
    mergeable: mergeableOf(pull),
    headSha: pull.lastMergeSourceCommit?.commitId ?? "",
    mark: readMark(description ?? ""),
    ...(typeof draft === "boolean" && { draft }),
  };
}

function branchOf(ref: string): string {
  return ref.startsWith(heads) ? ref.slice(heads.length) : ref;
}

/** Policies do not count: what they wait for is no conflict. */
function mergeableOf({ status, mergeStatus }: PullRequest): boolean | null {
  if (status !== "active") return null;
  if (mergeStatus === "conflicts") return false;
  return mergeStatus === "succeeded" || mergeStatus === "rejectedByPolicy" ? true : null;
}
