import { pageOf, type Answer, type ApiRequest } from "./api-request.ts";
import {
  addComment,
  addReaction,
  askForChanges,
  feedbackOf,
  idOf,
  isThere,
  listed,
  jobsOf,
  logOf,
  personOf,
  resolveThread,
  reactionsTo,
  setStatus,
  shownComments,
} from "./feedback.ts";
import { changePull } from "./pull-request-fields.ts";
import { gitLabUserShape } from "./gitlab-shapes.ts";
import { tokenUser, type ForgeState, type KeptComment, type Lines, type Place } from "./state.ts";

const began = "2026-01-01T00:00:00.000Z";
const roles = { admin: 40, write: 30, read: 20, none: 0 };

function noteShape({ webUrl }: Place, comment: KeptComment, isIssue: boolean) {
  return {
    id: comment.id,
    type: comment.lines !== undefined ? "DiffNote" : comment.thread === null ? null : "DiscussionNote",
    body: comment.body,
    author: gitLabUserShape(webUrl, tokenUser),
    created_at: comment.createdAt,
    updated_at: comment.createdAt,
    system: false,
    noteable_id: 1_000 + comment.number,
    noteable_type: isIssue ? "Issue" : "MergeRequest",
    project_id: 1,
    noteable_iid: comment.number,
    resolvable: comment.thread !== null,
    confidential: false,
    internal: false,
    imported: false,
    imported_from: "none",
    commands_changes: {},
  };
}

/** The lines of a position; null: GitLab can't find them. */
function linesIn(position: unknown): Lines | null {
  const { new_path: path, new_line: line, ...shas } = (position ?? {}) as Record<string, unknown>;
  const isWhole = ["base_sha", "start_sha", "head_sha"].every((name) => typeof shas[name] === "string");
  if (!isWhole || typeof path !== "string" || !Number.isSafeInteger(line)) return null;
  return { path, line: Number(line), hunk: "@@ -1 +1 @@" };
}

