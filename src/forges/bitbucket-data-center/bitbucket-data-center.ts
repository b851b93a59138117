import { whileChoosing } from "../browse.ts";
import { browseBitbucketDataCenter } from "./browse.ts";
import { cutAtWord } from "../../domain/fields/text.ts";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge, ForgePullRequest, ForgeSettings, RepositoryAccess, RepositoryCall } from "../forge.ts";
import { callForge, onlyALook, type ForgeRequest } from "../http/http.ts";
import { createPullRequestCalls, type Branches, type OpenRefusal, type PullRequestApi } from "../pull-requests.ts";
import { withCommentMarks, withReferenceMarks } from "../feedback/reference-marks.ts";
import { refusedBy } from "../http/refusal.ts";
import { servesAddress } from "../serves.ts";
import { createDataCenterFeedback } from "./feedback.ts";
import { forkOnDataCenter } from "./fork.ts";
import { readPages } from "./pages.ts";
import { isSamePlace, pagesOf, apiPathOf, repositoryPlaceOf } from "./place.ts";
import { errorsIn, type Mergeability, type PullRequest, type Repository } from "./shapes.ts";

type DataCenterSettings = Extract<ForgeSettings, { kind: "bitbucketDataCenter" }>;

const names: PullRequestApi["names"] = { path: "/pull-requests", body: "description", edit: "PUT", sha: "id" };
/** Pages of 100 pull requests of one branch, and of commits, that are read. */
const pageLimit = 10;
/** Most characters of a title, and of a description. */
const [titleLimit, textLimit] = [255, 32_768];
/** How often a change is sent again because the pull request was changed meanwhile. */
const editAttempts = 4;

