import { fieldsSentToGitLab } from "./pull-request-fields.ts";
import {
  addPullRequest,
  endPullRequest,
  forkOf,
  headShaOf,
  pageOf,
  type Answer,
  type ApiRequest,
} from "./api-request.ts";
import { bareOf, bringFrom, commitOf, commitsOf } from "./commits.ts";
import { idOf as idOfPerson } from "./feedback.ts";
import { answerFeedbackAsGitLab } from "./gitlab-feedback.ts";
import {
  gitLabBranchShape,
  gitLabCommitShape,
  gitLabUserShape,
  mergeRequestBasicShape,
  mergeRequestShape,
  projectShape,
  protectedBranchShapes,
  type Looked,
} from "./gitlab-shapes.ts";
import { mergeableOf } from "./mergeable.ts";
import { nextLagMs, shownState, type ForgeState, type KeptPullRequest, type Place } from "./state.ts";

/** A refusal in GitLab's shape, whose message may be a text, a list of texts, or texts by field. */
export const refusedByGitLab = (status: number, message: unknown): Answer => ({ status, body: { message } });

/** What a path of the API is about; null: no project. */
export function projectIn(pathname: string): { readonly owner: string; readonly name: string; path: string } | null {
  const [, id = "", path = ""] = /^\/api\/v4\/projects\/([^/]+)(.*)$/u.exec(pathname) ?? [];
  const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(decodeURIComponent(id)) ?? [];
  return name === "" ? null : { owner, name, path };
}

/** The part of GitLab's API that Offstage calls, below a project. */
export function answerAsGitLab(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { place, method, path } = request;
  const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (path === "") return showProject(state, place);
  if (path === "/fork" && method === "POST") return fork(state, request);
  if (path === "/protected_branches") {
    const { items, headers } = pageOf(request, protectedBranchShapes(facts.rules ?? []), {
      sizeName: "per_page",
      mostItems: 100,
      base: "",
    });
    return { status: 200, headers, body: items };
  }
  if (path === "/approvals") {
    if (facts.approvals === undefined) return refusedByGitLab(404, "404 Not Found");
    const { excludesPusher = false, excludesAuthor = false, pushDismisses = false } = facts.approvals;
    const body = {
      approvals_before_merge: 0,
      reset_approvals_on_push: pushDismisses,
      merge_requests_author_approval: !excludesAuthor,
      merge_requests_disable_committers_approval: excludesPusher,
    };
    return { status: 200, body };
  }
  const [, branch] = /^\/repository\/branches\/([^/]+)$/u.exec(path) ?? [];
  if (branch !== undefined) return showBranch(state, request, decodeURIComponent(branch));
  const [, sha] = /^\/repository\/commits\/(\w+)$/u.exec(path) ?? [];
  if (sha !== undefined) {
    const commit = commitOf(bareOf(state, place), sha);
    if (commit === null) return refusedByGitLab(404, "404 Commit Not Found");
    return { status: 200, body: gitLabCommitShape(place, commit) };
  }
  const feedback = answerFeedbackAsGitLab(state, request, (text) => described(state, text).body);
  if (feedback !== null) return feedback;
  const [, iid, commits] = /^\/merge_requests\/(\d+)(\/commits)?$/u.exec(path) ?? [];
  if (iid !== undefined) {
    const pull = pulls.find(({ number }) => number === Number(iid));
    if (pull === undefined) return refusedByGitLab(404, "404 Not found");
    if (commits !== undefined) return listCommits(state, request, pull);
    return method === "PUT" ? change(state, request, pull) : showOne(state, request, pull);
  }
  if (path !== "/merge_requests") return refusedByGitLab(404, "404 Not Found");
  return method === "GET" ? list(state, request, pulls) : open(state, request);
}

/** The user of the token. */
export function showUser({ url, asking }: ForgeState): Answer {
  return { status: 200, body: gitLabUserShape(url, asking, idOfPerson(asking)) };
}

function idOf(state: ForgeState, { owner, name }: Pick<Place, "owner" | "name">): number {
  return [...state.pulls.keys()].indexOf(`${owner}/${name}`) + 1;
}

function placeOf(state: ForgeState, id: number): Place | null {
  const [, owner, name] = /^(.+)\/([^/]+)$/u.exec([...state.pulls.keys()][id - 1] ?? "") ?? [];
  return owner === undefined || name === undefined ? null : { webUrl: state.url, owner, name };
}

function factsOf(state: ForgeState, { owner, name }: Place) {
  return state.facts.get(`${owner}/${name}`) ?? {};
}

/** A fork is copied in the background. */
function showProject(state: ForgeState, place: Place): Answer {
  const facts = factsOf(state, place);
  const isCopied = facts.copiedFrom === undefined || performance.now() >= facts.copiedFrom;
  const importStatus = facts.forkOf === undefined ? "none" : isCopied ? "finished" : "started";
  return { status: 200, body: projectShape(place, idOf(state, place), facts, { importStatus, isFull: true }) };
}

function fork(state: ForgeState, { place }: ApiRequest): Answer {
  if (factsOf(state, place).allowForking === false) return refusedByGitLab(404, "404 Not Found");
  const { fork: made, wasThere } = forkOf(state, place);
  if (wasThere) {
    const taken = ["Project namespace name has already been taken", "Name has already been taken"];
    return refusedByGitLab(409, [...taken, "Path has already been taken"]);
  }
  const facts = { ...factsOf(state, made), copiedFrom: performance.now() + nextLagMs(state) };
  state.facts.set(`${made.owner}/${made.name}`, facts);
  const shape = projectShape(made, idOf(state, made), facts, { importStatus: "scheduled", isFull: false });
  return { status: 201, body: shape };
}