/** The part of GitLab's API for answers; null if a request is for none of it. */
export function answerFeedbackAsGitLab(
  state: ForgeState,
  request: ApiRequest,
  carriedOut: (text: string) => string,
): Answer | null {
  const { place, method, path, body } = request;
  const refused = (status: number, message: unknown): Answer => ({ status, body: { message } });
  const [, kind, iid = "", thread] =
    /^\/(issues|merge_requests)\/(\d+)(?:\/discussions\/(\w+))?\/notes$/u.exec(path) ?? [];
  const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (kind !== undefined) {
    const isIssue = kind === "issues";
    if (!isThere(state, place, Number(iid), isIssue ? "issue" : "pull")) return refused(404, "404 Not found");
    if (method === "GET") {
      const found = shownComments(state, request, Number(iid)).toReversed();
      const base = `/api/v4/projects/${encodeURIComponent(`${place.owner}/${place.name}`)}`;
      const page = pageOf(request, found, { sizeName: "per_page", mostItems: 100, base });
      return listed(page, (each) => noteShape(place, each, isIssue));
    }
    // Each comment is of a thread, and a merge request's may be of lines.
    const isOfComment = feedbackOf(state, place).comments.some(
      ({ id, number }) => `${id} ${number}` === `${thread} ${iid}`,
    );
    if (thread !== undefined && !isOfComment && facts.threads?.includes(thread) !== true)
      return refused(404, "404 Discussion Not Found");
    const text = carriedOut(body["body"] ?? "");
    // Of commands alone it makes no note.
    if (text === "") {
      carryOut(state, request, Number(iid));
      return { status: 202, body: { commands_changes: {}, summary: ["Done."] } };
    }
    const added = addComment(state, { ...request, body: { body: text } }, Number(iid), thread ?? null);
    return { status: 201, body: noteShape(place, added, isIssue) };
  }
  const [, onLines] = /^\/merge_requests\/(\d+)\/discussions$/u.exec(path) ?? [];
  if (onLines !== undefined && method === "POST") {
    if (!isThere(state, place, Number(onLines), "pull")) return refused(404, "404 Not found");
    const lines = linesIn(body["position"]);
    if (lines === null) return refused(400, "400 Bad request - Note line_code can't be blank");
    const text = carriedOut(body["body"] ?? "");
    const added = addComment(state, { ...request, body: { body: text } }, Number(onLines), lines);
    return {
      status: 201,
      body: { id: String(added.id), individual_note: false, notes: [noteShape(place, added, false)] },
    };
  }
  const [, discussion] = /^\/merge_requests\/\d+\/discussions\/(\w+)$/u.exec(path) ?? [];
  if (discussion !== undefined && method === "GET") {
    const notes = feedbackOf(state, place).comments.filter((each) => each.thread === discussion);
    if (notes.length === 0) return refused(404, "404 Discussion Not Found");
    return {
      status: 200,
      body: { id: discussion, individual_note: false, notes: notes.map((each) => noteShape(place, each, false)) },
    };
  }
  if (discussion !== undefined && method === "PUT") {
    if (resolveThread(state, place, discussion) === null) return refused(404, "404 Discussion Not Found");
    const root = { id: 1, number: 1, body: "Words", thread: discussion, createdAt: began, shownFrom: 0 };
    const note = {
      ...noteShape(place, root, false),
      resolved: true,
      resolved_by: gitLabUserShape(place.webUrl, tokenUser),
    };
    return { status: 200, body: { id: discussion, individual_note: false, notes: [{ ...note, resolved_at: began }] } };
  }
  const [, to] = /^\/((?:issues|merge_requests)\/\d+(?:\/notes\/\d+)?)\/award_emoji$/u.exec(path) ?? [];
  if (to !== undefined) {
    if (method === "GET")
      return { status: 200, body: reactionsTo(state, request, to).map((name) => ({ id: 1, name })) };
    const name = body["name"] ?? "";
    if (addReaction(state, request, to, name))
      return refused(404, "404 Award Emoji Name has already been taken Not Found");
    const user = gitLabUserShape(place.webUrl, tokenUser);
    const about = { awardable_id: 1, awardable_type: to.includes("notes") ? "Note" : "MergeRequest", url: null };
    return { status: 201, body: { id: 1, name, user, created_at: began, updated_at: began, ...about } };
  }
  const [, sha] = /^\/statuses\/(\w+)$/u.exec(path) ?? [];
  if (sha !== undefined && method === "POST") return addStatus(state, request, sha);
  const [, pipeline] = /^\/pipelines\/(\d+)\/jobs$/u.exec(path) ?? [];
  if (pipeline !== undefined) {
    const jobs = jobsOf(state, place, pipeline);
    return jobs === null
      ? { status: 404, body: { message: "404 Not found" } }
      : { status: 200, body: jobs.map((each) => failedJobShape(each, facts.allowedJobs)) };
  }
  const [, job] = /^\/jobs\/(\d+)\/trace$/u.exec(path) ?? [];
  if (job !== undefined) {
    const text = logOf(state, place, job);
    return text === null ? refused(404, "404 Not found") : { status: 200, text };
  }
  const [, id] = /^\/members\/all\/(\d+)$/u.exec(path) ?? [];
  if (id === undefined) return null;
  if (facts.tellsRights === false) return refused(403, "403 Forbidden");
  const login = Object.keys(facts.people ?? {}).find((name) => idOf(name) === Number(id));
  const person = login === undefined ? null : personOf(state, place, login);
  if (person === null || person.permission === "none") return refused(404, "404 Not found");
  const user = gitLabUserShape(place.webUrl, person.login, person.id);
  const member = { access_level: roles[person.permission], created_at: began, expires_at: null };
  return { status: 200, body: { ...user, ...member, membership_state: "active" } };
}

function failedJobShape(job: { readonly id: number; readonly name: string }, allowed: readonly string[] = []) {
  return { ...job, status: "failed", allow_failure: allowed.includes(String(job.id)) };
}

/** Only who is a reviewer has a say. */
function carryOut(state: ForgeState, request: ApiRequest, number: number): void {
  const { place, body } = request;
  if (body["body"] === "/assign_reviewer me")
    changePull(state, place, number, ({ reviewers }) => ({ reviewers: [...(reviewers ?? []), state.asking] }));
  const pull = state.pulls.get(`${place.owner}/${place.name}`)?.find((each) => each.number === number);
  if (body["body"] === "/submit_review requested_changes" && pull?.reviewers?.includes(state.asking) === true)
    askForChanges(state, request, number, "");
}

/** A status that is the same already is no transition. */
function addStatus(state: ForgeState, request: ApiRequest, sha: string): Answer {
  const { state: shown = "", name = "", description = "", target_url: url = "" } = request.body;
  const before = setStatus(state, request, { sha, name, state: shown, description, url });
  if (before?.state === shown && shown === "running")
    return {
      status: 400,
      body: {
        message: 'Cannot transition status via :run from :running (Reason(s): Status cannot transition via "run")',
      },
    };
  const author = gitLabUserShape(request.place.webUrl, tokenUser);
  const times = { created_at: began, started_at: null, finished_at: null };
  const rest = { allow_failure: false, coverage: null, pipeline_id: 1, author };
  return {
    status: 201,
    body: { id: 1, sha, ref: "main", status: shown, name, target_url: url, description, ...times, ...rest },
  };
}
