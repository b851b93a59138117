import { setTimeout as pause } from "node:timers/promises";
import { SessionError } from "../domain/errors/errors.ts";
import { withMark } from "../domain/repositories/pull-request-mark.ts";
import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import { backoffMs, type Backoff } from "../domain/time/backoff.ts";
import type { Forge, ForgePullRequest, OpenPullRequest, PullRequestOpener, RepositoryCall } from "./forge.ts";
import { ForgeUnavailable, type ForgeAnswer, type ForgeRequest } from "./http/http.ts";
import { isAboutPermission, refusedBy, wordsOf } from "./http/refusal.ts";

type PullRequestCalls = Pick<
  Forge,
  "call" | "findPullRequest" | "openPullRequest" | "readPullRequest" | "editPullRequest"
>;
type Opened = ForgePullRequest & { readonly created: boolean };

/** A branch and the branch that its work is for. */
export interface Branches {
  readonly head: string;
  readonly target: string;
  /** The fork that has the head; omitted: the repository itself. */
  readonly from?: RepositoryAddress | undefined;
}

/** The head as forges name it among those of other repositories: `owner:branch`. */
export function qualifiedHead({ path }: RepositoryAddress, head: string): string {
  return `${path.split("/").at(-2) ?? ""}:${head}`;
}

/**
 * Why a forge did not open a pull request:
 * - `exists`: the branch has an open one, with its number if the forge names it
 * - `unknown`: the forge does not know the branch
 * - `same`: the forge sees no commit on the branch that the target lacks
 * - `refused`: anything else
 *
 * A forge may say each but the last one of a branch that was pushed a moment ago.
 */
export type OpenRefusal =
  | { readonly why: "exists"; readonly number: number | null }
  | { readonly why: "unknown" | "same" | "refused" };

/** How a forge's API names what all of them have. */
export interface PullRequestNames {
  /** Its pull requests, below a repository. */
  readonly path: string;
  /** The field with a pull request's text. */
  readonly body: string;
  /** The method that changes the fields that are sent. */
  readonly edit: ForgeRequest["method"];
  /** The field with the hash of a listed commit. */
  readonly sha: string;
}

/** The names that GitHub and Gitea have in common. */
export const gitHubNames: PullRequestNames = { path: "/pulls", body: "body", edit: "PATCH", sha: "sha" };

/** The differences between the forges. */
export interface PullRequestApi {
  readonly host: string;
  readonly call: RepositoryCall;
  readonly names: PullRequestNames;
  /**
   * Sends the request to open one, whose answer is 201 if it was opened.
   * @param call in whose name: the forge's own, or that of `OpenPullRequest.opener`
   * @param request its `body` has the mark already
   */
  readonly open: (
    call: RepositoryCall,
    address: RepositoryAddress,
    request: OpenPullRequest,
    signal: AbortSignal,
  ) => Promise<ForgeAnswer>;
  /** The pull requests of the branches, of any state, newest first. */
  readonly list: (address: RepositoryAddress, branches: Branches, signal: AbortSignal) => Promise<ForgePullRequest[]>;
  /** Parses a pull request of the forge's API. */
  readonly read: (body: unknown, address: RepositoryAddress) => ForgePullRequest;
  /** Reads why it was not opened. @param call with which it was asked for */
  readonly refusalOf: (
    call: RepositoryCall,
    address: RepositoryAddress,
    answer: ForgeAnswer,
    signal: AbortSignal,
  ) => Promise<OpenRefusal>;
  /** Whether a pull request has a commit, of a forge whose list of commits is another than GitHub's, GitLab's and Gitea's. */
  readonly hasCommit?: (
    address: RepositoryAddress,
    number: number,
    sha: string,
    signal: AbortSignal,
  ) => Promise<boolean>;
  /** Makes of a text one that the forge only shows; omitted: it does nothing with texts. */
  readonly harmless?: (text: string) => string;
  /** Whether the head commit of a closed pull request stays what it was when it was closed. */
  readonly keepsClosedHead: boolean;
}

/** How long a forge may need to know what was pushed or opened, before the step fails with what passes, in ms. */
const catchUpMs = 30_000;
/**
 * How long after a request whose answer is lost the pull request may be missing in the forge's lists, in ms: only then another
 * request is sent. An open one is not opened twice even then, since the forge refuses it.
 */
const settleMs = 15_000;
const looking: Backoff = { fromMs: 500, toMs: 4_000, jitter: 0.5 };
/** Closed pull requests of the same branches that are looked into, the newest first. */
const mostClosed = 5;
const commitsPerPage = 50;
/** GitHub names at most 250 commits of a pull request. */
const mostCommitPages = 5;

/**
 * Opens a pull request as GitHub and Gitea do: the head as one name, of a fork with its owner.
 * @param asDraft the fields of a draft that differ
 */
