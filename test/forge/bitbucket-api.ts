import { idOf } from "./feedback.ts";
import { addPullRequest, endPullRequest, forkOf, headShaOf, type Answer, type ApiRequest } from "./api-request.ts";
import { bitbucketPage, refusedByBitbucket } from "./bitbucket-answers.ts";
import { answerFeedbackAsBitbucket } from "./bitbucket-feedback.ts";
import {
  bitbucketAccountShape,
  bitbucketCommitShape,
  bitbucketPullRequestShape,
  bitbucketRepositoryShape,
  shortRepositoryShape,
  uuidOf,
} from "./bitbucket-shapes.ts";
import { bareOf, bringFrom, commitsOf, diffOf, isAhead } from "./commits.ts";
import { mergeableOf } from "./mergeable.ts";
import { shownState, tokenUser, type ForgeState, type KeptPullRequest, type Place } from "./state.ts";

/** What a path of the API is about; null: no repository. */
export function bitbucketRepositoryIn(below: string): { owner: string; name: string; path: string } | null {
  const [, owner = "", name = "", path = ""] = /^repositories\/([^/]+)\/([^/]+)([^]*)$/u.exec(below) ?? [];
  if (name !== "") return { owner, name, path };
  const [, workspace = "", slug = ""] = /^workspaces\/([^/]+)\/permissions\/repositories\/([^/]+)$/u.exec(below) ?? [];
  if (slug !== "") return { owner: workspace, name: slug, path: "/~people" };
  return null;
}

/** Bitbucket's answer about the token's user; null: the request is about something else. */
export function answerAboutBitbucketUser(state: ForgeState, { path, query }: ApiRequest): Answer | null {
  if (path === "user") return { status: 200, body: { ...bitbucketAccountShape(state.asking), username: state.asking } };
  if (!/^user\/workspaces\/[^/]+\/permissions\/repositories$/u.test(path)) return null;
  const [, full = ""] = /repository\.full_name = "(.+)"/u.exec(query.get("q") ?? "") ?? [];
  const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(full) ?? [];
  const place = { webUrl: state.url, owner, name };
  const mine = {
    type: "repository_permission",
    user: bitbucketAccountShape(tokenUser),
    repository: shortRepositoryShape(place),
    permission: state.facts.get(full)?.push === false ? "read" : "write",
  };
  return { status: 200, body: { pagelen: 10, page: 1, size: 1, values: state.pulls.has(full) ? [mine] : [] } };
}

/** The part of Bitbucket Cloud's API that Offstage calls, below a repository. */
export function answerAsBitbucket(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { place, method, path } = request;
  const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (path === "") return { status: 200, body: bitbucketRepositoryShape(place, facts) };
  if (path === "/forks" && method === "POST") return fork(state, request);
  if (path === "/refs/branches") return listBranches(state, request);
  const feedback = answerFeedbackAsBitbucket(state, request);
  if (feedback !== null) return feedback;
  const [, from, into] = /^\/diff\/(\w+)\.\.(\w+)$/u.exec(path) ?? [];
  if (from !== undefined && into !== undefined) {
    const text = diffOf(bareOf(state, place), from, into, request.query.get("path") ?? "");
    return { status: 200, headers: { "Content-Type": "text/plain" }, text };
  }
  if (path.startsWith("/file-conflicts/")) return listConflicts(state, request, pulls);
  const [, id, rest = ""] = /^\/pullrequests\/(\d+)(\/\w+)?$/u.exec(path) ?? [];
  if (id === undefined) {
    if (path !== "/pullrequests") return refusedByBitbucket(404, "Resource not found");
    return method === "GET" ? list(state, request, pulls) : open(state, request, pulls);
  }
  const pull = pulls.find(({ number }) => number === Number(id));
  if (pull === undefined) return refusedByBitbucket(404, `Pull request ${id} not found`);
  if (rest === "/commits") return listCommits(state, request, pull);
  if (rest === "/conflicts") return toConflicts(state, place, pull);
  if (rest === "/decline" && method === "POST") endPullRequest(state, place, pull.number, "closed");
  if (rest === "" && method === "PUT") return change(state, request, pulls, pull);
  const now = pulls.find(({ number }) => number === pull.number) ?? pull;
  return { status: 200, body: shape(state, place, now, true) };
}

function shape(state: ForgeState, place: Place, pull: KeptPullRequest, isOne: boolean) {
  return bitbucketPullRequestShape(place, pull, { sha: headShaOf(state, place, pull), isOne });
}

function list(state: ForgeState, request: ApiRequest, pulls: readonly KeptPullRequest[]): Answer {
  const { place, query } = request;
  const states = query.getAll("state").length === 0 ? ["OPEN"] : query.getAll("state");
  const named = (field: string): string | undefined => {
    const [, text] = new RegExp(String.raw`${field} = "((?:[^"\\]|\\.)*)"`, "u").exec(query.get("q") ?? "") ?? [];
    return text?.replaceAll(/\\(.)/gu, "$1");
  };
  const [head, base] = [named(String.raw`source\.branch\.name`), named(String.raw`destination\.branch\.name`)];
  const found = pulls
    .filter((pull) => performance.now() >= pull.shownFrom)
    .map((pull) => ({ ...pull, state: shownState(pull) }))
    .filter((pull) => states.includes({ open: "OPEN", merged: "MERGED", closed: "DECLINED" }[pull.state]))
    .filter((pull) => (head ?? pull.head) === pull.head && (base ?? pull.base) === pull.base)
    .toReversed();
  return bitbucketPage(request, found, 50, (pull) => shape(state, place, pull, false));
}

