import type { Sample } from "../deliveries.ts";

// After https://learn.microsoft.com/azure/devops/service-hooks/events.
const jamal = {
  id: "54d125f7-69f7-4191-904f-c5b96b6261c8",
  displayName: "Jamal Hartnett",
  uniqueName: "fabrikamfiber4@hotmail.com",
};
const rita = { id: "2ea2d095-48f9-4cd6-9966-62f6f574096c", displayName: "Rita", uniqueName: "rita@example.com" };
const repository = {
  id: "4bc14d40-c903-45e2-872e-0462c7748079",
  name: "Fabrikam",
  url: "https://dev.azure.com/fabrikam/_apis/git/repositories/4bc14d40-c903-45e2-872e-0462c7748079",
  project: { id: "6ce954b1-ce1f-45d1-b94d-e6bf2464ba2c", name: "Fabrikam" },
  defaultBranch: "refs/heads/main",
  remoteUrl: "https://fabrikam@dev.azure.com/fabrikam/Fabrikam/_git/Fabrikam",
};
const sha = "53d54ac915144006c2c9e90d2c7d3880920db49c";
const before = "a511f535b1ea495ee0c903badb68fbc83772c882";
const pullRequest = {
  repository,
  pullRequestId: 1,
  status: "active",
  isDraft: false,
  createdBy: jamal,
  creationDate: "2026-11-20T10:00:00.589889Z",
  title: "Fix the login",
  description: " - test2\r\n",
  sourceRefName: "refs/heads/fix-login",
  targetRefName: "refs/heads/main",
  mergeStatus: "succeeded",
  lastMergeSourceCommit: { commitId: sha },
  lastMergeTargetCommit: { commitId: before },
  reviewers: [{ ...rita, reviewerUrl: null, vote: 0 }],
  labels: [{ id: "l-1", name: "agent", active: true }],
};
const thread =
  "https://dev.azure.com/fabrikam/_apis/git/repositories/4bc14d40-c903-45e2-872e-0462c7748079/pullRequests/1/threads/5";
const comment = {
  id: 2,
  parentCommentId: 1,
  author: rita,
  content: "@offstage please mend this",
  publishedDate: "2026-11-20T10:00:00.967Z",
  lastUpdatedDate: "2026-11-20T10:00:00.967Z",
  lastContentUpdatedDate: "2026-11-20T10:00:00.967Z",
  commentType: "text",
  _links: { self: { href: `${thread}/comments/2` }, threads: { href: thread } },
};
const push = {
  commits: [{ commitId: sha, author: { name: "Jamal Hartnett" }, comment: "Fixed bug in web.config file" }],
  refUpdates: [{ name: "refs/heads/main", oldObjectId: before, newObjectId: sha }],
  repository,
  pushedBy: jamal,
  pushId: 14,
  date: "2026-11-20T10:00:00Z",
};
const build = {
  id: 2,
  buildNumber: "20261120.1",
  status: "completed",
  result: "failed",
  startTime: "2026-11-20T10:00:00Z",
  finishTime: "2026-11-20T10:06:10.69Z",
  sourceBranch: "refs/heads/fix-login",
  sourceVersion: sha,
  definition: { id: 2, name: "CI" },
  project: { id: "be9b3917-87e6-42a4-a549-2bc06a7a878f" },
  repository: { id: repository.id, type: "TfsGit", url: "https://dev.azure.com/fabrikam/Fabrikam/_git/Fabrikam" },
  requestedFor: jamal,
  _links: { web: { href: "https://dev.azure.com/fabrikam/Fabrikam/_build/results?buildId=2" } },
};
const fields = {
  "System.WorkItemType": "Bug",
  "System.State": "New",
  "System.Title": "The login fails",
  "System.Description": "With a 500",
  "System.CreatedBy": "Jamal Hartnett <fabrikamfiber4@hotmail.com>",
  "System.ChangedBy": "Rita <rita@example.com>",
  "System.TeamProject": "Fabrikam",
  "System.Tags": "bug; agent",
};
const item = {
  id: 5,
  rev: 1,
  fields,
  _links: { html: { href: "https://dev.azure.com/fabrikam/web/wi.aspx?id=5" } },
  url: "https://dev.azure.com/fabrikam/_apis/wit/workItems/5",
};

function sample(eventType: string, names: readonly string[], resource: unknown, text = "", title = eventType): Sample {
  const payload = {
    subscriptionId: "aaaa0a0a-bb1b-cc2c-dd3d-eeeeee4e4e4e",
    notificationId: 1,
    id: "2ab4e3d3-b7a6-425e-92b1-5a9982c1269e",
    eventType,
    publisherId: "tfs",
    message: { text },
    detailedMessage: { text },
    resource,
    resourceVersion: "1.0",
    resourceContainers: {
      collection: { id: "c12d0eb8-e382-443b-9f9c-c52cba5014c2" },
      project: { id: "be9b3917-87e6-42a4-a549-2bc06a7a878f" },
    },
    createdDate: "2026-11-20T10:00:00.2879096Z",
  };
  return { title, forge: "azure", headers: {}, names, payload };
}
function changed(names: readonly string[], text: string, more: object = {}): Sample {
  return sample("git.pullrequest.updated", names, { ...pullRequest, ...more }, text, text);
}
const asReviewer = (vote: number): object => ({ reviewers: [{ ...rita, vote }] });