/** Adapter for Bitbucket Data Center, and Server (https://developer.atlassian.com/server/bitbucket/rest/), also below a path. */
export function createBitbucketDataCenter(settings: DataCenterSettings): Forge {
  const { webUrl, apiUrl, token, username } = settings;
  const { host } = new URL(webUrl);
  const headers: Record<string, string> = {
    // Else a request that a browser could send may be refused (https://confluence.atlassian.com/kb/rest-api-calls-with-a-browser-user-agent-header-may-fail-csrf-checks-802591455.html).
    "X-Atlassian-Token": "no-check",
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
  };
  const send = (
    url: string,
    method: ForgeRequest["method"],
    signal: AbortSignal,
    options: Pick<ForgeRequest, "body" | "onceWithinMs" | "takesPage"> = {},
  ) => callForge(url, { method, headers, signal, ...options });
  const callAt =
    (root: string): RepositoryCall =>
    (address, method, path, signal, options) =>
      send(`${root}${apiPathOf(repositoryPlaceOf(webUrl, address))}${path}`, method, signal, options);
  const call = callAt(apiUrl);
  const reactions = callAt(apiUrl.replace(/\/api\/([^/]+)$/u, "/comment-likes/$1"));
  const toPullRequest = (body: unknown): ForgePullRequest => pullRequestOf(webUrl, body as PullRequest);

  /** The pull requests from a branch, of which there are few; those into the target are all. */
  async function list(
    address: RepositoryAddress,
    { head, target, from }: Branches,
    signal: AbortSignal,
  ): Promise<ForgePullRequest[]> {
    const into = repositoryPlaceOf(webUrl, address);
    const source = repositoryPlaceOf(webUrl, from ?? address);
    const query = { direction: "OUTGOING", at: `refs/heads/${head}`, state: "ALL", order: "NEWEST" };
    const found: PullRequest[] = [];
    const ask = (paging: Readonly<Record<string, string>>) => {
      const search = new URLSearchParams({ ...query, ...paging }).toString();
      return call(from ?? address, "GET", `${names.path}?${search}`, signal);
    };
    for await (const page of readPages(ask, pageLimit)) {
      if ("refused" in page) throw refusedBy(host, page.refused);
      found.push(...(page.items as readonly PullRequest[]));
    }
    return found
      .filter(({ fromRef, toRef }) => fromRef.id === `refs/heads/${head}` && toRef.id === `refs/heads/${target}`)
      .filter(({ fromRef, toRef }) => isAt(toRef.repository, into) && isAt(fromRef.repository, source))
      .map(toPullRequest)
      .toSorted((a, b) => b.number - a.number);
  }

  const open: PullRequestApi["open"] = (callAs, address, { head, target, from, title, body, draft }, signal) => {
    const ref = (branch: string, of: RepositoryAddress) => {
      const { project, slug } = repositoryPlaceOf(webUrl, of);
      return { id: `refs/heads/${branch}`, repository: { slug, project: { key: project } } };
    };
    return callAs(address, "POST", names.path, signal, {
      body: {
        title: cutAtWord(title, titleLimit),
        description: cutText(withReferenceMarks(body)),
        fromRef: ref(head, from ?? address),
        toRef: ref(target, address),
        ...(draft === true && { draft }),
      },
    });
  };

  async function hasCommit(
    address: RepositoryAddress,
    number: number,
    sha: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const ask = (paging: Readonly<Record<string, string>>) =>
      call(address, "GET", `${names.path}/${number}/commits?${new URLSearchParams(paging).toString()}`, signal);
    for await (const page of readPages(ask, pageLimit)) {
      if ("refused" in page) return false;
      if ((page.items as readonly { readonly id?: string }[]).some(({ id }) => id === sha)) return true;
    }
    return false;
  }

  async function readMergeable(
    address: RepositoryAddress,
    number: number,
    signal: AbortSignal,
  ): Promise<boolean | null> {
    const answer = await call(address, "GET", `${names.path}/${number}/merge`, signal);
    if (answer.status !== 200) return null;
    const { conflicted, outcome } = (answer.body ?? {}) as Mergeability;
    if (outcome === undefined) return conflicted === undefined ? null : !conflicted;
    return outcome === "UNKNOWN" ? null : outcome === "CLEAN";
  }

  async function readAccess(
    address: RepositoryAddress,
    _: string,
    signal: AbortSignal,
    { isNeeded = false }: { readonly isNeeded?: boolean } = {},
  ): Promise<RepositoryAccess> {
    const once = isNeeded ? {} : onlyALook;
    const answer = await call(address, "GET", "", signal, once);
    if (answer.status !== 200) throw refusedBy(host, answer);
    const { archived, forkable, state, name } = answer.body as Repository;
    const place = repositoryPlaceOf(webUrl, address);
    const wanted = { permission: "REPO_WRITE", projectkey: place.project, limit: "100", ...(name && { name }) };
    const writable = await send(`${apiUrl}/repos?${new URLSearchParams(wanted).toString()}`, "GET", signal, once);
    const { values, isLastPage } = (writable.body ?? {}) as { values?: readonly Repository[]; isLastPage?: boolean };
    const isTold = writable.status === 200 && Array.isArray(values);
    const isWritable = isTold && values.some((each) => isAt(each, place));
    return {
      readOnly: archived === true ? "archived" : state === undefined || state === "AVAILABLE" ? null : "not available",
      mayPush: isWritable ? true : token === undefined || (isTold && isLastPage === true) ? false : null,
      hasPullRequests: true,
      mayChangeWorkflows: null,
      mayFork: token === undefined || forkable === false ? false : null,
      // Only administrators of the repository can read its branch permissions.
      rules: [],
    };
  }

  const calls = createPullRequestCalls({
    host,
    call,
    names,
    open,
    list,
    read: toPullRequest,
    refusalOf: (_call, _address, answer) => Promise.resolve(refusalOf(answer.status, answer.body)),
    hasCommit,
    keepsClosedHead: false,
  });

  return {
    kind: "bitbucketDataCenter",
    id: `bitbucketDataCenter:${host}`,
    name: host,
    webUrl,
    opensPullRequests: true,
    pullRequestRef: (number) => `refs/pull-requests/${number}/from`,
    filePages: null,
    commitPage: (address, sha) => `${pagesOf(webUrl, repositoryPlaceOf(webUrl, address))}/commits/${sha}`,
    feedback: createDataCenterFeedback({
      host,
      webUrl,
      call,
      reactions,
      users: (query, signal) => send(`${apiUrl}/users?${new URLSearchParams(query).toString()}`, "GET", signal),
    }),
    browse: browseBitbucketDataCenter(host, {
      ask: (path, signal) => callForge(`${apiUrl}${path}`, { method: "GET", headers, signal, ...whileChoosing }),
      call: (address, method, path, signal) => call(address, method, path, signal, whileChoosing),
    }),
    serves: (address) => servesAddress(webUrl, address, true),
    // A token of a person goes with the person's name, others with the fixed one.
    credentials: () =>
      Promise.resolve(token === undefined ? null : { username: username ?? "x-token-auth", password: token }),
    ...calls,
    async readPullRequest(address, number, signal) {
      const read = await calls.readPullRequest(address, number, signal);
      return read.state === "open" ? { ...read, mergeable: await readMergeable(address, number, signal) } : read;
    },
    async editPullRequest(address, number, edit, signal) {
      const path = `${names.path}/${number}`;
      for (let attempt = 1; ; attempt += 1) {
        const answer = await call(address, "GET", path, signal);
        if (answer.status !== 200) throw refusedBy(host, answer);
        const before = answer.body as PullRequest;
        const { version, title, draft } = before;
        const text = edit(withCommentMarks(before.description ?? ""), toPullRequest(before).state);
        const description = text === null ? null : withReferenceMarks(text);
        if (description === null || description.length > textLimit) return;
        // A reviewer who is not sent is removed.
        const reviewers = (before.reviewers ?? []).map(({ user: { name } }) => ({ user: { name } }));
        const body = { version, title, description, reviewers, ...(draft !== undefined && { draft }) };
        const changed = await call(address, "PUT", path, signal, { body });
        if (changed.status === 200) return;
        // It was changed since it was read.
        if (changed.status !== 409 || attempt === editAttempts) throw refusedBy(host, changed);
      }
    },
    readAccess,
    fork: (address, signal) => forkOnDataCenter({ host, webUrl, call }, address, signal),
  };
}

