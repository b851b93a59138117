import { answerFieldsAsGitea, assignAtGitea } from "./pull-request-fields.ts";
import {
  addPullRequest,
  forkOf,
  headIn,
  headShaOf,
  pageOf,
  patchPullRequest,
  type Answer,
  type ApiRequest,
} from "./api-request.ts";
import { bareOf, commitsOf, isAhead, tipOf } from "./commits.ts";
import { answerFeedbackAsGitea } from "./gitea-feedback.ts";
import { giteaBranchShape, giteaCommitShape, giteaPullRequestShape, giteaRepositoryShape } from "./gitea-shapes.ts";
import { mergeableOf } from "./mergeable.ts";
import { shownState, type ForgeState, type KeptPullRequest } from "./state.ts";

/** A refusal in Gitea's shape; its 404 has a list of errors too, which is empty. */
export const refusedByGitea = ({ url }: Pick<ForgeState, "url">, status: number, message: string): Answer => ({
  status,
  body: { ...(status === 404 && { errors: [] }), message, url: `${url}/api/swagger` },
});

const notFound = (state: ForgeState): Answer => refusedByGitea(state, 404, "The target couldn't be found.");

/** The part of Gitea's API that Offstage calls. */
export function answerAsGitea(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { place, method, path } = request;
  const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (path === "") return { status: 200, body: giteaRepositoryShape(place, facts) };
  if (path === "/forks" && method === "POST") {
    const { fork, wasThere } = forkOf(state, place);
    if (wasThere) return refusedByGitea(state, 409, `repository already exists [name: ${fork.name}]`);
    return { status: 202, body: giteaRepositoryShape(fork, { forkOf: place.owner }) };
  }
  if (path === "/branches") {
    const sha = state.refs.shaOf(bareOf(state, place), "main");
    return { status: 200, body: sha === null ? [] : [giteaBranchShape("main", sha, true)] };
  }
  const [, branch] = /^\/branches\/(.+)$/u.exec(path) ?? [];
  if (branch !== undefined) return showBranch(state, request, decodeURIComponent(branch));
  const refused = (status: number, words: string): Answer => refusedByGitea(state, status, words);
  const feedback = answerFeedbackAsGitea(state, request, refused);
  if (feedback !== null) return feedback;
  const fields = answerFieldsAsGitea(state, request, refused);
  if (fields !== null) return fields;
  const [, number, commits] = /^\/pulls\/(\d+)(\/commits)?$/u.exec(path) ?? [];
  if (number !== undefined) {
    const pull = pulls.find((candidate) => candidate.number === Number(number));
    if (pull === undefined) return notFound(state);
    return commits === undefined ? one(state, request, pull) : listCommits(state, request, pull);
  }
  const [, base, head] = /^\/pulls\/([^/]+)\/(.+)$/u.exec(path) ?? [];
  if (base !== undefined && head !== undefined)
    return byBranches(state, request, pulls, { base: decodeURIComponent(base), named: decodeURIComponent(head) });
  if (path !== "/pulls") return notFound(state);
  return method === "GET" ? list(state, request, pulls) : open(state, request, pulls);
}

function one(state: ForgeState, request: ApiRequest, pull: KeptPullRequest): Answer {
  const refused = assignAtGitea(state, request, pull, (status, words) => refusedByGitea(state, status, words));
  if (refused !== null) return refused;
  const now = state.pulls
    .get(`${request.place.owner}/${request.place.name}`)
    ?.find((each) => each.number === pull.number);
  const changed = patchPullRequest(state, request, now ?? pull);
  const mergeable = mergeableOf(state, request.place, changed, true);
  const status = request.method === "PATCH" ? 201 : 200;
  return { status, body: { ...show(state, request, changed), mergeable } };
}

/** Of several, the oldest: Gitea's query has no order. */
function byBranches(
  state: ForgeState,
  request: ApiRequest,
  pulls: readonly KeptPullRequest[],
  { base, named }: { readonly base: string; readonly named: string },
): Answer {
  const { head, headOwner } = headIn(state, request.place, named);
  const isIt = (pull: KeptPullRequest) => pull.base === base && pull.head === head && pull.headOwner === headOwner;
  const found = shown(pulls).find(isIt);
  return found === undefined ? notFound(state) : { status: 200, body: show(state, request, found) };
}