export const azureSamples: readonly Sample[] = [
  sample("git.push", ["push"], push),
  sample(
    "git.push",
    ["push", "push"],
    {
      ...push,
      refUpdates: [
        { name: "refs/heads/new", oldObjectId: "0".repeat(40), newObjectId: sha },
        { name: "refs/heads/old", oldObjectId: before, newObjectId: "0".repeat(40) },
        { name: "refs/tags/v1", oldObjectId: "0".repeat(40), newObjectId: sha },
      ],
    },
    "",
    "a new branch, a deleted one and a tag in one push",
  ),
  sample(
    "git.pullrequest.created",
    ["pullRequest.opened", "pullRequest.reviewRequested", "pullRequest.labeled"],
    pullRequest,
    "Jamal Hartnett created pull request 1 (Fix the login) in Fabrikam",
  ),
  changed(
    ["pullRequest.updated"],
    "Jamal Hartnett updated the source branch of pull request 1 (Fix the login) in Fabrikam",
  ),
  changed(
    ["pullRequest.reviewRequested"],
    "Jamal Hartnett changed the reviewer list on pull request 1 (Fix it) in Fabrikam",
  ),
  changed(["pullRequest.reviewSubmitted"], "Rita approved pull request 1 (Fix the login) in Fabrikam", asReviewer(10)),
  changed(["pullRequest.reviewSubmitted"], "Rita is waiting for the author in pull request 1 (Fix it)", asReviewer(-5)),
  changed(["pullRequest.reviewDismissed"], "Rita reset their vote on pull request 1 (approved)", asReviewer(0)),
  changed(["pullRequest.labeled"], "Jamal Hartnett tagged the pull request 1"),
  changed([], "Jamal Hartnett updated the title of pull request 1 (Rita updated the source branch of)"),
  changed(["pullRequest.opened"], "Jamal Hartnett published the pull request"),
  changed(["pullRequest.opened"], "Jamal Hartnett reactivated the pull request"),
  changed(["pullRequest.merged"], "Jamal Hartnett marked the pull request as completed", { status: "completed" }),
  changed(["pullRequest.closed"], "Jamal Hartnett marked the pull request as abandoned", {
    status: "abandoned",
    closedDate: "2026-11-20T11:00:00Z",
  }),
  sample("git.pullrequest.merged", ["pullRequest.merged"], { ...pullRequest, status: "completed" }),
  sample("git.pullrequest.merged", [], pullRequest, "", "an attempt to merge"),
  sample("ms.vss-code.git-pullrequest-comment-event", ["pullRequest.commented"], { comment, pullRequest }),
  sample(
    "ms.vss-code.git-pullrequest-comment-event",
    [],
    { comment: { ...comment, lastContentUpdatedDate: "2026-11-20T12:00:00.967Z" }, pullRequest },
    "",
    "a comment edited",
  ),
  sample(
    "ms.vss-code.git-pullrequest-comment-event",
    [],
    { comment: { ...comment, commentType: "system" }, pullRequest },
    "",
    "a note of the system",
  ),
  sample("build.complete", ["checks.failed"], build),
  sample("build.complete", ["checks.passed"], { ...build, result: "succeeded" }, "", "a build that passed"),
  sample("build.complete", [], { ...build, result: "canceled" }, "", "a build that was cancelled"),
  sample(
    "build.complete",
    ["checks.passed"],
    {
      uri: "vstfs:///Build/Build/2",
      id: 2,
      buildNumber: "ConsumerAddressModule_20150407.1",
      finishTime: "2015-04-07T18:06:10.69Z",
      status: "succeeded",
      sourceGetVersion: `LG:refs/heads/master:${sha}`,
      definition: { id: 2, name: "ConsumerAddressModule" },
    },
    "",
    "a build in version 1.0",
  ),
  sample("workitem.created", ["issue.opened", "issue.labeled", "issue.labeled"], item),
  sample("workitem.commented", ["issue.commented"], {
    ...item,
    rev: 4,
    fields: { ...fields, "System.History": "<div>@offstage please&nbsp;mend this</div>" },
  }),
  sample(
    "workitem.commented",
    ["issue.commented"],
    { ...item, rev: 5, fields: { ...fields, "System.ChangedBy": rita, "System.History": "<div>Thanks!</div>" } },
    "",
    "a work item commented on by a person with an id",
  ),
  sample("workitem.updated", ["issue.closed"], {
    id: 2,
    workItemId: 5,
    rev: 3,
    url: "https://dev.azure.com/fabrikam/_apis/wit/workItems/5/updates/2",
    fields: { "System.State": { oldValue: "Active", newValue: "Closed" } },
    revision: { id: 5, rev: 3, fields: { ...fields, "System.State": "Closed" } },
  }),
  sample(
    "workitem.updated",
    ["issue.opened", "issue.labeled", "issue.assigned"],
    {
      id: 2,
      workItemId: 5,
      rev: 4,
      url: "https://dev.azure.com/fabrikam/_apis/wit/workItems/5/updates/3",
      fields: {
        "System.State": { oldValue: "Closed", newValue: "Active" },
        "System.Tags": { oldValue: "bug", newValue: "bug; agent" },
        "System.AssignedTo": { newValue: "Jamal Hartnett <fabrikamfiber4@hotmail.com>" },
      },
      revision: { id: 5, rev: 4, fields: { ...fields, "System.State": "Active" } },
    },
    "",
    "a work item reopened, tagged and assigned at once",
  ),
  sample("workitem.deleted", [], item),
  sample("workitem.restored", [], item),
  sample("ms.vss-release.release-created-event", [], { release: { id: 4, name: "Release-1" } }),
  sample("tfvc.checkin", [], { changesetId: 18, author: jamal }),
];
