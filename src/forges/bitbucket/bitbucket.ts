import { whileChoosing } from "../browse.ts";
import { browseBitbucket } from "./browse.ts";
import { cutAtWord } from "../../domain/fields/text.ts";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type {
  Forge,
  ForgePullRequest,
  ForgeSettings,
  OpenPullRequest,
  RepositoryAccess,
  RepositoryCall,
} from "../forge.ts";
import { callForge, onlyALook, type ForgeAnswer } from "../http/http.ts";
import { createPullRequestCalls, type Branches, type OpenRefusal, type PullRequestApi } from "../pull-requests.ts";
import type { LogReader } from "../feedback/feedback.ts";
import { readLogEnd } from "../feedback/logs.ts";
import { withCommentMarks, withReferenceMarks } from "../feedback/reference-marks.ts";
import { refusedBy, wordsOf } from "../http/refusal.ts";
import { pageOn, pathOn, servesAddress } from "../serves.ts";
import { authorizationOf, gitCredentialsOf } from "./authorization.ts";
import { createBitbucketFeedback } from "./feedback.ts";
import { forkOnBitbucket } from "./fork.ts";
import { createKeyedLock } from "./keyed-lock.ts";
import { queryText, readPages } from "./pages.ts";
import { bitbucketAccess, type Repository, type RepositoryPermission } from "./repository.ts";

type BitbucketSettings = Extract<ForgeSettings, { kind: "bitbucket" }>;

/** Fields used of a pull request (https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/). */
interface PullRequest {
  readonly id: number;
  readonly title: string;
  readonly description?: string | null;
  readonly summary?: { readonly raw?: string };
  readonly state: "OPEN" | "MERGED" | "DECLINED" | "SUPERSEDED";
  readonly source: Endpoint;
  readonly destination: Endpoint;
  readonly reviewers?: readonly { readonly uuid?: string }[];
  readonly created_on?: string;
  readonly draft?: boolean;
  readonly links: { readonly html: { readonly href: string } };
}

interface Endpoint {
  readonly branch: { readonly name: string };
  /** Shortened, as a rule to 12 digits. */
  readonly commit?: { readonly hash?: string } | null;
  /** Null once the fork is deleted. */
  readonly repository?: { readonly full_name?: string } | null;
}

const names: PullRequestApi["names"] = { path: "/pullrequests", body: "description", edit: "PUT", sha: "hash" };
const states = ["OPEN", "MERGED", "DECLINED", "SUPERSEDED"];
/** Pages of 50 pull requests of one branch and target, and of 100 commits, that are read. */
const pageLimit = 10;
/** Most characters of a title. */
const titleLimit = 255;
/** How long it is known what was opened, in ms: lists have it by then. */
const openedMs = 60_000;
const mostOpened = 1_000;
/** By how much the times of one server may differ, in ms: its Date header has whole seconds. */
const clockMs = 2_000;
/** How often a pull request is read again whose branch was rewritten while it was read. */
const mostRewrites = 2;

