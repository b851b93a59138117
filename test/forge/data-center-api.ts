import { peopleOf } from "./pull-request-fields.ts";
import { addPullRequest, endPullRequest, forkOf, headShaOf, type Answer, type ApiRequest } from "./api-request.ts";
import { dataCenterPage, refusedByDataCenter } from "./data-center-answers.ts";
import { answerFeedbackAsDataCenter } from "./data-center-feedback.ts";
import {
  dataCenterCommitShape,
  dataCenterHunkShape,
  dataCenterPullRequestShape,
  dataCenterRepositoryShape,
  dataCenterUserShape,
} from "./data-center-shapes.ts";
import { bareOf, bringFrom, commitsOf, diffOf, isAhead } from "./commits.ts";
import { mergeableOf } from "./mergeable.ts";
import { shownState, tokenUser, type ForgeState, type KeptPullRequest, type Place } from "./state.ts";

const exceptions = "com.atlassian.bitbucket";

/** What a path of the API is about; null: no repository. Reactions have an API of their own, whose paths begin with `/~likes` here. */
export function dataCenterRepositoryIn(below: string): { owner: string; name: string; path: string } | null {
  const [, api, key = "", name = "", path = ""] =
    /^(api|comment-likes)\/latest\/projects\/([^/]+)\/repos\/([^/]+)([^]*)$/u.exec(below) ?? [];
  if (api === undefined) return null;
  return { owner: key.replace(/^~/u, ""), name, path: api === "api" ? path : `/~likes${path}` };
}

/** What is asked beside repositories; null: the request is about one. */
export function answerOfDataCenter(state: ForgeState, request: ApiRequest): Answer | null {
  const { path, query } = request;
  if (path === "api/latest/repos") {
    const isWrite = query.get("permission") === "REPO_WRITE";
    const shown = [...state.pulls.keys()].flatMap((key) => {
      const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(key) ?? [];
      const facts = state.facts.get(key) ?? {};
      const isHidden = isWrite && (facts.push === false || !state.dataCenterWrites);
      const isNamed = (query.get("name") ?? `Repository ${name}`) === `Repository ${name}`;
      if (isHidden || !isNamed || (query.get("projectkey") ?? owner) !== owner) return [];
      return [dataCenterRepositoryShape({ webUrl: state.url, owner, name }, facts)];
    });
    return dataCenterPage(request, shown, (each) => each);
  }
  if (path !== "api/latest/users") return null;
  const place = `${query.get("permission.1.projectKey")}/${query.get("permission.1.repositorySlug")}`;
  const people = Object.entries(state.facts.get(place)?.people ?? {})
    .filter(([name, permission]) => name.includes(query.get("filter") ?? "") && ["admin", "write"].includes(permission))
    .map(([name]) => name);
  return dataCenterPage(request, people, dataCenterUserShape);
}

/** The part of Bitbucket Data Center's API that Offstage calls, below a repository. */
export function answerAsDataCenter(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { place, method, path, query } = request;
  const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (path === "") {
    if (method === "POST") return fork(state, request);
    return { status: 200, body: dataCenterRepositoryShape(place, facts) };
  }
  if (path === "/branches") {
    const isKnown = state.refs.shaOf(bareOf(state, place), "main") !== null;
    return dataCenterPage(request, isKnown ? ["main"] : [], (name) => ({ id: `refs/heads/${name}`, displayId: name }));
  }
  const feedback = answerFeedbackAsDataCenter(state, request);
  if (feedback !== null) return feedback;
  const [, ofDiff, file = ""] = /^\/pull-requests\/(\d+)\/diff\/(.+)$/u.exec(path) ?? [];
  if (ofDiff !== undefined)
    return showDiff(
      state,
      place,
      pulls.find(({ number }) => number === Number(ofDiff)),
      file,
    );
  const [, id, rest = ""] = /^\/pull-requests\/(\d+)(\/\w+)?$/u.exec(path) ?? [];
  if (id === undefined) {
    if (path !== "/pull-requests") return refusedByDataCenter(404, "null for uri", null);
    return method === "GET" ? list(state, request) : open(state, request, pulls);
  }
  const pull = pulls.find(({ number }) => number === Number(id));
  if (pull === undefined)
    return refusedByDataCenter(
      404,
      "The pull request does not exist.",
      `${exceptions}.pull.NoSuchPullRequestException`,
    );
  if (rest === "/commits") return listCommits(state, request, pull);
  if (rest === "/merge") return showMergeable(state, place, pull);
  if (rest === "/decline") {
    if (Number(query.get("version")) !== (pull.version ?? 0)) return outOfDate();
    endPullRequest(state, place, pull.number, "closed");
  }
  if (rest === "" && method === "PUT") return change(state, request, pulls, pull);
  const now = pulls.find(({ number }) => number === pull.number) ?? pull;
  return { status: 200, body: shape(state, place, now) };
}

