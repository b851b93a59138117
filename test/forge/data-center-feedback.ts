import type { Answer, ApiRequest } from "./api-request.ts";
import { dataCenterPage, refusedByDataCenter } from "./data-center-answers.ts";
import { dataCenterCommentShape, dataCenterUserShape } from "./data-center-shapes.ts";
import {
  addComment,
  addReaction,
  askForChanges,
  beginThread,
  feedbackOf,
  isThere,
  reactionsTo,
  resolveThread,
  setStatus,
  shownComments,
} from "./feedback.ts";
import { tokenUser, type ForgeState, type KeptComment } from "./state.ts";

interface Sent {
  readonly text?: string;
  readonly parent?: { readonly id?: number };
  readonly anchor?: { readonly path: string; readonly line: number };
}

/** The part of Bitbucket Data Center's API for answers; null if a request is for none of it. */
export function answerFeedbackAsDataCenter(state: ForgeState, request: ApiRequest): Answer | null {
  const { place, method, path } = request;
  const [, sha] = /^\/commits\/(\w+)\/builds$/u.exec(path) ?? [];
  if (sha !== undefined && method === "POST") return addBuild(state, request, sha);
  const [, on, emoticon = ""] =
    /^\/~likes\/(pull-requests\/\d+\/comments\/\d+)\/reactions\/([\w-]+)$/u.exec(path) ?? [];
  if (on !== undefined && method === "PUT") {
    addReaction(state, request, on, emoticon);
    return { status: 200, body: { emoticon: { shortcut: emoticon }, user: dataCenterUserShape(tokenUser) } };
  }
  const [, reviewed, slug] = /^\/pull-requests\/(\d+)\/participants\/([^/]+)$/u.exec(path) ?? [];
  if (reviewed !== undefined && method === "PUT") {
    if (slug !== state.asking || !askForChanges(state, request, Number(reviewed), ""))
      return refusedByDataCenter(409, "Authors may not update their status on their own pull request.", null);
    return { status: 200, body: { user: dataCenterUserShape(slug), role: "REVIEWER", status: "NEEDS_WORK" } };
  }
  const [, id = "", kind = "", thread] =
    /^\/pull-requests\/(\d+)\/(activities|comments)(?:\/(\d+))?$/u.exec(path) ?? [];
  if (kind === "") return null;
  if (!isThere(state, place, Number(id), "pull"))
    return refusedByDataCenter(404, `Pull request ${id} does not exist.`, null);
  const shown = shownComments(state, request, Number(id));
  if (kind === "activities") {
    const roots = shown.filter(({ id: own, thread: of }) => of === null || of === String(own)).toReversed();
    const from = request.query.get("fromType") === "COMMENT" ? Number(request.query.get("fromId")) : null;
    const begin = roots.findIndex(({ id: root }) =>
      [root, ...answersTo(shown, root).map((each) => each.id)].includes(from ?? root),
    );
    if (begin === -1 && from !== null) return refusedByDataCenter(404, `No comment ${from}`, null);
    return dataCenterPage(request, roots.slice(Math.max(begin, 0)), (each) =>
      activityShape(each, answersTo(shown, each.id)),
    );
  }
  const { threads = [], resolvesNothing } = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (thread !== undefined) {
    if (!threads.includes(thread)) return refusedByDataCenter(404, `No comment ${thread}`, null);
    if (method === "PUT") {
      const isResolved = feedbackOf(state, place).resolved.has(thread);
      if (Number(request.body["version"]) !== (isResolved ? 1 : 0))
        return refusedByDataCenter(
          409,
          "The comment was changed since it was read.",
          "com.atlassian.bitbucket.comment.CommentOutOfDateException",
        );
      if ((request.body as { threadResolved?: unknown }).threadResolved === true) resolveThread(state, place, thread);
    }
    const isResolved = resolvesNothing === true ? null : feedbackOf(state, place).resolved.has(thread);
    const unsaid = { body: "Words", thread: null, createdAt: "2026-01-01T00:00:00Z", shownFrom: 0 };
    const root = shown.find((each) => each.id === Number(thread)) ?? {
      ...unsaid,
      id: Number(thread),
      number: Number(id),
    };
    const reactions = reactionsTo(state, request, `pull-requests/${id}/comments/${thread}`);
    return { status: 200, body: dataCenterCommentShape(root, answersTo(shown, root.id), { isResolved, reactions }) };
  }
  const { text = "", parent, anchor } = request.body as Sent;
  const to = parent?.id === undefined ? null : String(parent.id);
  if (to !== null && !threads.includes(to)) return refusedByDataCenter(404, `No comment ${to}`, null);
  const begun = anchor === undefined ? to : { path: anchor.path, line: anchor.line, hunk: "" };
  const added = addComment(state, { ...request, body: { body: text } }, Number(id), begun);
  // Each comment can be answered.
  if (begun === null) beginThread(state, place, String(added.id));
  return { status: 201, body: dataCenterCommentShape(added) };
}

function answersTo(shown: readonly KeptComment[], id: number): readonly KeptComment[] {
  return shown.filter((each) => each.thread === String(id) && each.id !== id);
}

function activityShape(comment: KeptComment, answers: readonly KeptComment[]) {
  return {
    id: 10_000 + comment.id,
    createdDate: Date.parse(comment.createdAt),
    user: dataCenterUserShape(tokenUser),
    action: "COMMENTED",
    commentAction: "ADDED",
    comment: dataCenterCommentShape(comment, answers),
    ...(comment.lines !== undefined && {
      commentAnchor: { path: comment.lines.path, line: comment.lines.line, lineType: "ADDED", fileType: "TO" },
    }),
  };
}

function addBuild(state: ForgeState, request: ApiRequest, sha: string): Answer {
  const { key = "", state: shown = "", name = "", description = "", url = "" } = request.body;
  const isLong = key.length > 255 || name.length > 255 || description.length > 255 || url.length > 450;
  if (isLong || key === "" || url === "") return refusedByDataCenter(400, "The build status is too long.", null);
  setStatus(state, request, { sha, name, state: shown, description, url });
  return { status: 204 };
}
