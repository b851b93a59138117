import { pageOf, type Answer, type ApiRequest } from "./api-request.ts";
import {
  addComment,
  askForChanges,
  isThere,
  logOf,
  personOf,
  resolveThread,
  setStatus,
  shownComments,
} from "./feedback.ts";
import { answerJobs, answerReactions } from "./github-form.ts";
import { userShape } from "./gitea-shapes.ts";
import { tokenUser, type ForgeState, type KeptComment, type Place } from "./state.ts";

const began = "2026-01-01T00:00:00Z";

function commentShape({ webUrl, owner, name }: Place, comment: KeptComment) {
  const issue = `${webUrl}/${owner}/${name}/issues/${comment.number}`;
  return {
    id: comment.id,
    html_url: `${issue}#issuecomment-${comment.id}`,
    pull_request_url: "",
    issue_url: issue,
    user: userShape(webUrl, tokenUser),
    original_author: "",
    original_author_id: 0,
    body: comment.body,
    assets: [],
    created_at: comment.createdAt,
    updated_at: comment.createdAt,
  };
}

/** Runs of workflows for a commit. */
function runsShape(state: ForgeState, request: ApiRequest) {
  const { place, query } = request;
  const { runs = {} } = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  const found = Object.entries(runs)
    .filter(([, { sha }]) => sha === (query.get("head_sha") ?? sha))
    .map(([id, { sha, number }]) => ({
      id: Number(id),
      run_number: number,
      head_sha: sha,
      html_url: `${place.webUrl}/${place.owner}/${place.name}/actions/runs/${number}`,
      status: "completed",
      conclusion: "failure",
    }));
  const { items } = pageOf(request, found, { sizeName: "limit", mostItems: state.maxResponseItems, base: "" });
  return { total_count: found.length, workflow_runs: items };
}

/** The part of Gitea's API for answers; null if a request is for none of it. */
export function answerFeedbackAsGitea(
  state: ForgeState,
  request: ApiRequest,
  refused: (status: number, words: string) => Answer,
): Answer | null {
  const { place, method, path, body } = request;
  const notFound = refused(404, "The target couldn't be found.");
  const [, number] = /^\/issues\/(\d+)\/comments$/u.exec(path) ?? [];
  if (number !== undefined) {
    if (!isThere(state, place, Number(number), "any")) return notFound;
    if (method === "POST")
      return { status: 201, body: commentShape(place, addComment(state, request, Number(number), null)) };
    const found = shownComments(state, request, Number(number));
    return { status: 200, body: found.map((comment) => commentShape(place, comment)) };
  }
  const [, resolved] = /^\/pulls\/comments\/(\d+)\/resolve$/u.exec(path) ?? [];
  if (resolved !== undefined && method === "POST") {
    // Before 1.26 there is no such call, which the router says, and not the API.
    if (state.facts.get(`${place.owner}/${place.name}`)?.resolvesNothing === true)
      return { status: 404, text: "Not Found\n" };
    return resolveThread(state, place, resolved) === null ? notFound : { status: 204, text: "" };
  }
  const [, reviewed] = /^\/pulls\/(\d+)\/reviews$/u.exec(path) ?? [];
  if (reviewed !== undefined && method === "POST")
    return askForChanges(state, request, Number(reviewed), body["body"] ?? "")
      ? { status: 200, body: { id: 1, state: "REQUEST_CHANGES" } }
      : refused(422, "reject your own pull is not allowed");
  const [, to] = /^\/(issues\/(?:comments\/)?\d+)\/reactions$/u.exec(path) ?? [];
  if (to !== undefined) {
    const reaction = { user: userShape(place.webUrl, tokenUser), created_at: began };
    return answerReactions(state, request, to, reaction);
  }
  const [, sha] = /^\/statuses\/(\w+)$/u.exec(path) ?? [];
  if (sha !== undefined && method === "POST") {
    const { state: shown = "", context: name = "", description = "", target_url: url = "" } = body;
    setStatus(state, request, { sha, name, state: shown, description, url });
    return {
      status: 201,
      body: {
        id: 1,
        status: shown,
        target_url: url,
        description,
        url: `${place.webUrl}/api/v1/repos/${place.owner}/${place.name}/statuses/${sha}`,
        context: name,
        creator: userShape(place.webUrl, tokenUser),
        created_at: began,
        updated_at: began,
      },
    };
  }
  if (path === "/actions/runs") return { status: 200, body: runsShape(state, request) };
  const [, ciRun] = /^\/actions\/runs\/(\d+)\/jobs$/u.exec(path) ?? [];
  if (ciRun !== undefined) return answerJobs(state, request, ciRun) ?? notFound;
  const [, job] = /^\/actions\/jobs\/(\d+)\/logs$/u.exec(path) ?? [];
  if (job !== undefined) {
    const text = logOf(state, place, job);
    return text === null ? notFound : { status: 200, text };
  }
  const [, login] = /^\/collaborators\/([^/]+)\/permission$/u.exec(path) ?? [];
  if (login === undefined) return null;
  if (state.facts.get(`${place.owner}/${place.name}`)?.tellsRights === false)
    return refused(
      403,
      "Only admins can query all permissions, repo admins can query all repo permissions, collaborators can query only their own",
    );
  const person = personOf(state, place, decodeURIComponent(login));
  if (person === null) return notFound;
  const user = { ...userShape(place.webUrl, person.login), id: person.id };
  return { status: 200, body: { permission: person.permission, role_name: person.permission, user } };
}