/** Adapter for Bitbucket Cloud (https://developer.atlassian.com/cloud/bitbucket/rest/). */
export function createBitbucket(settings: BitbucketSettings): Forge {
  const { webUrl, apiUrl, token, username } = settings;
  const { host } = new URL(webUrl);
  const headers = authorizationOf(settings);
  const ask = (url: string, signal: AbortSignal, options: { onceWithinMs?: number } = {}): Promise<ForgeAnswer> =>
    callForge(url, { method: "GET", headers, signal, ...options });
  const urlOf = (address: RepositoryAddress, path: string): string =>
    `${apiUrl}/repositories/${pathOn(webUrl, address)}${path}`;
  const call: RepositoryCall = (address, method, path, signal, options = {}) =>
    callForge(urlOf(address, path), { method, headers, signal, ...options });
  const readLog: LogReader = (address, path, bytes, signal) =>
    readLogEnd(urlOf(address, path), { headers, bytes, signal });
  const permissions: RepositoryCall = (address, _, query, signal) => {
    const [workspace = "", slug = ""] = pathOn(webUrl, address).split("/");
    return ask(`${apiUrl}/workspaces/${workspace}/permissions/repositories/${slug}${query}`, signal);
  };

  const opening = createKeyedLock();
  /** Pull requests that were opened a moment ago, by their branches. */
  const opened = new Map<string, { readonly number: number; readonly until: number }>();
  /** Whether Bitbucket refuses this token the list of conflicts, as it does to API tokens. */
  let conflictsAreSecret = false;

  const keyOf = (address: RepositoryAddress, { head, target, from }: Branches): string =>
    JSON.stringify([address.path, head, target, from?.path ?? null]);

  async function list(
    address: RepositoryAddress,
    { head, target, from }: Branches,
    signal: AbortSignal,
  ): Promise<ForgePullRequest[]> {
    const source = from === undefined ? null : pathOn(webUrl, from).toLowerCase();
    const listed: PullRequest[] = [];
    const query = new URLSearchParams({
      q: `source.branch.name = ${queryText(head)} AND destination.branch.name = ${queryText(target)}`,
      sort: "-created_on",
      pagelen: "50",
    });
    for (const state of states) query.append("state", state);
    for await (const page of readPages(call, { address, path: names.path, query, pages: pageLimit }, signal)) {
      if ("refused" in page) throw refusedBy(host, page.refused);
      listed.push(...(page.items as readonly PullRequest[]));
    }
    return listed
      .filter((each) => repositoryOf(each.source) === (source ?? repositoryOf(each.destination)))
      .filter((each) => each.source.branch.name === head && each.destination.branch.name === target)
      .map(toPullRequest)
      .toSorted((a, b) => b.number - a.number);
  }

  /**
   * Bitbucket does not refuse a second pull request of the same branches: it gives the open one the new text, and answers as if it
   * were new. So one that was opened a moment ago is looked for first, which lists may not have yet; and an answer with one that is
   * older than the request is taken for a refusal.
   */
  const open: PullRequestApi["open"] = async (callAs, address, { head, target, from, title, body, draft }, signal) => {
    const key = keyOf(address, { head, target, from });
    const known = opened.get(key);
    if (known !== undefined && performance.now() < known.until) {
      const answer = await call(address, "GET", `${names.path}/${known.number}`, signal);
      const isOpen = answer.status === 200 && (answer.body as PullRequest).state === "OPEN";
      if (isOpen) return { ...answer, status: 409 };
    }
    const began = performance.now();
    const answer = await callAs(address, "POST", names.path, signal, {
      body: {
        title: cutAtWord(title, titleLimit),
        description: withReferenceMarks(body),
        source: {
          branch: { name: head },
          ...(from !== undefined && { repository: { full_name: pathOn(webUrl, from) } }),
        },
        destination: { branch: { name: target } },
        ...(draft === true && { draft }),
      },
    });
    if (answer.status !== 201) return answer;
    if (opened.size >= mostOpened) opened.clear();
    opened.set(key, { number: (answer.body as PullRequest).id, until: performance.now() + openedMs });
    return wasThere(answer, performance.now() - began) ? { ...answer, status: 409 } : answer;
  };

  async function hasCommit(
    address: RepositoryAddress,
    number: number,
    sha: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const path = `${names.path}/${number}/commits`;
    const query = new URLSearchParams({ pagelen: "100" });
    const asked = { address, path, query, pages: pageLimit };
    for await (const page of readPages(call, asked, signal)) {
      // A merged pull request may have lost its commits.
      if ("refused" in page) return false;
      const commits = page.items as readonly { readonly hash?: string }[];
      if (commits.some(({ hash }) => hash === sha)) return true;
    }
    return false;
  }

  async function withWholeHash<Read extends ForgePullRequest>(
    address: RepositoryAddress,
    pull: Read,
    signal: AbortSignal,
  ): Promise<Read> {
    return { ...pull, headSha: await wholeHash(address, pull, mostRewrites, signal) };
  }

  /**
   * The whole hash of the head, which pull requests have shortened. Their commits are asked for after the pull request: if its branch was
   * pushed to in between, the head is an older one of them; if the branch was rewritten, the pull request is read again, so many times.
   */
  async function wholeHash(
    address: RepositoryAddress,
    { number, headSha }: Pick<ForgePullRequest, "number" | "headSha">,
    times: number,
    signal: AbortSignal,
  ): Promise<string> {
    if (headSha === "" || headSha.length >= 40) return headSha;
    const answer = await call(address, "GET", `${names.path}/${number}/commits?pagelen=100`, signal);
    const { values = [] } = (answer.body ?? {}) as { readonly values?: readonly { readonly hash?: string }[] };
    const hash = values.find((commit) => commit.hash?.startsWith(headSha) === true)?.hash;
    if (hash !== undefined) return hash;
    if (answer.status !== 200 || values.length === 0 || times === 0) return headSha;
    return wholeHash(address, await calls.readPullRequest(address, number, signal), times - 1, signal);
  }

  /**
   * Whether an open pull request can be merged into its target. Bitbucket answers with the address of the list of
   * conflicts, which it shows to access tokens and OAuth tokens, and not to API tokens.
   */
  async function readMergeable(
    address: RepositoryAddress,
    number: number,
    signal: AbortSignal,
  ): Promise<boolean | null> {
    if (conflictsAreSecret || (username?.includes("@") ?? false)) return null;
    const redirect = await call(address, "GET", `${names.path}/${number}/conflicts`, signal);
    const spec = redirect.status === 302 ? specIn(redirect.headers.get("location")) : null;
    if (spec === null) return null;
    const answer = await call(address, "GET", `/file-conflicts/${spec}`, signal);
    conflictsAreSecret = answer.status === 403;
    const { values = answer.body } = (answer.body ?? {}) as { readonly values?: unknown };
    return answer.status === 200 && Array.isArray(values) ? values.length === 0 : null;
  }

  async function readAccess(
    address: RepositoryAddress,
    _: string,
    signal: AbortSignal,
    { isNeeded = false }: { readonly isNeeded?: boolean } = {},
  ): Promise<RepositoryAccess> {
    const once = isNeeded ? {} : onlyALook;
    const path = pathOn(webUrl, address);
    const query = new URLSearchParams({ q: `repository.full_name = ${queryText(path)}` });
    // An access token has no user, and there is no call for its rights.
    const isAccount = token !== undefined && username !== undefined;
    const [repository, own] = await Promise.all([
      call(address, "GET", "", signal, once),
      isAccount
        ? ask(
            `${apiUrl}/user/workspaces/${path.split("/")[0]}/permissions/repositories?${query.toString()}`,
            signal,
            once,
          )
        : null,
    ]);
    if (repository.status !== 200) throw refusedBy(host, repository);
    const { values } = (own?.body ?? {}) as { readonly values?: readonly RepositoryPermission[] };
    const mine = own?.status === 200 && Array.isArray(values) ? values : [];
    const found = mine.find((each) => each.repository?.full_name?.toLowerCase() === path.toLowerCase());
    return bitbucketAccess(repository.body as Repository, found?.permission ?? null, {
      hasToken: token !== undefined,
      isAccount,
    });
  }

  const calls = createPullRequestCalls({
    host,
    call,
    names,
    open,
    list,
    read: (body) => toPullRequest(body as PullRequest),
    refusalOf: (_call, _address, answer) => Promise.resolve(refusalOf(answer)),
    hasCommit,
    keepsClosedHead: false,
  });

  return {
    kind: "bitbucket",
    id: `bitbucket:${host}`,
    name: host === "bitbucket.org" ? "Bitbucket" : host,
    webUrl,
    opensPullRequests: true,
    // Bitbucket Cloud has no refs of pull requests.
    pullRequestRef: null,
    filePages: "src",
    commitPage: (address, sha) => `${pageOn(webUrl, address)}/commits/${sha}`,
    feedback: createBitbucketFeedback({ host, call, readLog, permissions }),
    browse: browseBitbucket(host, {
      ask: (path, signal) => callForge(`${apiUrl}${path}`, { method: "GET", headers, signal, ...whileChoosing }),
      call: (address, method, path, signal) => call(address, method, path, signal, whileChoosing),
    }),
    serves: (address) => servesAddress(webUrl, address),
    credentials: () => Promise.resolve(gitCredentialsOf(settings)),
    call,
    async findPullRequest(address, head, target, signal, from) {
      const found = await calls.findPullRequest(address, head, target, signal, from);
      return found === null ? null : withWholeHash(address, found, signal);
    },
    async openPullRequest(address, request: OpenPullRequest, signal) {
      const pull = await opening.run(keyOf(address, request), signal, () =>
        calls.openPullRequest(address, request, signal),
      );
      return withWholeHash(address, pull, signal);
    },
    async readPullRequest(address, number, signal) {
      const read = await withWholeHash(address, await calls.readPullRequest(address, number, signal), signal);
      return read.state === "open" ? { ...read, mergeable: await readMergeable(address, number, signal) } : read;
    },
    async editPullRequest(address, number, edit, signal) {
      const answer = await call(address, "GET", `${names.path}/${number}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer);
      const before = answer.body as PullRequest;
      const text = edit(withCommentMarks(textOf(before)), toPullRequest(before).state);
      if (text === null) return;
      // A reviewer who is not sent is removed, and a title is required.
      const reviewers = before.reviewers?.flatMap(({ uuid }) => (uuid === undefined ? [] : [{ uuid }])) ?? [];
      const body = { title: before.title, description: withReferenceMarks(text), reviewers };
      const changed = await call(address, "PUT", `${names.path}/${number}`, signal, { body });
      if (changed.status !== 200) throw refusedBy(host, changed);
    },
    readAccess,
    fork: (address, signal) =>
      forkOnBitbucket({ host, webUrl, call, user: () => ask(`${apiUrl}/user`, signal) }, address, signal),
  };
}

function repositoryOf({ repository }: Endpoint): string | undefined {
  return repository?.full_name?.toLowerCase();
}

/** Whether a pull request that was answered as new is older than the request, by the server's own clock. */
function wasThere({ headers, body }: ForgeAnswer, tookMs: number): boolean {
  const now = Date.parse(headers.get("date") ?? "");
  const made = Date.parse((body as PullRequest).created_on ?? "");
  return made < now - tookMs - clockMs;
}

/** The commits that an address of conflicts is about, with its query; null if it is not such an address. */
function specIn(location: string | null): string | null {
  const spec = /\/file-conflicts\/((?:[\w~{}-]+\/[\w.~{}-]+:)?[\w%]+(?:\.\.)?\w*(?:\?[^#]*)?)$/u.exec(location ?? "");
  return spec?.[1] ?? null;
}

/** Why a pull request was not opened. A branch that was pushed a moment ago may not be known yet. */
function refusalOf({ status, body }: ForgeAnswer): OpenRefusal {
  if (status === 409) {
    const { id } = (body ?? {}) as { readonly id?: unknown };
    return { why: "exists", number: typeof id === "number" ? id : null };
  }
  if (status !== 400) return { why: "refused" };
  const words = wordsOf(body);
  if (/no changes to be pulled/iu.test(words)) return { why: "same" };
  return { why: /source: branch not found/iu.test(words) ? "unknown" : "refused" };
}

function textOf({ description, summary }: PullRequest): string {
  return description ?? summary?.raw ?? "";
}

function toPullRequest(pullRequest: PullRequest): ForgePullRequest {
  const { id, state, source, destination, links } = pullRequest;
  return {
    number: id,
    url: links.html.href,
    state: state === "OPEN" ? "open" : state === "MERGED" ? "merged" : "closed",
    head: source.branch.name,
    target: destination.branch.name,
    mergeable: null,
    headSha: source.commit?.hash ?? "",
    mark: readMark(withCommentMarks(textOf(pullRequest))),
    ...(pullRequest.draft !== undefined && { draft: pullRequest.draft }),
  };
}