/** Newest first. */
function listCommits(state: ForgeState, request: ApiRequest, pull: KeptPullRequest): Answer {
  const { place } = request;
  const commits = commitsOf(bareOf(state, place), headShaOf(state, place, pull), pull).toReversed();
  return bitbucketPage(request, commits, 100, (commit) => bitbucketCommitShape(place, commit));
}

function listBranches(state: ForgeState, request: ApiRequest): Answer {
  const { place } = request;
  const isKnown = state.refs.shaOf(bareOf(state, place), "main") !== null;
  return bitbucketPage(request, isKnown ? ["main"] : [], 100, (name) => ({ type: "branch", name }));
}

function toConflicts(state: ForgeState, place: Place, pull: KeptPullRequest): Answer {
  const api = `${place.webUrl}/2.0/repositories/${place.owner}/${place.name}`;
  const spec = `${place.owner}/${place.name}:${headShaOf(state, place, pull)}..${pull.baseSha}`;
  const headers = { Location: `${api}/file-conflicts/${spec}?from_pullrequest_id=${pull.number}` };
  return { status: 302, headers, body: {} };
}

function listConflicts(state: ForgeState, request: ApiRequest, pulls: readonly KeptPullRequest[]): Answer {
  const { place, query } = request;
  if (request.isBasic)
    return refusedByBitbucket(403, "This resource does not support authentication using the provided token");
  const pull = pulls.find(({ number }) => number === Number(query.get("from_pullrequest_id")));
  if (pull === undefined) return refusedByBitbucket(404, "Resource not found");
  const mergeable = mergeableOf(state, place, pull, false) ?? mergeableOf(state, place, pull, false);
  return bitbucketPage(request, mergeable === false ? ["a.txt"] : [], 100, (path) => ({ path }));
}

function fork(state: ForgeState, { place, body }: ApiRequest): Answer {
  const { workspace } = body as { workspace?: { slug?: string } };
  if (state.facts.get(`${place.owner}/${place.name}`)?.allowForking === false)
    return refusedByBitbucket(403, "Forking is not allowed for this repository.");
  if (workspace?.slug !== tokenUser) return refusedByBitbucket(404, "No such workspace");
  const { fork: made, wasThere } = forkOf(state, place);
  if (wasThere) return refusedByBitbucket(400, "Repository with this Slug and Owner already exists.");
  return { status: 201, body: bitbucketRepositoryShape(made, state.facts.get(`${made.owner}/${made.name}`) ?? {}) };
}

interface Sent {
  readonly title?: string;
  readonly description?: string;
  readonly source?: { branch?: { name?: string }; repository?: { full_name?: string } };
  readonly destination?: { branch?: { name?: string } };
  readonly reviewers?: readonly { readonly uuid?: string; readonly account_id?: string }[];
  readonly draft?: boolean;
}

/** Who is not sent is no reviewer any more. */
function change(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[], pull: KeptPullRequest): Answer {
  const { title = "", description, reviewers = [] } = request.body as Sent;
  if (pull.state !== "open") return refusedByBitbucket(400, "Only open pull requests can be mutated.");
  if (title === "")
    return refusedByBitbucket(400, "title: This field is required.", { title: ["This field is required."] });
  const people = ["ada", "bo", "cy"];
  const named = reviewers.map(({ uuid, account_id: account }) =>
    people.find((name) => uuid === uuidOf(name) || account === `557058:${idOf(name)}`),
  );
  if (named.includes(undefined))
    return refusedByBitbucket(400, "reviewers: Malformed reviewers list", { reviewers: ["Malformed reviewers list"] });
  const known = [...new Set(named)].flatMap((name) => name ?? []);
  const changed = { ...pull, title, body: description ?? pull.body, reviewers: known };
  pulls[pulls.indexOf(pull)] = changed;
  return { status: 200, body: shape(state, request.place, changed, true) };
}

/** There is one open pull request of the same branches: a second one becomes a change of it, and is answered as if it were new. */
function open(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { place } = request;
  const { title = "", description = "", source, destination, draft = false } = request.body as Sent;
  const [head = "", base = "main"] = [source?.branch?.name, destination?.branch?.name];
  if (title === "" || title.length > 255) return refusedByBitbucket(400, "title: Invalid", { title: ["Invalid"] });
  const [owner = place.owner, name = place.name] = source?.repository?.full_name?.split("/") ?? [];
  const headOwner = owner === place.owner ? null : owner;
  const missing = (field: string, branch: string): Answer =>
    refusedByBitbucket(400, `${field}: branch not found: ${branch}`, { [field]: [`branch not found: ${branch}`] });
  const from = { ...place, owner, name };
  const bare = bareOf(state, place);
  const headSha = state.pulls.has(`${owner}/${name}`) ? state.refs.shaOf(bareOf(state, from), head) : null;
  if (headSha === null) return missing("source", head);
  const baseSha = state.refs.shaOf(bare, base);
  if (baseSha === null) return missing("destination", base);
  if (headOwner !== null) bringFrom(bare, bareOf(state, from), head);
  if (!isAhead(bare, headSha, baseSha)) return refusedByBitbucket(400, "There are no changes to be pulled");
  const isSame = (pull: KeptPullRequest) =>
    pull.state === "open" && pull.head === head && pull.headOwner === headOwner && pull.base === base;
  const existing = pulls.findIndex(isSame);
  const before = pulls[existing];
  if (before !== undefined) pulls[existing] = { ...before, title, body: description };
  const text = { title, base, body: description, draft: String(draft) };
  const pull = pulls[existing] ?? addPullRequest(state, pulls, text, { head, headOwner, baseSha });
  return { status: 201, body: shape(state, place, pull, true) };
}