export function openAsGitHub(asDraft: (title: string) => Readonly<Record<string, unknown>>): PullRequestApi["open"] {
  return (call, address, { head, target, from, title, body, draft = false }, signal) => {
    const named = from === undefined ? head : qualifiedHead(from, head);
    const sent = { head: named, base: target, title, body, ...(draft && asDraft(title)) };
    return call(address, "POST", gitHubNames.path, signal, { body: sent });
  };
}

/** The calls for pull requests, as far as they are the same on all forges. */
export function createPullRequestCalls(api: PullRequestApi): PullRequestCalls {
  return {
    call: api.call,
    async findPullRequest(address, head, target, signal, from) {
      const found = await api.list(address, { head, target, from }, signal);
      return found.find(({ state }) => state === "open") ?? found[0] ?? null;
    },
    openPullRequest: (address, request, signal) => openOnce(api, address, request, signal),
    async readPullRequest(address, number, signal) {
      const answer = await api.call(address, "GET", pathOf(api, number), signal);
      if (answer.status !== 200) throw refusedBy(api.host, answer);
      return api.read(answer.body, address);
    },
    async editPullRequest(address, number, edit, signal) {
      const path = pathOf(api, number);
      const answer = await api.call(address, "GET", path, signal);
      if (answer.status !== 200) throw refusedBy(api.host, answer);
      const { names } = api;
      const body = edit(bodyOf(answer.body, names), api.read(answer.body, address).state);
      if (body === null) return;
      const changes = { [names.body]: harmless(api, body) };
      const changed = await api.call(address, names.edit, path, signal, { body: changes });
      // Gitea answers 201.
      if (changed.status !== 200 && changed.status !== 201) throw refusedBy(api.host, changed);
    },
  };
}

function pathOf({ names }: PullRequestApi, number: number): string {
  return `${names.path}/${number}`;
}

function harmless(api: PullRequestApi, text: string): string {
  return api.harmless?.(text) ?? text;
}

/** The text of a pull request; forges have null for an empty one. */
function bodyOf(pullRequest: unknown, { body: name }: PullRequestNames): string {
  return (pullRequest as Readonly<Record<string, string | null | undefined>>)[name] ?? "";
}

/** Searches, opens, and searches again, until there is a pull request or the forge's answer is final. */
async function openOnce(
  api: PullRequestApi,
  address: RepositoryAddress,
  request: OpenPullRequest,
  signal: AbortSignal,
): Promise<Opened> {
  const { work } = request;
  const beganAt = performance.now();
  // When it was asked for without an answer; null: it was not.
  let askedAt = work === undefined || work.askedMsAgo === null ? null : beganAt - work.askedMsAgo;
  let existing: NotOpened | null = null;
  let opener = request.opener ?? null;
  // The forge's answer to the opener while it may have lagged: some answer so for a credential that sees too little.
  let doubted: string | null = null;
  for (let look = 1; ; look += 1) {
    const found = await findFor(api, address, request, signal);
    if (found !== null) {
      const isOurs = work !== undefined && found.mark?.sessionId === work.sessionId && found.mark.sha === work.sha;
      return { ...found, created: askedAt !== null && isOurs };
    }
    const isLate = performance.now() - beganAt >= catchUpMs;
    if (existing !== null && isLate) throw existing.failure;
    // A list without it does not prove that it does not exist.
    if (existing === null && (askedAt === null || performance.now() - askedAt >= settleMs)) {
      await work?.beforeAsking(opener);
      const asked = await ask(api, address, request, opener, signal);
      if ("created" in asked) {
        if (doubted !== null) await request.opener?.refused({ isOfCredential: false, words: doubted });
        return asked;
      }
      if (asked.next === "ask" && isLate && opener !== null) {
        doubted = asked.failure.message;
        opener = null;
        continue;
      }
      if (asked.next === "ownName") {
        // Nothing was opened, but the list is read again: a pull request may have been opened meanwhile.
        opener = null;
        continue;
      }
      if (asked.next === "fail" || isLate) throw asked.failure;
      if (asked.next === "settle") askedAt = performance.now();
      if (asked.next === "look") existing = asked;
    }
    await pause(backoffMs(look, looking), undefined, { signal });
  }
}

/** The open pull request of the branches, else one that was opened for the same work; null if none is known. */
async function findFor(
  api: PullRequestApi,
  address: RepositoryAddress,
  { head, target, from, work }: OpenPullRequest,
  signal: AbortSignal,
): Promise<ForgePullRequest | null> {
  const found = await api.list(address, { head, target, from }, signal);
  const open = found.find(({ state }) => state === "open");
  if (open !== undefined) return open;
  if (work === undefined) return null;
  for (const closed of found.slice(0, mostClosed)) {
    const isMarked = closed.mark?.sessionId === work.sessionId && closed.mark.sha === work.sha;
    const isHead = api.keepsClosedHead && closed.headSha === work.sha;
    if (isMarked || isHead || (await hasCommit(api, address, closed.number, work.sha, signal))) return closed;
  }
  return null;
}

