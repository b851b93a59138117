import { answerFieldsAsAzure } from "./pull-request-fields.ts";
import { addPullRequest, endPullRequest, forkOf, headShaOf, type Answer, type ApiRequest } from "./api-request.ts";
import { azureList, refusedByAzure, unknownToAzure } from "./azure-answers.ts";
import { answerFeedbackAsAzure } from "./azure-feedback.ts";
import {
  azureNamesOf,
  azurePathIn,
  azurePlaceOf,
  forkName,
  guidOf,
  projectIdOf,
  repositoryIdOf,
} from "./azure-places.ts";
import { azureCommitShape, azurePullShape, azureRefShape, repositoryShape } from "./azure-shapes.ts";
import { bareOf, bringFrom, commitOf, commitsOf, fileAt } from "./commits.ts";
import { mergeableOf } from "./mergeable.ts";
import { nextLagMs, shownState, type ForgeState, type KeptPullRequest, type Place } from "./state.ts";

/** The scope that a request needs, as a personal access token has it; null: any will do. */
function scopeOf(method: string, path: string, isInRepository: boolean): string | null {
  if (isInRepository || path.startsWith("git/")) return method === "GET" ? "vso.code" : "vso.code_write";
  if (path.startsWith("wit/")) return method === "GET" ? "vso.work" : "vso.work_write";
  if (path.startsWith("build/")) return "vso.build";
  return path.startsWith("identities") ? "vso.identity" : null;
}

/** Without a good token, or its scope, there is a page to sign in, or a refusal without words. */
export function refusedToken(
  state: ForgeState,
  { token, method, path }: ApiRequest,
  isInRepository: boolean,
): Answer | null {
  if (!state.tokens.has(token)) {
    const headers = { "Content-Type": "text/html; charset=utf-8" };
    return { status: 203, headers, text: "<html><title>Sign In</title></html>" };
  }
  const scope = scopeOf(method, path, isInRepository);
  const scopes = state.azureScopes;
  if (scope === null || scopes === null || scopes.includes(scope)) return null;
  // What may write may read.
  return scopes.includes(`${scope}_write`) ? null : { status: 401, headers: { "Content-Type": "text/html" }, text: "" };
}

/** What is asked of a collection, not of one repository; null: something else. */
export function answerAsCollection(state: ForgeState, pathname: string, request: ApiRequest): Answer | null {
  const { collection, project } = azurePathIn(pathname);
  const { method, path } = request;
  if (path === "connectionData" && project === null) return showConnection(state);
  if (path === "git/repositories" && method === "POST") return fork(state, request);
  if (path === "security/permissionevaluationbatch") return evaluate(state, request);
  return answerFeedbackAsAzure(state, collection, request, pathname);
}

function showConnection({ asking }: ForgeState): Answer {
  const id = guidOf(`person ${asking}`);
  const user = {
    id,
    descriptor: `Microsoft.IdentityModel.Claims.ClaimsIdentity;${guidOf("tenant")}\\${asking}@example.com`,
    subjectDescriptor: `aad.${id}`,
    providerDisplayName: asking,
    isActive: true,
    properties: { Account: { $type: "System.String", $value: `${asking}@example.com` } },
    resourceVersion: 2,
    metaTypeId: 0,
  };
  const rest = { instanceId: guidOf("instance"), deploymentType: "hosted", deploymentId: guidOf("deployment") };
  return { status: 200, body: { authenticatedUser: user, authorizedUser: user, ...rest, locationServiceData: {} } };
}

/** Only what one token may do is asked: to push, to make branches, to make repositories. */
function evaluate(state: ForgeState, { body }: ApiRequest): Answer {
  const { evaluations = [] } = body as unknown as { evaluations?: { token: string; permissions: number }[] };
  const answered = evaluations.map((each) => {
    const [, projectId = "", repositoryId] = each.token.split("/");
    const key = [...state.pulls.keys()].find((one) => {
      const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(one) ?? [];
      const place = { owner, name };
      return repositoryId === undefined
        ? projectIdOf(azureNamesOf(state, place)) === projectId
        : repositoryIdOf(place) === repositoryId;
    });
    const facts = state.facts.get(key ?? "") ?? {};
    const refused = each.permissions === 256 ? facts.allowForking === false : facts.push === false;
    const isShut = facts.rules?.some(({ pattern }) => pattern !== undefined && each.token.endsWith(pattern)) === true;
    return { ...each, value: key !== undefined && !refused && !isShut };
  });
  return { status: 200, body: { evaluations: answered, alwaysAllowAdministrators: false } };
}

