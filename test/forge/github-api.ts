import { answerFieldsAsGitHub } from "./pull-request-fields.ts";
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
import { bareOf, commitsOf, isAhead } from "./commits.ts";
import { answerFeedbackAsGitHub } from "./github-feedback.ts";
import {
  approvalRuleShapes,
  commitShape,
  fullRepositoryShape,
  protectionShape,
  pullRequestShape,
  ruleShapes,
} from "./github-shapes.ts";
import { mergeableOf } from "./mergeable.ts";
import { shownState, type ForgeState, type KeptPullRequest } from "./state.ts";

const documentation = "https://docs.github.com/rest";

/** A refusal in GitHub's shape. */
export const refusedByGitHub = (status: number, message: string): Answer => ({
  status,
  body: { message, documentation_url: documentation, status: String(status) },
});

/** The part of GitHub's API that Offstage calls; what it says of branches and commits is read from refs. */
export function answerAsGitHub(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { place, method, path } = request;
  const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (path === "") return { status: 200, body: fullRepositoryShape(place, facts) };
  if (path === "/forks" && method === "POST") {
    if (facts.allowForking === false) return refusedByGitHub(403, "The repository exists, but forking is disabled.");
    const { fork } = forkOf(state, place);
    return { status: 202, body: fullRepositoryShape(fork, state.facts.get(`${fork.owner}/${fork.name}`) ?? {}) };
  }
  if (path === "/branches") {
    const sha = state.refs.shaOf(bareOf(state, place), "main");
    const commit = { sha, url: `${place.webUrl}/api/v3/repos/${place.owner}/${place.name}/commits/${sha}` };
    return { status: 200, body: sha === null ? [] : [{ name: "main", commit, protected: false }] };
  }
  if (path.startsWith("/rules/branches/")) {
    const ofApprovals = facts.approvals === undefined ? [] : approvalRuleShapes(place, facts.approvals);
    return { status: 200, body: [...ruleShapes(place, facts.rules ?? []), ...ofApprovals] };
  }
  if (/^\/branches\/.+\/protection$/u.test(path)) {
    if (facts.approvals?.isClassic !== true) return refusedByGitHub(404, "Branch not protected");
    return { status: 200, body: protectionShape(facts.approvals) };
  }
  const feedback = answerFeedbackAsGitHub(state, request, refusedByGitHub(404, "Not Found"));
  if (feedback !== null) return feedback;
  const fields = answerFieldsAsGitHub(state, request, (pull) => show(state, request, pull), refusedByGitHub);
  if (fields !== null) return fields;
  const [, number, commits] = /^\/pulls\/(\d+)(\/commits)?$/u.exec(path) ?? [];
  if (number !== undefined) {
    const pull = pulls.find((candidate) => candidate.number === Number(number));
    if (pull === undefined) return refusedByGitHub(404, "Not Found");
    return commits === undefined ? one(state, request, pull) : listCommits(state, request, pull);
  }
  if (path !== "/pulls") return refusedByGitHub(404, "Not Found");
  return method === "GET" ? list(state, request, pulls) : open(state, request, pulls);
}

function one(state: ForgeState, request: ApiRequest, pull: KeptPullRequest): Answer {
  const changed = patchPullRequest(state, request, pull);
  const mergeable = mergeableOf(state, request.place, changed, false);
  return { status: 200, body: { ...show(state, request, changed), mergeable } };
}

function list(state: ForgeState, request: ApiRequest, pulls: readonly KeptPullRequest[]): Answer {
  const { place, query } = request;
  const head = query.get("head");
  const wanted = query.get("state") ?? "open";
  const found = pulls
    .filter((pull) => performance.now() >= pull.shownFrom)
    .map((pull) => ({ ...pull, state: shownState(pull) }))
    .filter(
      (pull) =>
        // Without an owner the filter is ignored.
        (head?.includes(":") !== true || head === `${pull.headOwner ?? place.owner}:${pull.head}`) &&
        (query.get("base") ?? pull.base) === pull.base &&
        (wanted === "all" || wanted === (pull.state === "open" ? "open" : "closed")),
    )
    .toReversed();
  const { items, headers } = pageOf(request, found, {
    sizeName: "per_page",
    mostItems: 100,
    base: `/api/v3/repos/${request.place.owner}/${request.place.name}`,
  });
  return { status: 200, headers, body: items.map((pull) => show(state, request, pull)) };
}

function listCommits(state: ForgeState, request: ApiRequest, pull: KeptPullRequest): Answer {
  const { place } = request;
  // GitHub names no more of a pull request.
  const commits = commitsOf(bareOf(state, place), headShaOf(state, place, pull), pull).slice(0, 250);
  const { items, headers } = pageOf(request, commits, {
    sizeName: "per_page",
    mostItems: 100,
    base: `/api/v3/repos/${request.place.owner}/${request.place.name}`,
  });
  return { status: 200, headers, body: items.map((commit) => commitShape(place, commit)) };
}

/** Refuses as GitHub does: a branch that it does not know, no commits between, one that is open already. */
function open(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { place, body } = request;
  const { base = "" } = body;
  const bare = bareOf(state, place);
  const invalid = (error: object): Answer => ({
    status: 422,
    body: {
      message: "Validation Failed",
      errors: [{ resource: "PullRequest", ...error }],
      documentation_url: `${documentation}/pulls/pulls#create-a-pull-request`,
      status: "422",
    },
  });
  const { head, headOwner, headSha } = headIn(state, place, body["head"] ?? "");
  const baseSha = state.refs.shaOf(bare, base);
  if (headSha === null) return invalid({ field: "head", code: "invalid" });
  if (baseSha === null) return invalid({ field: "base", code: "invalid" });
  if (!isAhead(bare, headSha, baseSha))
    return invalid({ code: "custom", message: `No commits between ${base} and ${head}` });
  const { hasDrafts } = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (String(body["draft"]) === "true" && hasDrafts === false)
    return refusedByGitHub(422, "Draft pull requests are not supported in this repository.");
  // Whatever the lists show, no second one is opened.
  if (
    pulls.some(
      (pull) => pull.state === "open" && pull.head === head && pull.headOwner === headOwner && pull.base === base,
    )
  )
    return invalid({
      code: "custom",
      message: `A pull request already exists for ${headOwner ?? place.owner}:${head}.`,
    });
  return { status: 201, body: show(state, request, addPullRequest(state, pulls, body, { head, headOwner, baseSha })) };
}

function show(state: ForgeState, { place }: ApiRequest, pull: KeptPullRequest) {
  const baseSha = state.refs.shaOf(bareOf(state, place), pull.base) ?? "";
  return pullRequestShape(place, pull, { headSha: headShaOf(state, place, pull), baseSha });
}
