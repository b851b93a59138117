import { idOf } from "../feedback.ts";
import { tokenUser, type CheckRun, type Place } from "../state.ts";
import { numberOf, type Delivered, type Told, type ToldPullRequest } from "./told.ts";

/** As GitHub's, but for reviews, which have names and bodies of their own. */
export function toldAsGitea(told: Told): Delivered {
  const { event, payload } = toldAsGitHub(told);
  if (told.type === "checks") {
    const url = `${webOf(told.place)}/actions/runs/${numberOf(told.run)}`;
    const run = { ...runShape(told.place, told.run, told.pull), html_url: url };
    return { event, payload: { ...payload, workflow_run: run } };
  }
  if (told.type !== "review") return { event, payload };
  const review = { type: "pull_request_review_rejected", content: told.body };
  return { event: "pull_request_rejected", payload: { ...payload, action: "reviewed", review } };
}

/** A happening as GitHub delivers it; Gitea's bodies agree in most that is used here. */
export function toldAsGitHub(told: Told): Delivered {
  const { place, by } = told;
  const around = { repository: repositoryOf(place), sender: user(by) };
  switch (told.type) {
    case "comment":
      return commented(told, around);
    case "review": {
      const review = {
        id: told.id,
        user: user(by),
        body: told.body,
        state: "changes_requested",
        html_url: `${webOf(place)}/pull/${told.pull.number}#pullrequestreview-${told.id}`,
      };
      const payload = { action: "submitted", review, pull_request: pullShape(place, told.pull), ...around };
      return { event: "pull_request_review", payload };
    }
    case "checks":
      return {
        event: "workflow_run",
        payload: { action: "completed", workflow_run: runShape(place, told.run, told.pull), ...around },
      };
    case "status": {
      const { sha, name: context, state, description, url } = told.status;
      const words = { context, state, description, target_url: url === "" ? null : url };
      return { event: "status", payload: { id: idOf(`${sha} ${context}`), sha, ...words, branches: [], ...around } };
    }
    case "push": {
      const { branch, before, after } = told;
      const change = { before: before ?? "0".repeat(40), after, created: before === null, deleted: false, commits: [] };
      return { event: "push", payload: { ref: `refs/heads/${branch}`, ...change, ...around } };
    }
    case "edited": {
      const changes = { body: { from: told.before } };
      const payload = { action: "edited", changes, pull_request: pullShape(place, told.pull), ...around };
      return { event: "pull_request", payload };
    }
    case "ended": {
      const ended = { ...pullShape(place, told.pull), closed_at: new Date().toISOString() };
      return { event: "pull_request", payload: { action: "closed", pull_request: ended, ...around } };
    }
  }
}

function commented(
  { place, by, comment, pull, lines, reviewId }: Extract<Told, { type: "comment" }>,
  around: object,
): Delivered {
  const given = {
    id: comment.id,
    body: comment.body,
    html_url: `${webOf(place)}#${comment.id}`,
    user: user(by),
  };
  if (pull !== null && (lines !== null || comment.thread !== null)) {
    const { path, line, hunk } = lines ?? { path: "", line: 1, hunk: "" };
    const isReply = comment.thread !== null && comment.thread !== String(comment.id);
    const on = {
      ...given,
      path,
      line,
      diff_hunk: hunk,
      pull_request_review_id: reviewId ?? comment.id + 10_000,
      ...(isReply && { in_reply_to_id: Number(comment.thread) }),
    };
    const payload = { action: "created", comment: on, pull_request: pullShape(place, pull), ...around };
    return { event: "pull_request_review_comment", payload };
  }
  const issue = pull === null ? issueShape(place, comment.number) : issueOf(place, pull);
  return {
    event: "issue_comment",
    payload: { action: "created", issue, comment: given, is_pull: pull !== null, ...around },
  };
}

const webOf = ({ webUrl, owner, name }: Place): string => `${webUrl}/${owner}/${name}`;

const user = (login: string) => ({ id: idOf(login), login, type: login.endsWith("[bot]") ? "Bot" : "User" });

function repositoryOf(place: Place) {
  const full = { html_url: webOf(place), full_name: `${place.owner}/${place.name}` };
  return { id: 1, ...full, default_branch: "main" };
}

function issueShape(place: Place, number: number) {
  const url = `${webOf(place)}/issues/${number}`;
  return { id: number, number, title: "It breaks", body: "", html_url: url, state: "open", user: user("ann") };
}

/** A pull request as comments on it have it: an issue, too. */
function issueOf(place: Place, pull: ToldPullRequest) {
  const about = { html_url: `${webOf(place)}/pull/${pull.number}`, merged_at: null };
  return { ...pullShape(place, pull), pull_request: about };
}

function runShape(place: Place, { id, sha, branch, conclusion }: CheckRun, pull: ToldPullRequest | null) {
  return {
    id,
    name: "build",
    html_url: `${place.webUrl}/runs/${id}`,
    head_sha: sha,
    run_attempt: 1,
    conclusion,
    head_branch: branch,
    pull_requests: pull === null ? [] : [{ number: pull.number, base: { repo: { id: 1 } } }],
    head_repository: { id: 1 },
  };
}

function pullShape(place: Place, pull: ToldPullRequest) {
  const url = webOf(place);
  return {
    id: pull.number,
    number: pull.number,
    title: pull.title,
    body: pull.body,
    html_url: `${url}/pull/${pull.number}`,
    state: pull.state === "open" ? "open" : "closed",
    merged: pull.state === "merged",
    merged_at: pull.state === "merged" ? new Date().toISOString() : null,
    head: { ref: pull.head, sha: pull.headSha, repo: { html_url: url } },
    base: { ref: pull.base },
    user: user(tokenUser),
  };
}