/** Whether a pull request has a commit, among the first 250. */
async function hasCommit(
  api: PullRequestApi,
  address: RepositoryAddress,
  number: number,
  sha: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (api.hasCommit !== undefined) return api.hasCommit(address, number, sha, signal);
  let seen = 0;
  for (let page = 1; page <= mostCommitPages; page += 1) {
    // `limit` is Gitea's name of GitHub's `per_page`.
    const query = `per_page=${commitsPerPage}&limit=${commitsPerPage}&page=${page}`;
    const answer = await api.call(address, "GET", `${pathOf(api, number)}/commits?${query}`, signal);
    // A merged pull request may have lost its commits.
    if (answer.status !== 200 || !Array.isArray(answer.body)) return false;
    const commits = answer.body as readonly Readonly<Record<string, unknown>>[];
    if (commits.some((commit) => commit[api.names.sha] === sha)) return true;
    seen += commits.length;
    if (hasNextPage(answer, seen) !== true) return false;
  }
  return false;
}

/**
 * Whether a list goes on after a page: by the Link header (RFC 8288), else by GitLab's X-Next-Page or the X-Total-Count of Gitea.
 * The number of items on a page says nothing: an administrator of Gitea sets how many it has at most.
 * @param seen items so far
 * @returns null if the forge does not say
 */
export function hasNextPage({ headers }: ForgeAnswer, seen: number): boolean | null {
  const link = headers.get("link");
  if (link !== null) return /;\s*rel="?next"?/u.test(link);
  const next = headers.get("x-next-page");
  if (next !== null) return next !== "";
  const total = headers.get("x-total-count");
  return total === null ? null : Number(total) > seen;
}

/** A request that returned no pull request. */
interface NotOpened {
  readonly failure: SessionError;
  /**
   * - `fail`: the answer is final
   * - `ask`: the forge did not open one, and may do so later
   * - `look`: there is one, which its list will show
   * - `settle`: it may have opened one
   * - `ownName`: it does not let the opener open one
   */
  readonly next: "fail" | "ask" | "look" | "settle" | "ownName";
}

/** Sends one request to open a pull request. */
async function ask(
  api: PullRequestApi,
  address: RepositoryAddress,
  request: OpenPullRequest,
  opener: PullRequestOpener | null,
  signal: AbortSignal,
): Promise<Opened | NotOpened> {
  const { body, work } = request;
  const { call } = opener ?? api;
  const text = harmless(api, body);
  const sent = { ...request, body: work === undefined ? text : withMark(text, work) };
  try {
    const answer = await api.open(call, address, sent, signal);
    if (answer.status === 201) return { ...api.read(answer.body, address), created: true };
    const refusal = await api.refusalOf(call, address, answer, signal);
    if (opener !== null && refusal.why === "refused" && isAboutPermission(answer)) {
      await opener.refused({ isOfCredential: answer.status === 401, words: wordsOf(answer.body) });
      return { next: "ownName", failure: refusedBy(api.host, answer) };
    }
    if (refusal.why !== "exists") return notOpened(api, answer, refusal.why, work !== undefined);
    const open = refusal.number === null ? null : await readOpen(api, address, refusal.number, request, signal);
    return (
      open ?? { next: "look", failure: lagging(api, "has a pull request already, which it does not list", answer) }
    );
  } catch (error) {
    if (!(error instanceof ForgeUnavailable)) throw error;
    if (opener !== null && !error.isOpen) {
      await opener.limited(error.message);
      return { next: "ownName", failure: error };
    }
    return { next: error.isOpen ? "settle" : "fail", failure: error };
  }
}

/** @param isPushed whether the branch is known to be pushed, so that a forge that does not know it will */
function notOpened(
  api: PullRequestApi,
  answer: ForgeAnswer,
  why: Exclude<OpenRefusal["why"], "exists">,
  isPushed: boolean,
): NotOpened {
  const refused = answer.status === 404 && why !== "refused" ? { ...answer, status: 422 } : answer;
  const final = refusedBy(api.host, refused);
  if (why === "refused" || !isPushed) return { next: "fail", failure: final };
  return { next: "ask", failure: why === "same" ? final : lagging(api, "was pushed, which it does not know", answer) };
}

/** The failure of a forge that still lags after the longest wait. */
function lagging({ host }: PullRequestApi, what: string, { body }: ForgeAnswer): SessionError {
  return new SessionError({
    code: "forge_unavailable",
    reason: `${host} lags behind: the branch ${what} yet (${wordsOf(body)}).`,
    retryable: true,
    remedy: "Retry in a moment: the branch is pushed, and nothing is done twice.",
  });
}

/** The pull request with a number, if it is the open one of the branches. */
async function readOpen(
  api: PullRequestApi,
  address: RepositoryAddress,
  number: number,
  { head, target }: Branches,
  signal: AbortSignal,
): Promise<Opened | null> {
  const answer = await api.call(address, "GET", pathOf(api, number), signal);
  if (answer.status !== 200) return null;
  const read = api.read(answer.body, address);
  const isIt = read.state === "open" && read.head === head && read.target === target;
  return isIt ? { ...read, created: false } : null;
}