function showBranch(state: ForgeState, { place }: ApiRequest, branch: string): Answer {
  const bare = bareOf(state, place);
  const sha = state.refs.shaOf(bare, branch);
  if (sha === null) return refusedByGitLab(404, "404 Branch Not Found");
  const [commit] = commitsOf(bare, sha, { baseSha: `${sha}^@` });
  return { status: 200, body: gitLabBranchShape(place, branch, commit, factsOf(state, place).push ?? true) };
}

function looked(state: ForgeState, place: Place, pull: KeptPullRequest, mergeable: boolean | null): Looked {
  const sha = headShaOf(state, place, pull);
  const source = { ...place, owner: pull.headOwner ?? place.owner };
  return {
    sha: sha === "" ? null : sha,
    baseSha: pull.baseSha,
    mergeable,
    sourceId: idOf(state, source),
    targetId: idOf(state, place),
    squashSha: factsOf(state, place).squashes?.[pull.number] ?? null,
  };
}

function showOne(state: ForgeState, { place }: ApiRequest, pull: KeptPullRequest): Answer {
  const mergeable = mergeableOf(state, place, pull, false);
  return { status: 200, body: mergeRequestShape(place, pull, looked(state, place, pull, mergeable)) };
}

function change(state: ForgeState, request: ApiRequest, pull: KeptPullRequest): Answer {
  const { place, body } = request;
  const pulls = state.pulls.get(`${place.owner}/${place.name}`) ?? [];
  const ended = body["state_event"] === "close" ? endPullRequest(state, place, pull.number, "closed") : null;
  const fields = fieldsSentToGitLab(state, request, pull);
  const changed = { ...(ended ?? pull), ...described(state, body["description"] ?? pull.body), ...fields };
  pulls[pulls.findIndex(({ number }) => number === pull.number)] = changed;
  return showOne(state, request, changed);
}

/** GitLab carries out the quick actions of a description, and takes them out of it. */
function described(state: ForgeState, description: string): { readonly body: string } {
  const action = /^\/(?:merge|assign|assign_reviewer|close|label|approve|submit_review|target_branch)(?: .*)?$/gmu;
  state.quickActions.push(...(description.match(action) ?? []));
  return { body: description.replaceAll(action, "").trim() };
}

function list(state: ForgeState, request: ApiRequest, pulls: readonly KeptPullRequest[]): Answer {
  const { place, query } = request;
  const wanted = query.get("state") ?? "all";
  const found = pulls
    .filter((pull) => performance.now() >= pull.shownFrom)
    .map((pull) => ({ ...pull, state: shownState(pull) }))
    .filter(
      (pull) =>
        (query.get("source_branch") ?? pull.head) === pull.head &&
        (query.get("target_branch") ?? pull.base) === pull.base &&
        (wanted === "all" || wanted === (pull.state === "open" ? "opened" : pull.state)),
    )
    .toReversed();
  const { items, headers } = page(request, found);
  const body = items.map((pull) => mergeRequestBasicShape(place, pull, looked(state, place, pull, null)));
  return { status: 200, headers, body };
}

/** Newest first, as GitLab lists them. */
function listCommits(state: ForgeState, request: ApiRequest, pull: KeptPullRequest): Answer {
  const { place } = request;
  const commits = commitsOf(bareOf(state, place), headShaOf(state, place, pull), pull).toReversed();
  const { items, headers } = page(request, commits);
  return { status: 200, headers, body: items.map((commit) => gitLabCommitShape(place, commit)) };
}

function page<Item>(request: ApiRequest, found: readonly Item[]) {
  const { owner, name } = request.place;
  const base = `/api/v4/projects/${encodeURIComponent(`${owner}/${name}`)}`;
  return pageOf(request, found, { sizeName: "per_page", mostItems: 100, base });
}

/**
 * Refuses as GitLab does (lib/api/merge_requests.rb). The request goes to the project that has the branch, which may be a fork. It
 * opens one for a branch that it does not know, and one without a change.
 */
function open(state: ForgeState, request: ApiRequest): Answer {
  const { body } = request;
  const { source_branch: head = "", target_branch: base = "", target_project_id: targetId, title = "" } = body;
  if (head === "" || base === "" || title === "") return { status: 400, body: { error: "source_branch is missing" } };
  const place = targetId === undefined ? request.place : placeOf(state, Number(targetId));
  if (place === null) return refusedByGitLab(404, "404 Project Not Found");
  if (title.length > 255) return refusedByGitLab(400, { title: ["is too long (maximum is 255 characters)"] });
  const headOwner = place.owner === request.place.owner ? null : request.place.owner;
  if (headOwner === null && head === base)
    return refusedByGitLab(422, ["You can't use same project/branch for source and target"]);
  if (headOwner !== null && factsOf(state, request.place).forkOf !== place.owner)
    return refusedByGitLab(422, ["Source project is not a fork of the target project"]);
  const pulls = state.pulls.get(`${place.owner}/${place.name}`) ?? [];
  const existing = pulls.find(
    (pull) => pull.state === "open" && pull.head === head && pull.headOwner === headOwner && pull.base === base,
  );
  if (existing !== undefined) {
    const words = `Another open merge request already exists for this source branch: !${existing.number}`;
    return refusedByGitLab(409, [words]);
  }
  const bare = bareOf(state, place);
  if (headOwner !== null) bringFrom(bare, bareOf(state, request.place), head);
  const baseSha = state.refs.shaOf(bare, base) ?? "";
  const text = { title, base, ...described(state, body["description"] ?? "") };
  const opened = addPullRequest(state, pulls, text, { head, headOwner, baseSha });
  return { ...showOne(state, { ...request, place }, opened), status: 201 };
}