/** The change of one file, line by line. */
function showDiff(state: ForgeState, place: Place, pull: KeptPullRequest | undefined, file: string): Answer {
  if (pull === undefined) return refusedByDataCenter(404, "The pull request does not exist.", null);
  const path = decodeURIComponent(file);
  const text = diffOf(bareOf(state, place), headShaOf(state, place, pull), pull.baseSha, path);
  const hunks = text
    .split(/^(?=@@ )/mu)
    .slice(1)
    .map(dataCenterHunkShape);
  const name = { components: path.split("/"), name: path, toString: path };
  const diffs = text === "" ? [] : [{ source: name, destination: name, hunks, truncated: false }];
  const hashes = { fromHash: pull.baseSha, toHash: headShaOf(state, place, pull) };
  return { status: 200, body: { ...hashes, contextLines: 10, whitespace: "SHOW", diffs, truncated: false } };
}

function shape(state: ForgeState, place: Place, pull: KeptPullRequest) {
  return dataCenterPullRequestShape(place, pull, headShaOf(state, place, pull));
}

function outOfDate(): Answer {
  const words = "You are attempting to modify a pull request based on out-of-date information.";
  return refusedByDataCenter(409, words, `${exceptions}.pull.PullRequestOutOfDateException`);
}

/** Pull requests from this repository's branches, which may be for another one. */
function list(state: ForgeState, request: ApiRequest): Answer {
  const { place, query } = request;
  const isOutgoing = query.get("direction") === "OUTGOING";
  const wanted = query.get("state") ?? "OPEN";
  const at = query.get("at")?.replace(/^refs\/heads\//u, "");
  const found = [...state.pulls.entries()].flatMap(([key, pulls]) => {
    const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(key) ?? [];
    const into = { webUrl: state.url, owner, name };
    return pulls
      .filter((pull) => performance.now() >= pull.shownFrom)
      .map((pull) => ({ ...pull, state: shownState(pull) }))
      .filter((pull) => {
        const own = isOutgoing ? (pull.headOwner ?? owner) : owner;
        return name === place.name && own === place.owner && (at ?? pull.head) === (isOutgoing ? pull.head : pull.base);
      })
      .map((pull) => shape(state, into, pull));
  });
  const shown = found.filter((pull) => wanted === "ALL" || pull.state === wanted);
  return dataCenterPage(request, shown.toReversed(), (each) => each);
}

function listCommits(state: ForgeState, request: ApiRequest, pull: KeptPullRequest): Answer {
  const { place } = request;
  const commits = commitsOf(bareOf(state, place), headShaOf(state, place, pull), pull).toReversed();
  return dataCenterPage(request, commits, dataCenterCommitShape);
}

/** Computed when it is asked for, as Data Center does. */
function showMergeable(state: ForgeState, place: Place, pull: KeptPullRequest): Answer {
  if (pull.state !== "open")
    return refusedByDataCenter(
      409,
      "The pull request is not open.",
      `${exceptions}.pull.IllegalPullRequestStateException`,
    );
  const isClean = mergeableOf(state, place, pull, false) ?? mergeableOf(state, place, pull, false);
  const outcome = isClean === null ? "UNKNOWN" : isClean ? "CLEAN" : "CONFLICTED";
  return { status: 200, body: { conflicted: isClean === false, outcome, vetoes: [] } };
}

function fork(state: ForgeState, { place }: ApiRequest): Answer {
  if (state.facts.get(`${place.owner}/${place.name}`)?.allowForking === false)
    return refusedByDataCenter(409, "Forking is disabled.", `${exceptions}.repository.ForkingDisabledException`);
  const { fork: made, wasThere } = forkOf(state, place);
  if (wasThere) {
    const words = `This repository URL is already taken by '${place.name}' in '~${tokenUser}'`;
    return refusedByDataCenter(409, words, null);
  }
  return { status: 201, body: dataCenterRepositoryShape(made, state.facts.get(`${made.owner}/${made.name}`) ?? {}) };
}

interface SentRef {
  readonly id?: string;
  readonly repository?: { readonly slug?: string; readonly project?: { readonly key?: string } };
}
interface Sent {
  readonly version?: number;
  readonly title?: string;
  readonly description?: string;
  readonly fromRef?: SentRef;
  readonly toRef?: SentRef;
  readonly reviewers?: readonly { readonly user?: { readonly name?: string } }[];
  readonly draft?: boolean;
}

/** A change names the version that it is about. Who is not sent is no reviewer any more. */
function change(
  state: ForgeState,
  { place, body }: ApiRequest,
  pulls: KeptPullRequest[],
  pull: KeptPullRequest,
): Answer {
  const { version, title, description, reviewers = [] } = body as Sent;
  if (version === undefined) return refusedByDataCenter(400, "The version must be specified.", null);
  if (version !== (pull.version ?? 0)) return outOfDate();
  if ((description ?? "").length > 32_768) return tooLong();
  const people = reviewers.flatMap(({ user }) => user?.name ?? []);
  const stranger = people.find(
    (each) => !peopleOf(state, place).includes(each) && pull.reviewers?.includes(each) !== true,
  );
  if (stranger !== undefined) {
    const exception = `${exceptions}.pull.InvalidPullRequestReviewersException`;
    return refusedByDataCenter(409, `${stranger} is not a user.`, exception);
  }
  const text = { title: title ?? pull.title, body: description ?? pull.body };
  const changed = { ...pull, ...text, reviewers: people, version: version + 1 };
  pulls[pulls.indexOf(pull)] = changed;
  return { status: 200, body: shape(state, place, changed) };
}

function tooLong(): Answer {
  const words = "Please enter a non-empty value less than 32768 characters";
  return refusedByDataCenter(400, words, "javax.validation.ConstraintViolationException");
}

function open(state: ForgeState, { place, body }: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { title = "", description = "", fromRef, toRef, draft = false } = body as Sent;
  if (title === "" || title.length > 255 || description.length > 32_768) return tooLong();
  const [head, base] = [fromRef, toRef].map((ref) => ref?.id?.replace(/^refs\/heads\//u, "") ?? "") as [string, string];
  const owner = fromRef?.repository?.project?.key?.replace(/^~/u, "") ?? place.owner;
  const headOwner = owner === place.owner ? null : owner;
  const from = { ...place, owner };
  const missing = (branch: string): Answer =>
    refusedByDataCenter(
      404,
      `Branch "refs/heads/${branch}" does not exist in repository '${place.name}'.`,
      `${exceptions}.repository.NoSuchBranchException`,
    );
  const bare = bareOf(state, place);
  const headSha = state.pulls.has(`${owner}/${place.name}`) ? state.refs.shaOf(bareOf(state, from), head) : null;
  if (headSha === null) return missing(head);
  const baseSha = state.refs.shaOf(bare, base);
  if (baseSha === null) return missing(base);
  if (headOwner !== null) bringFrom(bare, bareOf(state, from), head);
  const existing = pulls.find(
    (pull) => pull.state === "open" && pull.head === head && pull.headOwner === headOwner && pull.base === base,
  );
  if (existing !== undefined) {
    const words = "Only one pull request may be open for a given source and target branch";
    const exception = `${exceptions}.pull.DuplicatePullRequestException`;
    return refusedByDataCenter(409, words, exception, { existingPullRequest: shape(state, place, existing) });
  }
  if (!isAhead(bare, headSha, baseSha)) {
    const words = `Branch "${base}" is already up-to-date with branch "${head}" in repository '${place.name}'.`;
    return refusedByDataCenter(409, words, `${exceptions}.pull.EmptyPullRequestException`);
  }
  const pull = addPullRequest(
    state,
    pulls,
    { title, base, body: description, draft: String(draft) },
    { head, headOwner, baseSha },
  );
  return { status: 201, body: shape(state, place, pull) };
}
