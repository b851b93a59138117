import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import type { Forge, ForgePullRequest, ForgeSettings } from "./forge.ts";
import { callForge, refusedBy, type ForgeAnswer } from "./http.ts";
import { createPullRequestCalls } from "./pull-requests.ts";
import { servesAddress } from "./serves.ts";

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
  readonly head: { readonly ref: string; readonly repo_id: number };
  readonly base: { readonly ref: string; readonly repo_id: number };
}

const pageSize = 50;
/** Pages of pull requests that are searched for a branch: the list has no filter for it. */
const pageLimit = 20;

/** Adapter for Gitea and Forgejo. */
export function createGitea(settings: GiteaSettings): Forge {
  const { host } = new URL(settings.webUrl);

  function call(
    address: RepositoryAddress,
    method: "GET" | "POST" | "PATCH",
    path: string,
    signal: AbortSignal,
    body?: unknown,
  ): Promise<ForgeAnswer> {
    const headers: Record<string, string> =
      settings.token === undefined ? {} : { Authorization: `token ${settings.token}` };
    const request = { method, headers, signal, ...(body !== undefined && { body }) };
    return callForge(`${settings.apiUrl}/repos/${address.path}${path}`, request);
  }

  async function findPullRequest(
    address: RepositoryAddress,
    head: string,
    target: string,
    signal: AbortSignal,
  ): Promise<ForgePullRequest | null> {
    let closed: ForgePullRequest | null = null;
    for (let page = 1; page <= pageLimit; page += 1) {
      const answer = await call(address, "GET", `/pulls?state=all&sort=newest&limit=${pageSize}&page=${page}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer);
      const listed = answer.body as PullRequest[];
      const found = listed
        // A fork's branch may have the same name.
        .filter((candidate) => candidate.head.repo_id === candidate.base.repo_id)
        .map(toPullRequest)
        .filter((candidate) => candidate.head === head && candidate.target === target);
      const open = found.find((candidate) => candidate.state === "open");
      if (open !== undefined) return open;
      closed ??= found[0] ?? null;
      if (listed.length < pageSize) break;
    }
    return closed;
  }

  return {
    kind: "gitea",
    id: `gitea:${host}`,
    name: host,
    webUrl: settings.webUrl,
    opensPullRequests: true,
    serves: (address) => servesAddress(settings.webUrl, address),
    credentials: () =>
      Promise.resolve(settings.token === undefined ? null : { username: "offstage", password: settings.token }),
    ...createPullRequestCalls({
      host,
      call,
      find: findPullRequest,
      existsStatus: 409,
      read: (body) => toPullRequest(body as PullRequest),
    }),
  };
}

function toPullRequest(pullRequest: PullRequest): ForgePullRequest {
  const { number, html_url: url, state, merged, mergeable = null, draft = false, head, base } = pullRequest;
  return {
    number,
    url,
    state: merged ? "merged" : state,
    head: head.ref,
    target: base.ref,
    mergeable: mergeable === false && draft ? null : mergeable,
  };
}
