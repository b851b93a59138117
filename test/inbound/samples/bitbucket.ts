import type { Sample } from "../deliveries.ts";

// After https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/.
const actor = {
  type: "user",
  uuid: "{673a6070-3421-46c9-9d48-90745f7bfe8e}",
  account_id: "557058:c0b72ad0-1cb5-4018-9cdc-0cde8492c443",
  nickname: "emmap1",
  display_name: "Emma",
};
const reviewer = { ...actor, uuid: "{11111111-3421-46c9-9d48-90745f7bfe8e}", nickname: "rita", display_name: "Rita" };
const repository = {
  type: "repository",
  uuid: "{d4ae5b46-a71f-4fe7-9a8f-7c4f9d1e8f3a}",
  name: "app",
  full_name: "acme/app",
  links: { html: { href: "https://bitbucket.org/acme/app" } },
  mainbranch: { type: "branch", name: "main" },
  is_private: true,
};
const sha = "d3022fc0ca3d65c7f6654eea129d6bf0cf0ee08e";
const before = "e0e377d186e4f0e937bdb487a23384fe002df649";
const at = "2026-11-20T10:00:00.000000+00:00";
const pullrequest = {
  id: 1,
  title: "Fix the login",
  description: "Closes the issue",
  state: "OPEN",
  draft: false,
  author: actor,
  source: { branch: { name: "fix-login" }, commit: { hash: "d3022fc0ca3d" }, repository },
  destination: { branch: { name: "main" }, commit: { hash: "ce5965ddd289" }, repository },
  reviewers: [reviewer],
  participants: [],
  created_on: at,
  updated_on: at,
  links: { html: { href: "https://bitbucket.org/acme/app/pull-requests/1" } },
};
const issue = {
  id: 7,
  title: "The login fails",
  content: { raw: "With a 500", markup: "markdown", html: "<p>With a 500</p>" },
  state: "new",
  kind: "bug",
  reporter: actor,
  assignee: null,
  created_on: at,
  updated_on: at,
  links: { html: { href: "https://bitbucket.org/acme/app/issues/7" } },
};
const comment = {
  id: 17,
  parent: { id: 16 },
  content: { raw: "@offstage please mend this", markup: "markdown", html: "" },
  inline: { path: "src/login.ts", from: null, to: 10 },
  user: actor,
  created_on: at,
  updated_on: at,
  links: { html: { href: "https://bitbucket.org/acme/app/pull-requests/1#comment-17" } },
};
const branch = { type: "branch", name: "main", target: { type: "commit", hash: sha } };
const old = { type: "branch", name: "main", target: { type: "commit", hash: before } };
const commits = [
  { hash: sha, type: "commit", message: "Fix it\n", author: { raw: "Emma <emma@example.com>", user: actor } },
];
const status = {
  name: "Unit tests",
  description: "Build failed",
  state: "FAILED",
  key: "mybuildtool",
  url: "https://ci.example/12",
  type: "build",
  refname: "fix-login",
  created_on: at,
  updated_on: at,
  links: { commit: { href: `https://api.bitbucket.org/2.0/repositories/acme/app/commit/${sha}` } },
};

function sample(key: string, names: readonly string[], more: object, title: string = key): Sample {
  const payload = { actor, repository, ...more };
  return { title, forge: "bitbucket", headers: { "x-event-key": key }, names, payload };
}

