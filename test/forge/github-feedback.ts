import { pageOf, type Answer, type ApiRequest } from "./api-request.ts";
import { addComment, askForChanges, isThere, listed, logOf, personOf, setStatus, shownComments } from "./feedback.ts";
import { answerJobs, answerReactions } from "./github-form.ts";
import { userShape } from "./github-shapes.ts";
import { tokenUser, type ForgeState, type KeptComment, type KeptStatus, type Lines, type Place } from "./state.ts";

const began = "2026-01-01T00:00:00Z";

function commentShape({ webUrl, owner, name }: Place, comment: KeptComment) {
  const repository = `${webUrl}/api/v3/repos/${owner}/${name}`;
  return {
    id: comment.id,
    node_id: `IC_${comment.id}`,
    url: `${repository}/issues/comments/${comment.id}`,
    html_url: `${webUrl}/${owner}/${name}/issues/${comment.number}#issuecomment-${comment.id}`,
    issue_url: `${repository}/issues/${comment.number}`,
    body: comment.body,
    user: userShape(webUrl, tokenUser),
    created_at: comment.createdAt,
    updated_at: comment.createdAt,
    author_association: "MEMBER",
  };
}

function reviewCommentShape(place: Place, comment: KeptComment) {
  const { webUrl, owner, name } = place;
  const repository = `${webUrl}/api/v3/repos/${owner}/${name}`;
  const { id, html_url: html, issue_url: _, ...shared } = commentShape(place, comment);
  const url = `${repository}/pulls/comments/${id}`;
  const pull = `${repository}/pulls/${comment.number}`;
  return {
    ...shared,
    id,
    url,
    html_url: html,
    pull_request_review_id: 1,
    pull_request_url: pull,
    ...(comment.thread !== String(id) && { in_reply_to_id: Number(comment.thread) }),
    diff_hunk: "@@ -1 +1 @@",
    path: comment.lines?.path ?? "a.txt",
    commit_id: "0".repeat(40),
    original_commit_id: "0".repeat(40),
    _links: { self: { href: url }, html: { href: html }, pull_request: { href: pull } },
  };
}

function statusShape({ webUrl, owner, name }: Place, { sha, name: context, ...status }: KeptStatus) {
  return {
    id: 1,
    node_id: "SC_1",
    url: `${webUrl}/api/v3/repos/${owner}/${name}/statuses/${sha}`,
    avatar_url: null,
    state: status.state,
    description: status.description,
    target_url: status.url,
    context,
    created_at: began,
    updated_at: began,
    creator: userShape(webUrl, tokenUser),
  };
}

/** The part of GitHub's API for answers; null if a request is for none of it. */
export function answerFeedbackAsGitHub(state: ForgeState, request: ApiRequest, notFound: Answer): Answer | null {
  const { place, method, path, body } = request;
  const base = `/api/v3/repos/${place.owner}/${place.name}`;
  const page = (found: readonly KeptComment[]) =>
    pageOf(request, found, { sizeName: "per_page", mostItems: 100, base });

  const [, kind, number = "", thread] = /^\/(issues|pulls)\/(\d+)\/comments(?:\/(\d+)\/replies)?$/u.exec(path) ?? [];
  if (kind !== undefined) {
    const isPulls = kind === "pulls";
    if (!isThere(state, place, Number(number), isPulls ? "pull" : "any")) return notFound;
    if (method === "GET") {
      const found = shownComments(state, request, Number(number)).filter((each) => (each.thread !== null) === isPulls);
      // Only the list of comments on lines has a direction.
      const isNewestFirst = isPulls && request.query.get("direction") === "desc";
      return listed(page(isNewestFirst ? found.toReversed() : found), (each) =>
        (isPulls ? reviewCommentShape : commentShape)(place, each),
      );
    }
    const lines = isPulls && thread === undefined ? linesIn(body) : null;
    if (lines === undefined) return { status: 422, body: { message: "Validation Failed" } };
    if (thread !== undefined && (!isPulls || !hasThread(state, place, thread))) return notFound;
    const added = addComment(state, request, Number(number), lines ?? thread ?? null);
    return { status: 201, body: (isPulls ? reviewCommentShape : commentShape)(place, added) };
  }
  const [, reviewed] = /^\/pulls\/(\d+)\/reviews$/u.exec(path) ?? [];
  if (reviewed !== undefined && method === "POST") {
    const words = "Review Can not request changes on your own pull request";
    return askForChanges(state, request, Number(reviewed), body["body"] ?? "")
      ? { status: 200, body: { id: 1, state: "CHANGES_REQUESTED" } }
      : { status: 422, body: { message: "Unprocessable Entity", errors: [words] } };
  }
  const [, to] = /^\/(issues\/\d+|(?:issues|pulls)\/comments\/\d+)\/reactions$/u.exec(path) ?? [];
  if (to !== undefined) {
    const reaction = { id: 1, node_id: "R_1", user: userShape(place.webUrl, tokenUser), created_at: began };
    return answerReactions(state, request, to, reaction);
  }
  const [, sha] = /^\/statuses\/(\w+)$/u.exec(path) ?? [];
  if (sha !== undefined && method === "POST") {
    const { state: shown = "", context: name = "", description = "", target_url: url = "" } = body;
    const status = { sha, name, state: shown, description, url };
    setStatus(state, request, status);
    return { status: 201, body: statusShape(place, status) };
  }
  const [, ciRun] = /^\/actions\/runs\/(\d+)\/jobs$/u.exec(path) ?? [];
  if (ciRun !== undefined) return answerJobs(state, request, ciRun) ?? notFound;
  const [, job] = /^\/actions\/jobs\/(\d+)\/logs$/u.exec(path) ?? [];
  if (job !== undefined) {
    if (logOf(state, place, job) === null) return notFound;
    return { status: 302, headers: { Location: `${state.url}/logs/${place.owner}/${place.name}/${job}` }, text: "" };
  }
  const [, login] = /^\/collaborators\/([^/]+)\/permission$/u.exec(path) ?? [];
  if (login === undefined) return null;
  const person = personOf(state, place, decodeURIComponent(login));
  if (person === null) return notFound;
  const user = { ...userShape(place.webUrl, person.login), id: person.id, role_name: person.permission };
  return { status: 200, body: { permission: person.permission, role_name: person.permission, user } };
}

/** The lines that a comment is to begin a thread on; undefined: GitHub does not know which. */
function linesIn({ path, line, side, commit_id: sha }: ApiRequest["body"]): Lines | undefined {
  if (path === undefined || sha === undefined || side !== "RIGHT" || !Number.isSafeInteger(line)) return undefined;
  return { path, line: Number(line), hunk: "@@ -1 +1 @@" };
}

function hasThread(state: ForgeState, { owner, name }: Place, thread: string): boolean {
  return state.facts.get(`${owner}/${name}`)?.threads?.includes(thread) === true;
}