/** The part of the API of Azure DevOps that Offstage calls, below a repository. */
export function answerAsAzure(state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { place, method, path, query } = request;
  const feedback = answerFeedbackAsAzure(state, "", request, "");
  if (feedback !== null) return feedback;
  if (path === "") {
    return { status: 200, body: repositoryShape(state, place, query.get("includeParent") === "true") };
  }
  if (path === "/refs") return listRefs(state, request);
  const [, sha] = /^\/commits\/(\w+)$/u.exec(path) ?? [];
  if (sha !== undefined) return showCommit(state, place, sha);
  if (path === "/items") return showItem(state, request);
  const fields = answerFieldsAsAzure(state, request);
  if (fields !== null) return fields;
  const [, id, commits] = /^\/pull[rR]equests\/(\d+)(\/commits)?$/u.exec(path) ?? [];
  if (id !== undefined) {
    const pull = pulls.find(({ number }) => number === Number(id));
    if (pull === undefined)
      return refusedByAzure(
        404,
        "TF401180: The requested pull request was not found.",
        "GitPullRequestNotFoundException",
      );
    if (commits !== undefined) return listCommits(state, request, pull);
    return method === "PATCH" ? change(state, request, pull) : showOne(state, place, pull);
  }
  if (!/^\/pull[rR]equests$/u.test(path)) return refusedByAzure(404, "The controller for path was not found.");
  return method === "GET" ? list(state, request, pulls) : open(state, request, pulls);
}

function showOne(state: ForgeState, place: Place, pull: KeptPullRequest): Answer {
  const mergeable = mergeableOf(state, place, pull, false);
  const headSha = headShaOf(state, place, pull);
  return { status: 200, body: azurePullShape(state, place, pull, { headSha, mergeable, isListed: false }) };
}

function change(state: ForgeState, { place, body }: ApiRequest, pull: KeptPullRequest): Answer {
  const tooLong = tooLongFor(body["description"]);
  if (tooLong !== null) return tooLong;
  const pulls = state.pulls.get(`${place.owner}/${place.name}`) ?? [];
  const ended = body["status"] === "abandoned" ? endPullRequest(state, place, pull.number, "closed") : null;
  const changed = { ...(ended ?? pull), body: body["description"] ?? pull.body };
  pulls[pulls.findIndex(({ number }) => number === pull.number)] = changed;
  return showOne(state, place, changed);
}

/** As it was observed (https://github.com/dependabot/dependabot-core/issues/2747). */
function tooLongFor(description: string | undefined): Answer | null {
  if (description === undefined || description.length <= 4_000) return null;
  const words =
    "Invalid argument value.\r\nParameter name: A description for a pull request must not be longer than 4000 characters.";
  return refusedByAzure(400, words, "InvalidArgumentValueException");
}

function list(state: ForgeState, { place, query }: ApiRequest, pulls: readonly KeptPullRequest[]): Answer {
  const wanted = query.get("searchCriteria.status") ?? "active";
  const of = (name: string): string | null => query.get(`searchCriteria.${name}`);
  const found = pulls
    .filter((pull) => performance.now() >= pull.shownFrom)
    .map((pull) => ({ ...pull, state: shownState(pull) }))
    .filter(({ head, headOwner, base, state: is }) => {
      const source = repositoryIdOf({ ...place, owner: headOwner ?? place.owner });
      return (
        (of("sourceRefName") ?? `refs/heads/${head}`) === `refs/heads/${head}` &&
        (of("targetRefName") ?? `refs/heads/${base}`) === `refs/heads/${base}` &&
        (of("sourceRepositoryId") ?? source) === source &&
        (wanted === "all" || wanted === { open: "active", merged: "completed", closed: "abandoned" }[is])
      );
    })
    .toReversed();
  const skip = Number(query.get("$skip") ?? 0);
  const items = found.slice(skip, skip + Math.min(Number(query.get("$top") ?? 101), 1_000));
  return azureList(
    items.map((pull) => {
      const headSha = headShaOf(state, place, pull);
      return azurePullShape(state, place, pull, { headSha, mergeable: true, isListed: true });
    }),
  );
}

function listCommits(state: ForgeState, { place, query }: ApiRequest, pull: KeptPullRequest): Answer {
  const commits = commitsOf(bareOf(state, place), headShaOf(state, place, pull), pull).toReversed();
  const from = Number(query.get("continuationToken") ?? 0);
  const size = Math.min(Number(query.get("$top") ?? 100), state.maxResponseItems);
  const more = from + size < commits.length ? { "x-ms-continuationtoken": String(from + size) } : undefined;
  return azureList(
    commits.slice(from, from + size).map((commit) => azureCommitShape(state, place, commit)),
    more,
  );
}

function showCommit(state: ForgeState, place: Place, sha: string): Answer {
  const commit = commitOf(bareOf(state, place), sha);
  if (commit === null)
    return refusedByAzure(404, `TF401174: The commit ${sha} was not found.`, "GitItemNotFoundException");
  return {
    status: 200,
    body: { ...azureCommitShape(state, place, commit), parents: commit.parents, treeId: commit.tree },
  };
}

