import { bitbucketAccountShape, bitbucketPullRequestShape, shortRepositoryShape } from "../bitbucket-shapes.ts";
import { idOf } from "../feedback.ts";
import type { Place } from "../state.ts";
import type { Delivered, Told, ToldPullRequest } from "./told.ts";

/** A happening as Bitbucket Cloud delivers it (https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/). */
export function toldAsBitbucket(told: Told): Delivered | null {
  const { place, by } = told;
  const around = { actor: account(by), repository: repositoryOf(place) };
  switch (told.type) {
    case "comment": {
      const on =
        told.pull === null
          ? { issue: issueShape(place, told.comment.number) }
          : { pullrequest: pullShape(place, told.pull) };
      const event = told.pull === null ? "issue:comment_created" : "pullrequest:comment_created";
      return { event, payload: { ...around, ...on, comment: commentShape(told) } };
    }
    // A vote without words: these are comments.
    case "review": {
      const vote = { date: new Date().toISOString(), user: account(by) };
      const payload = { ...around, pullrequest: pullShape(place, told.pull), changes_request: vote };
      return { event: "pullrequest:changes_request_created", payload };
    }
    case "checks": {
      const { id, sha, branch, conclusion } = told.run;
      const url = `${webOf(place)}/pipelines/results/${id}`;
      const state = conclusion === "success" ? "SUCCESSFUL" : "FAILED";
      const status = {
        key: `pipeline-${id}`,
        name: `Pipeline #${id}`,
        state,
        url,
        refname: branch,
        commit: { hash: sha },
      };
      return { event: "repo:commit_status_updated", payload: { ...around, commit_status: status } };
    }
    case "status": {
      const { sha, name, state, url } = told.status;
      const status = { key: name, name, state, url, refname: null, commit: { hash: sha } };
      return { event: "repo:commit_status_created", payload: { ...around, commit_status: status } };
    }
    case "push": {
      const { branch, before, after } = told;
      const at = (hash: string) => ({ type: "branch", name: branch, target: { type: "commit", hash } });
      const change = {
        old: before === null ? null : at(before),
        new: at(after),
        created: before === null,
        closed: false,
      };
      return { event: "repo:push", payload: { ...around, push: { changes: [{ ...change, commits: [] }] } } };
    }
    case "edited":
      return { event: "pullrequest:updated", payload: { ...around, pullrequest: pullShape(place, told.pull) } };
    case "ended": {
      const event = told.pull.state === "merged" ? "pullrequest:fulfilled" : "pullrequest:rejected";
      return { event, payload: { ...around, pullrequest: pullShape(place, told.pull) } };
    }
  }
}

const webOf = ({ webUrl, owner, name }: Place): string => `${webUrl}/${owner}/${name}`;

const account = (login: string) => ({
  ...bitbucketAccountShape(login, String(idOf(login))),
  ...(login.endsWith("[bot]") && { type: "app_user" }),
});

function repositoryOf(place: Place) {
  return { ...shortRepositoryShape(place), mainbranch: { type: "branch", name: "main" } };
}

function pullShape(place: Place, pull: ToldPullRequest) {
  const shape = bitbucketPullRequestShape(place, pull, { sha: pull.headSha, isOne: true });
  return { ...shape, links: { html: { href: `${webOf(place)}/pull-requests/${pull.number}` } } };
}

function issueShape(place: Place, number: number) {
  const links = { html: { href: `${webOf(place)}/issues/${number}` } };
  return {
    type: "issue",
    id: number,
    title: "It breaks",
    content: { raw: "" },
    state: "new",
    reporter: account("ann"),
    links,
  };
}

/** Each comment begins a thread, or names the one that it answers. */
function commentShape({ place, by, comment, lines }: Extract<Told, { type: "comment" }>) {
  const { id, body, thread } = comment;
  return {
    id,
    content: { raw: body },
    user: account(by),
    ...(thread !== null && thread !== String(id) && { parent: { id: Number(thread) } }),
    ...(lines !== null && { inline: { path: lines.path, from: null, to: lines.line } }),
    links: { html: { href: `${webOf(place)}#comment-${id}` } },
  };
}
