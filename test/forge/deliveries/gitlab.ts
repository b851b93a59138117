import { idOf } from "../feedback.ts";
import { tokenUser, type Place } from "../state.ts";
import type { Delivered, Told, ToldPullRequest } from "./told.ts";

/** A happening as GitLab delivers it (https://docs.gitlab.com/user/project/integrations/webhook_events/). */
export function toldAsGitLab(told: Told): Delivered {
  const { place, by } = told;
  const around = { user: user(by), project: projectOf(place) };
  switch (told.type) {
    case "comment":
      return { event: "Note Hook", payload: { object_kind: "note", ...around, ...noteOf(told) } };
    case "review": {
      const reviewer = (state: string) => [{ ...user(by), state, re_requested: false }];
      const changes = { reviewers: { previous: reviewer("review_started"), current: reviewer("requested_changes") } };
      const object = { ...mergeRequest(place, told.pull), action: "update" };
      return { event: "Merge Request Hook", payload: mergeRequestPayload(around, object, changes) };
    }
    case "checks": {
      const { id, branch, conclusion } = told.run;
      const sha = told.mergedSha ?? told.run.sha;
      const ended = { status: conclusion === "success" ? "success" : "failed", finished_at: now() };
      const object = { id, iid: id, name: "build", ref: branch, tag: false, sha, ...ended };
      const into = told.pull === null ? null : mergeRequest(place, told.pull);
      return {
        event: "Pipeline Hook",
        payload: { object_kind: "pipeline", object_attributes: object, merge_request: into, ...around, builds: [] },
      };
    }
    // It makes a pipeline of its own for what other programs check.
    case "status": {
      const { sha, state, name } = told.status;
      const object = { id: idOf(`pipeline ${sha}`), ref: "", tag: false, sha, status: state, finished_at: now() };
      const payload = {
        object_kind: "pipeline",
        object_attributes: object,
        merge_request: null,
        ...around,
        builds: [{ id: idOf(`build ${sha}`), stage: "external", name, status: state, manual: false }],
      };
      return { event: "Pipeline Hook", payload };
    }
    case "push": {
      const { branch, before, after } = told;
      const pusher = { user_id: idOf(by), user_username: by };
      const change = { before: before ?? "0".repeat(40), after, ref: `refs/heads/${branch}`, commits: [] };
      return {
        event: "Push Hook",
        payload: { object_kind: "push", ...pusher, ...change, project: around.project },
      };
    }
    case "edited": {
      const object = { ...mergeRequest(place, told.pull), action: "update" };
      const changes = { description: { previous: told.before, current: told.pull.body } };
      return { event: "Merge Request Hook", payload: mergeRequestPayload(around, object, changes) };
    }
    case "ended": {
      const action = told.pull.state === "merged" ? "merge" : "close";
      const object = { ...mergeRequest(place, told.pull), action };
      return { event: "Merge Request Hook", payload: mergeRequestPayload(around, object, {}) };
    }
  }
}

function mergeRequestPayload(around: object, object: object, changes: object): object {
  const lists = { labels: [], assignees: [], reviewers: [] };
  return { object_kind: "merge_request", object_attributes: object, ...lists, changes, ...around };
}

/** Comments are of a thread each; GitLab calls them discussions. */
function noteOf({ place, comment, pull, lines }: Extract<Told, { type: "comment" }>): object {
  const page = pull === null ? `issues/${comment.number}` : `merge_requests/${pull.number}`;
  const attributes = {
    id: comment.id,
    note: comment.body,
    noteable_type: pull === null ? "Issue" : "MergeRequest",
    action: "create",
    system: false,
    discussion_id: comment.thread ?? String(comment.id),
    url: `${webOf(place)}/-/${page}#note_${comment.id}`,
    position: lines === null ? null : { new_path: lines.path, new_line: lines.line },
    st_diff: lines === null ? null : { diff: lines.hunk, new_path: lines.path },
  };
  return {
    object_attributes: attributes,
    ...(pull === null ? { issue: issueOf(comment.number) } : { merge_request: mergeRequest(place, pull) }),
  };
}

const now = (): string => new Date().toISOString();

const webOf = ({ webUrl, owner, name }: Place): string => `${webUrl}/${owner}/${name}`;

const user = (login: string) => ({ id: idOf(login), name: login, username: login });

function projectOf(place: Place) {
  return { id: 1, web_url: webOf(place), path_with_namespace: `${place.owner}/${place.name}`, default_branch: "main" };
}

function issueOf(number: number) {
  const words = { title: "It breaks", description: "", state: "opened" };
  return { id: 300 + number, iid: number, ...words, author_id: idOf("ann"), updated_at: now() };
}

const states = { open: "opened", closed: "closed", merged: "merged" } as const;

function mergeRequest(place: Place, pull: ToldPullRequest) {
  return {
    id: 1_000 + pull.number,
    iid: pull.number,
    title: pull.title,
    description: pull.body,
    state: states[pull.state],
    author_id: idOf(tokenUser),
    source_branch: pull.head,
    target_branch: pull.base,
    source_project_id: 1,
    target_project_id: 1,
    draft: false,
    updated_at: now(),
    source: projectOf(place),
    last_commit: { id: pull.headSha },
  };
}
