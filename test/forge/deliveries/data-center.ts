import { dataCenterPullRequestShape, dataCenterUserShape, keyOf } from "../data-center-shapes.ts";
import type { Place } from "../state.ts";
import type { Delivered, Told, ToldPullRequest } from "./told.ts";

/**
 * A happening as Bitbucket Data Center delivers it
 * (https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html).
 */
export function toldAsDataCenter(told: Told): Delivered | null {
  const { place, by } = told;
  const around = { date: new Date().toISOString(), actor: user(by) };
  switch (told.type) {
    case "comment": {
      // It has no issues.
      if (told.pull === null) return null;
      const { id, body, thread } = told.comment;
      const { lines } = told;
      const anchor =
        lines === null ? {} : { anchor: { path: lines.path, line: lines.line, lineType: "ADDED", fileType: "TO" } };
      const isReply = thread !== null && thread !== String(id);
      const comment = { id, version: 0, text: body, author: user(by), comments: [], ...anchor };
      const parent = isReply ? { commentParentId: Number(thread) } : {};
      return {
        event: "pr:comment:added",
        payload: { ...around, pullRequest: pullShape(place, told.pull), comment, ...parent },
      };
    }
    // A vote without words: these are comments.
    case "review": {
      const participant = { user: user(by), role: "REVIEWER", approved: false, status: "NEEDS_WORK" };
      const payload = {
        ...around,
        pullRequest: pullShape(place, told.pull),
        participant,
        previousStatus: "UNAPPROVED",
      };
      return { event: "pr:reviewer:changes_requested", payload };
    }
    // It delivers no builds.
    case "checks":
    case "status":
      return null;
    case "push": {
      const { branch, before, after } = told;
      const ref = { id: `refs/heads/${branch}`, displayId: branch, type: "BRANCH" };
      const fromHash = before ?? "0".repeat(40);
      const change = { ref, refId: ref.id, fromHash, toHash: after, type: before === null ? "ADD" : "UPDATE" };
      return { event: "repo:refs_changed", payload: { ...around, repository: repositoryOf(place), changes: [change] } };
    }
    case "edited": {
      const pullRequest = pullShape(place, told.pull);
      return { event: "pr:modified", payload: { ...around, pullRequest, previousDescription: told.before } };
    }
    case "ended": {
      const event = told.pull.state === "merged" ? "pr:merged" : "pr:declined";
      const ended = { ...pullShape(place, told.pull), closedDate: Date.now() };
      return { event, payload: { ...around, pullRequest: ended } };
    }
  }
}

const user = (login: string) => ({
  ...dataCenterUserShape(login),
  ...(login.endsWith("[bot]") && { type: "SERVICE" }),
});

/** With its address, as deliveries have it since version 7. */
function repositoryOf({ webUrl, owner, name }: Place) {
  const key = keyOf(owner);
  const home = key.startsWith("~") ? `users/${key.slice(1)}` : `projects/${key}`;
  const type = key.startsWith("~") ? "PERSONAL" : "NORMAL";
  return {
    slug: name,
    id: 1,
    name,
    project: { key, id: 1, name: owner, type },
    links: { self: [{ href: `${webUrl}/${home}/repos/${name}/browse` }] },
  };
}

function pullShape(place: Place, pull: ToldPullRequest) {
  const { fromRef, toRef, ...shape } = dataCenterPullRequestShape(place, pull, pull.headSha);
  const repository = repositoryOf(place);
  return { ...shape, fromRef: { ...fromRef, repository }, toRef: { ...toRef, repository } };
}