function shown(pulls: readonly KeptPullRequest[]): KeptPullRequest[] {
  return pulls
    .filter((pull) => performance.now() >= pull.shownFrom)
    .map((pull) => ({ ...pull, state: shownState(pull) }));
}

/** Gitea's list has no filter by branch. */
function list(state: ForgeState, request: ApiRequest, pulls: readonly KeptPullRequest[]): Answer {
  const { query } = request;
  const wanted = query.get("state") ?? "open";
  const base = query.get("base_branch") ?? "";
  const found = shown(pulls)
    .filter((pull) => wanted === "all" || wanted === (pull.state === "open" ? "open" : "closed"))
    .filter((pull) => base === "" || pull.base === base)
    .toReversed();
  const { items, headers } = giteaPage(state, request, found);
  return { status: 200, headers, body: items.map((pull) => show(state, request, pull)) };
}

function listCommits(state: ForgeState, request: ApiRequest, pull: KeptPullRequest): Answer {
  const { place } = request;
  const { items, headers } = giteaPage(
    state,
    request,
    commitsOf(bareOf(state, place), headShaOf(state, place, pull), pull),
  );
  return { status: 200, headers, body: items.map((commit) => giteaCommitShape(place, commit)) };
}

/** A page of a list of Gitea's, with its headers. */
export function giteaPage<Item>({ maxResponseItems }: ForgeState, request: ApiRequest, found: readonly Item[]) {
  const { items, headers } = pageOf(request, found, {
    sizeName: "limit",
    mostItems: maxResponseItems,
    base: `/api/v1/repos/${request.place.owner}/${request.place.name}`,
  });
  return { items, headers: { ...headers, "X-Total-Count": String(found.length) } };
}

/** Refuses as Gitea does (routers/api/v1/repo/pull.go, CreatePullRequest); it opens one without a change, too. */
function open(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { place, body } = request;
  const { base = "" } = body;
  const bare = bareOf(state, place);
  const { head, headOwner, headSha } = headIn(state, place, body["head"] ?? "");
  if (head === base && headOwner === null) {
    return refusedByGitea(state, 422, "Invalid PullRequest: There are no changes between the head and the base");
  }
  const baseSha = state.refs.shaOf(bare, base);
  if (headSha === null || baseSha === null) return notFound(state);
  const existing = pulls.find(
    (pull) => pull.state === "open" && pull.head === head && pull.headOwner === headOwner && pull.base === base,
  );
  if (existing !== undefined) {
    const { number } = existing;
    const words = `pull request already exists for these targets [id: ${number}, issue_id: ${number}, head_repo_id: ${headOwner === null ? 1 : 2}, base_repo_id: 1, head_branch: ${head}, base_branch: ${base}]`;
    return refusedByGitea(state, 409, words);
  }
  return { status: 201, body: show(state, request, addPullRequest(state, pulls, body, { head, headOwner, baseSha })) };
}

/** A closed one has the head of its branch, as long as there is one, and another ref after that. */
function show(state: ForgeState, { place }: ApiRequest, pull: KeptPullRequest) {
  const bare = bareOf(state, place);
  const from = bareOf(state, { ...place, owner: pull.headOwner ?? place.owner });
  const tip = tipOf(from, pull.head) === null ? null : state.refs.shaOf(from, pull.head);
  const baseSha = state.refs.shaOf(bare, pull.base) ?? "";
  const head = { ref: tip === null ? `refs/pull/${pull.number}/head` : pull.head, sha: tip ?? pull.endedSha ?? "" };
  return giteaPullRequestShape(place, pull, { head, baseSha, isEmpty: !isAhead(bare, head.sha, pull.baseSha) });
}

function showBranch(state: ForgeState, { place }: ApiRequest, branch: string): Answer {
  const sha = state.refs.shaOf(bareOf(state, place), branch);
  if (sha === null) return notFound(state);
  const { push } = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  return { status: 200, body: giteaBranchShape(branch, sha, push ?? true) };
}
