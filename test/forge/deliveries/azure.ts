import { azureNamesOf, guidOf, projectIdOf, repositoryIdOf } from "../azure-places.ts";
import { tokenUser, type Place } from "../state.ts";
import type { Delivered, Told, ToldPullRequest } from "./told.ts";

/**
 * A happening as Azure DevOps delivers it (https://learn.microsoft.com/azure/devops/service-hooks/events). Its event is
 * named in the body.
 */
export function toldAsAzure(told: Told): Delivered | null {
  const { place, by } = told;
  switch (told.type) {
    case "comment":
      return told.pull === null
        ? workItemCommented(told)
        : envelope(place, "ms.vss-code.git-pullrequest-comment-event", "", {
            comment: commentShape(told),
            pullRequest: pullShape(place, told.pull),
          });
    // A vote without words: these are comments. Who voted is in the message alone.
    case "review": {
      const words = `${by} is waiting for the author on pull request ${told.pull.number} (${told.pull.title})`;
      const reviewers = [{ ...identity(by), vote: -5 }];
      const resource = { ...pullShape(place, told.pull), reviewers };
      return envelope(place, "git.pullrequest.updated", words, resource);
    }
    case "checks": {
      const { id, conclusion, sha, branch } = told.run;
      const merged = { sourceBranch: `refs/pull/${told.pull?.number}/merge`, sourceVersion: told.mergedSha };
      const own = { sourceBranch: `refs/heads/${branch}`, sourceVersion: sha };
      return envelope(place, "build.complete", "", {
        id,
        buildNumber: `20261120.${id}`,
        status: "completed",
        result: conclusion === "success" ? "succeeded" : "failed",
        finishTime: new Date().toISOString(),
        definition: { name: "CI" },
        repository: { id: repositoryIdOf(place), type: "TfsGit", name: place.name, url: urlOf(place) },
        project: { id: projectIdOf(namesOf(place)) },
        _links: { web: { href: `${place.webUrl}/_build/results?buildId=${id}` } },
        ...(told.mergedSha === null ? own : merged),
      });
    }
    // Only its builds are delivered.
    case "status":
      return null;
    case "push": {
      const { branch, before, after } = told;
      const update = { name: `refs/heads/${branch}`, oldObjectId: before ?? "0".repeat(40), newObjectId: after };
      const resource = {
        refUpdates: [update],
        commits: [],
        repository: repositoryOf(place),
        pushedBy: identity(by),
      };
      return envelope(place, "git.push", "", resource);
    }
    case "edited": {
      const words = `${by} updated the description of pull request ${told.pull.number}`;
      return envelope(place, "git.pullrequest.updated", words, pullShape(place, told.pull));
    }
    case "ended": {
      const words = `${by} ${told.pull.state === "merged" ? "completed" : "abandoned"} pull request ${told.pull.number}`;
      const resource = { ...pullShape(place, told.pull), closedDate: new Date().toISOString() };
      return envelope(place, "git.pullrequest.updated", words, resource);
    }
  }
}

/** Of a repository that is no fork. */
const namesOf = (place: Place) => azureNamesOf({ facts: new Map() }, place);

function envelope(place: Place, eventType: string, text: string, resource: object): Delivered {
  const collection = { id: guidOf("collection"), baseUrl: `${place.webUrl}/${namesOf(place).collection}/` };
  const project = { id: projectIdOf(namesOf(place)) };
  const told = { eventType, publisherId: "tfs", message: { text }, resource, resourceVersion: "1.0" };
  const resourceContainers = { collection, project };
  return { event: eventType, payload: { ...told, resourceContainers, createdDate: new Date().toISOString() } };
}

/** Its people are named as text, and what they write is HTML. */
function workItemCommented({ place, by, comment }: Extract<Told, { type: "comment" }>): Delivered {
  const { collection, project } = namesOf(place);
  const html = comment.body.startsWith("<")
    ? comment.body
    : `<div>${comment.body.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\n", "<br>")}</div>`;
  const fields = {
    "System.TeamProject": project,
    "System.Title": "It breaks",
    "System.Description": "",
    "System.State": "New",
    "System.CreatedBy": `ann <ann@example.com>`,
    "System.ChangedBy": `${by} <${by}@example.com>`,
    "System.History": html,
  };
  const url = `${place.webUrl}/${collection}/_apis/wit/workItems/${comment.number}`;
  const commentVersionRef = { commentId: comment.id, version: 1 };
  return envelope(place, "workitem.commented", "", {
    id: comment.number,
    rev: comment.id,
    fields,
    url,
    commentVersionRef,
  });
}

const identity = (login: string) => ({
  id: guidOf(`person ${login}`),
  displayName: login,
  uniqueName: login.endsWith("[bot]") ? `Build\\${guidOf(login)}` : `${login}@example.com`,
});

function urlOf(place: Place): string {
  const { collection, project, repository } = namesOf(place);
  return `${place.webUrl}/${collection}/${project}/_git/${repository}`;
}

function repositoryOf(place: Place) {
  const names = namesOf(place);
  const project = { id: projectIdOf(names), name: names.project };
  const url = urlOf(place);
  return {
    id: repositoryIdOf(place),
    name: names.repository,
    url,
    remoteUrl: url,
    project,
    defaultBranch: "refs/heads/main",
  };
}

function pullShape(place: Place, pull: ToldPullRequest) {
  return {
    repository: repositoryOf(place),
    pullRequestId: pull.number,
    status: { open: "active", merged: "completed", closed: "abandoned" }[pull.state],
    isDraft: pull.draft ?? false,
    createdBy: identity(tokenUser),
    title: pull.title,
    description: pull.body,
    sourceRefName: `refs/heads/${pull.head}`,
    targetRefName: `refs/heads/${pull.base}`,
    lastMergeSourceCommit: { commitId: pull.headSha },
    reviewers: [],
    labels: [],
  };
}

/** Comments count from 1 in each thread: what begins one is its first. */
function commentShape({ place, by, comment, pull }: Extract<Told, { type: "comment" }>) {
  const { id, body, thread, createdAt } = comment;
  const isFirst = thread === null || thread === String(id);
  const base = `${place.webUrl}/${namesOf(place).collection}/_apis/git/repositories/${repositoryIdOf(place)}`;
  const href = `${base}/pullRequests/${pull?.number}/threads/${thread ?? id}`;
  return {
    id: isFirst ? 1 : id,
    parentCommentId: isFirst ? 0 : 1,
    author: identity(by),
    content: body,
    publishedDate: createdAt,
    lastContentUpdatedDate: createdAt,
    commentType: "text",
    _links: { self: { href: `${href}/comments/${isFirst ? 1 : id}` }, threads: { href } },
  };
}