export const bitbucketSamples: readonly Sample[] = [
  sample("repo:push", ["push"], { push: { changes: [{ new: branch, old, created: false, closed: false, commits }] } }),
  sample(
    "repo:push",
    ["push", "push"],
    {
      push: {
        changes: [
          { new: { ...branch, name: "new" }, old: null, created: true, closed: false, commits },
          { new: null, old, created: false, closed: true },
          { new: { type: "tag", name: "v1", target: { hash: sha } }, old: null, created: true, closed: false },
        ],
      },
    },
    "a new branch, a deleted one and a tag in one push",
  ),
  sample("repo:fork", [], { fork: repository }),
  sample("repo:commit_comment_created", [], { comment, commit: { hash: sha } }),
  sample("repo:commit_status_created", ["checks.failed"], { commit_status: status }),
  sample("repo:commit_status_updated", ["checks.passed"], { commit_status: { ...status, state: "SUCCESSFUL" } }),
  sample("repo:commit_status_updated", [], { commit_status: { ...status, state: "INPROGRESS" } }, "a build that runs"),
  sample(
    "repo:commit_status_updated",
    [],
    { commit_status: { ...status, state: "STOPPED" } },
    "a build that was stopped",
  ),
  sample("issue:created", ["issue.opened"], { issue }),
  sample(
    "issue:created",
    ["issue.opened", "issue.assigned"],
    { issue: { ...issue, assignee: reviewer } },
    "assigned at once",
  ),
  sample("issue:comment_created", ["issue.commented"], { issue, comment: { ...comment, inline: undefined } }),
  sample("issue:updated", ["issue.closed"], {
    issue: { ...issue, state: "resolved" },
    comment: { id: 40, content: { raw: null } },
    changes: { status: { old: "open", new: "resolved" } },
  }),
  sample(
    "issue:updated",
    ["issue.opened"],
    { issue, comment: { id: 41 }, changes: { status: { old: "closed", new: "open" } } },
    "an issue reopened",
  ),
  sample(
    "issue:updated",
    ["issue.assigned"],
    {
      issue: { ...issue, assignee: reviewer },
      comment: { id: 42 },
      changes: { assignee: { old: null, new: reviewer }, responsible: { old: null, new: reviewer } },
    },
    "an issue assigned",
  ),
  sample(
    "issue:updated",
    [],
    { issue, comment: { id: 43 }, changes: { kind: { old: "bug", new: "task" } } },
    "kind changed",
  ),
  sample("pullrequest:created", ["pullRequest.opened", "pullRequest.reviewRequested"], { pullrequest }),
  sample("pullrequest:updated", ["pullRequest.updated", "pullRequest.reviewRequested"], { pullrequest }),
  sample("pullrequest:approved", ["pullRequest.reviewSubmitted"], {
    pullrequest,
    approval: { date: at, user: reviewer },
  }),
  sample("pullrequest:unapproved", ["pullRequest.reviewDismissed"], {
    pullrequest,
    approval: { date: at, user: reviewer },
  }),
  sample("pullrequest:changes_request_created", ["pullRequest.reviewSubmitted"], {
    pullrequest,
    changes_request: { date: at, user: reviewer },
  }),
  sample("pullrequest:changes_request_removed", ["pullRequest.reviewDismissed"], {
    pullrequest,
    changes_request: { date: at, user: reviewer },
  }),
  sample("pullrequest:fulfilled", ["pullRequest.merged"], { pullrequest: { ...pullrequest, state: "MERGED" } }),
  sample("pullrequest:rejected", ["pullRequest.closed"], { pullrequest: { ...pullrequest, state: "DECLINED" } }),
  sample("pullrequest:comment_created", ["pullRequest.commented"], { pullrequest, comment }),
  sample("pullrequest:comment_updated", [], { pullrequest, comment }),
  sample("pullrequest:comment_deleted", [], { pullrequest, comment }),
];

// After https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html.
const admin = {
  name: "admin",
  emailAddress: "admin@example.com",
  id: 1,
  displayName: "Administrator",
  active: true,
  slug: "admin",
  type: "NORMAL",
};
const grace = { ...admin, name: "grace", id: 2, displayName: "Grace", slug: "grace" };
const project = { key: "PROJ", id: 84, name: "project", public: false, type: "NORMAL" };
const server = {
  slug: "app",
  id: 84,
  name: "app",
  scmId: "git",
  state: "AVAILABLE",
  forkable: true,
  project,
  public: false,
  links: {
    clone: [{ href: "https://bitbucket.example/scm/proj/app.git", name: "http" }],
    self: [{ href: "https://bitbucket.example/projects/PROJ/repos/app/browse" }],
  },
};
const date = "2026-11-20T10:00:00+1000";
const pullRequest = {
  id: 11,
  version: 1,
  title: "Fix the login",
  description: "Closes it",
  state: "OPEN",
  open: true,
  closed: false,
  draft: false,
  createdDate: 1_505_783_860_548,
  updatedDate: 1_505_783_878_981,
  fromRef: { id: "refs/heads/fix-login", displayId: "fix-login", latestCommit: sha, repository: server },
  toRef: { id: "refs/heads/main", displayId: "main", latestCommit: before, repository: server },
  locked: false,
  author: { user: admin, role: "AUTHOR", approved: false, status: "UNAPPROVED" },
  reviewers: [{ user: grace, role: "REVIEWER", approved: false, status: "UNAPPROVED" }],
  participants: [],
  links: { self: [null] },
};
const said = {
  properties: { repositoryId: 84 },
  id: 62,
  version: 0,
  text: "I am a PR comment",
  author: grace,
  createdDate: 1_505_783_878_981,
  updatedDate: 1_505_783_878_981,
  comments: [],
  tasks: [],
};
const change = {
  ref: { id: "refs/heads/main", displayId: "main", type: "BRANCH" },
  refId: "refs/heads/main",
  fromHash: before,
  toHash: sha,
  type: "UPDATE",
};