function isAt({ project, slug }: Repository, place: { readonly project: string; readonly slug: string }): boolean {
  return isSamePlace({ project: project.key, slug }, place);
}

/** A text that is too long loses from its middle: its end has the marks. */
function cutText(text: string): string {
  if (text.length <= textLimit) return text;
  const marks = text.indexOf("\n\n[//]: # (offstage ");
  const end = marks === -1 ? "" : text.slice(marks);
  const cut = "\n\n(cut)";
  const room = textLimit - cut.length;
  if (end.length >= room) return `${text.slice(0, room - 2_000).toWellFormed()}${cut}${text.slice(-2_000)}`;
  return `${text.slice(0, room - end.length).toWellFormed()}${cut}${end}`;
}

/** Why a pull request was not opened. A branch that was pushed a moment ago may not be known yet. */
function refusalOf(status: number, body: unknown): OpenRefusal {
  const errors = errorsIn(body);
  const isNamed = (name: RegExp): boolean => errors.some(({ exceptionName }) => name.test(String(exceptionName)));
  if (status === 409 && isNamed(/DuplicatePullRequestException$/u)) {
    const id = errors.find(({ existingPullRequest }) => existingPullRequest != null)?.existingPullRequest?.id;
    return { why: "exists", number: typeof id === "number" ? id : null };
  }
  if (status === 409 && isNamed(/EmptyPullRequestException$/u)) return { why: "same" };
  return { why: status === 404 && isNamed(/NoSuch(?:Branch|Commit|Ref)Exception$/u) ? "unknown" : "refused" };
}

function pullRequestOf(webUrl: string, pull: PullRequest): ForgePullRequest {
  const { id, state, fromRef, toRef, description, draft } = pull;
  const { repository: into } = toRef;
  const branch = (ref: string): string => ref.replace(/^refs\/heads\//u, "");
  return {
    number: id,
    url: `${pagesOf(webUrl, { project: into.project.key, slug: into.slug })}/pull-requests/${id}`,
    state: state === "OPEN" ? "open" : state === "MERGED" ? "merged" : "closed",
    head: branch(fromRef.id),
    target: branch(toRef.id),
    mergeable: null,
    headSha: fromRef.latestCommit ?? "",
    mark: readMark(withCommentMarks(description ?? "")),
    ...(draft !== undefined && { draft }),
  };
}