/** A file with its content, as JSON. */
function showItem(state: ForgeState, { place, query }: ApiRequest): Answer {
  const [path = "", commitId = ""] = [query.get("path"), query.get("versionDescriptor.version")].map(
    (each) => each ?? "",
  );
  const content = fileAt(bareOf(state, place), commitId, path.replace(/^\//u, ""));
  if (content === null)
    return refusedByAzure(404, `TF401174: The item '${path}' could not be found.`, "GitItemNotFoundException");
  const url = `${state.url}/_apis/git/repositories/${repositoryIdOf(place)}/items${path}`;
  const item = { objectId: commitId, gitObjectType: "blob", commitId, path, isFolder: false, content, url, _links: {} };
  return { status: 200, body: item };
}

/** A fork has its branches once it is copied. */
function listRefs(state: ForgeState, { place }: ApiRequest): Answer {
  const { copiedFrom } = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  const sha = state.refs.shaOf(bareOf(state, place), "main");
  if (sha === null || (copiedFrom !== undefined && performance.now() < copiedFrom)) return azureList([]);
  return azureList([azureRefShape(state, place, "main", sha)]);
}

/** Refuses as Azure DevOps does: by the codes that programs which open pull requests there meet. */
function open(state: ForgeState, { place, body }: ApiRequest, pulls: KeptPullRequest[]): Answer {
  const { sourceRefName = "", targetRefName = "", title = "", description } = body;
  const { forkSource, isDraft = false } = body as unknown as {
    forkSource?: { repository: { id: string } };
    isDraft?: boolean;
  };
  const [head = "", base = ""] = [sourceRefName, targetRefName].map((ref) => ref.replace(/^refs\/heads\//u, ""));
  const tooLong = tooLongFor(description);
  if (tooLong !== null) return tooLong;
  if (sourceRefName === head || targetRefName === base || title === "")
    return refusedByAzure(
      400,
      "Invalid argument value.\r\nParameter name: sourceRefName",
      "InvalidArgumentValueException",
    );
  const from = forkSource === undefined ? place : placeById(state, place, forkSource.repository.id);
  if (from === null) return refusedByAzure(404, unknownToAzure, "GitRepositoryNotFoundException");
  const headOwner = from.owner === place.owner ? null : from.owner;
  const cannot =
    "TF401398: The pull request cannot be activated because the source and/or the target branch no longer exists, or the requested refs are not branches";
  const headSha = state.refs.shaOf(bareOf(state, from), head);
  const baseSha = state.refs.shaOf(bareOf(state, place), base);
  if (headSha === null || baseSha === null) return refusedByAzure(400, cannot, "GitPullRequestCannotBeActivated");
  if (headOwner === null && head === base)
    return refusedByAzure(400, "The source and target branch are the same.", "InvalidArgumentValueException");
  const existing = pulls.find(
    (pull) => pull.state === "open" && pull.head === head && pull.headOwner === headOwner && pull.base === base,
  );
  if (existing !== undefined) {
    const words = "TF401179: An active pull request for the source and target branch already exists.";
    return refusedByAzure(409, words, "GitPullRequestExistsException");
  }
  if (headOwner !== null) bringFrom(bareOf(state, place), bareOf(state, from), head);
  const text = { title, base, body: description ?? "", draft: String(isDraft) };
  const opened = addPullRequest(state, pulls, text, { head, headOwner, baseSha });
  return { ...showOne(state, place, opened), status: 201 };
}

function placeById(state: ForgeState, { name, webUrl }: Place, id: string): Place | null {
  return (
    [...state.pulls.keys()]
      .map((key) => ({ webUrl, owner: key.slice(0, key.lastIndexOf("/")), name: key.slice(key.lastIndexOf("/") + 1) }))
      .find((place) => place.name === name && repositoryIdOf(place) === id) ?? null
  );
}

function fork(state: ForgeState, { body, path }: ApiRequest): Answer {
  const wanted = body as unknown as { name?: string; project?: { id: string }; parentRepository?: { id: string } };
  const upstream = [...state.pulls.keys()]
    .map((key) => ({
      webUrl: state.url,
      owner: key.slice(0, key.lastIndexOf("/")),
      name: key.slice(key.lastIndexOf("/") + 1),
    }))
    .find((place) => repositoryIdOf(place) === wanted.parentRepository?.id);
  if (upstream === undefined || wanted.name !== forkName(upstream.name))
    return refusedByAzure(400, `Invalid argument value.\r\nParameter name: ${path}`, "InvalidArgumentValueException");
  if (state.facts.get(`${upstream.owner}/${upstream.name}`)?.allowForking === false) {
    const words = `TF401027: You need the Git 'CreateRepository' permission to perform this action.`;
    return refusedByAzure(403, words, "GitNeedsPermissionException");
  }
  const { fork: made, wasThere } = forkOf(state, upstream);
  if (wasThere) {
    const words = `TF400948: A Git repository with the name ${wanted.name} already exists.`;
    return refusedByAzure(409, words, "GitRepositoryNameAlreadyExistsException");
  }
  const key = `${made.owner}/${made.name}`;
  state.facts.set(key, { ...state.facts.get(key), copiedFrom: performance.now() + nextLagMs(state) });
  return { status: 201, body: repositoryShape(state, made, false) };
}

/** What a request is about, by its path: a repository, or something of a collection. */
export function azureRequestIn(state: ForgeState, pathname: string) {
  const { names, path } = azurePathIn(pathname);
  const place = names === null ? null : azurePlaceOf(state, names);
  return { isInRepository: names !== null, path, place: place ?? { webUrl: state.url, owner: "", name: "" } };
}