function onServer(key: string, names: readonly string[], more: object, title: string = key): Sample {
  const payload = { eventKey: key, date, actor: admin, ...more };
  return { title, forge: "bitbucketDataCenter", headers: { "x-event-key": key }, names, payload };
}

export const bitbucketDataCenterSamples: readonly Sample[] = [
  onServer("diagnostics:ping", [], { test: true }),
  onServer("repo:refs_changed", ["push"], { repository: server, changes: [change] }),
  onServer(
    "repo:refs_changed",
    ["push", "push"],
    {
      repository: server,
      changes: [
        { ...change, type: "ADD", fromHash: "0".repeat(40) },
        { ...change, type: "DELETE", toHash: "0".repeat(40), ref: { ...change.ref, id: "refs/heads/old" } },
        { ...change, type: "ADD", ref: { id: "refs/tags/v1", displayId: "v1", type: "TAG" } },
      ],
    },
    "a new branch, a deleted one and a tag in one push",
  ),
  onServer(
    "repo:refs_changed",
    ["push"],
    { repository: { ...server, links: undefined }, changes: [change] },
    "a push on a server that does not say where it is",
  ),
  onServer("repo:modified", [], { old: server, new: server }),
  onServer("repo:forked", [], { repository: server }),
  onServer("repo:comment:added", [], { comment: said, repository: server, commit: sha }),
  onServer("mirror:repo_synchronized", [], { repository: server, changes: [change] }),
  onServer("pr:opened", ["pullRequest.opened", "pullRequest.reviewRequested"], { pullRequest }),
  onServer("pr:from_ref_updated", ["pullRequest.updated"], { pullRequest, previousFromHash: before }),
  onServer("pr:modified", [], {
    pullRequest,
    previousTitle: "A new title",
    previousDescription: null,
    previousTarget: {},
  }),
  onServer("pr:modified", ["pullRequest.opened"], { pullRequest, previousDraft: true }, "a draft that is ready"),
  onServer("pr:reviewer:updated", ["pullRequest.reviewRequested"], {
    pullRequest,
    addedReviewers: [grace],
    removedReviewers: [admin],
  }),
  onServer("pr:reviewer:approved", ["pullRequest.reviewSubmitted"], {
    pullRequest,
    participant: { user: grace, lastReviewedCommit: sha, role: "REVIEWER", approved: true, status: "APPROVED" },
    previousStatus: "UNAPPROVED",
  }),
  onServer("pr:reviewer:unapproved", ["pullRequest.reviewDismissed"], {
    pullRequest,
    participant: { user: grace, status: "UNAPPROVED" },
  }),
  onServer("pr:reviewer:needs_work", ["pullRequest.reviewSubmitted"], {
    pullRequest,
    participant: { user: grace, status: "NEEDS_WORK" },
  }),
  onServer("pr:reviewer:changes_requested", ["pullRequest.reviewSubmitted"], {
    pullRequest,
    participant: { user: grace, status: "NEEDS_WORK" },
  }),
  onServer("pr:comment:added", ["pullRequest.commented"], { pullRequest, comment: said, commentParentId: 43 }),
  onServer("pr:comment:edited", [], { pullRequest, comment: said, previousComment: "x" }),
  onServer("pr:comment:deleted", [], { pullRequest, comment: said }),
  onServer("pr:merged", ["pullRequest.merged"], { pullRequest: { ...pullRequest, state: "MERGED", closed: true } }),
  onServer("pr:declined", ["pullRequest.closed"], {
    pullRequest: { ...pullRequest, state: "DECLINED", closed: true, closedDate: 1_505_783_592_000 },
  }),
  onServer("pr:deleted", ["pullRequest.closed"], { pullRequest }),
];
