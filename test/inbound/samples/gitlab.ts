import type { Sample } from "../deliveries.ts";

// After https://docs.gitlab.com/user/project/integrations/webhook_events/.
const project = {
  id: 15,
  name: "Diaspora",
  web_url: "https://gitlab.example/mike/diaspora",
  git_ssh_url: "git@gitlab.example:mike/diaspora.git",
  git_http_url: "https://gitlab.example/mike/diaspora.git",
  namespace: "Mike",
  visibility_level: 0,
  path_with_namespace: "mike/diaspora",
  default_branch: "main",
};
const user = { id: 4, name: "Joan Smith", username: "jsmith", avatar_url: null, email: "[REDACTED]" };
const reviewer = { id: 6, name: "Rita", username: "rita", avatar_url: null };
const bug = { id: 206, title: "bug", color: "#ffffff", project_id: 15, type: "ProjectLabel" };
const agent = { id: 207, title: "agent", color: "#000000", project_id: 15, type: "ProjectLabel" };
const at = "2026-11-20 10:00:00 UTC";
const commit = {
  id: "da1560886d4f094c3e6c9ef40349f7d38b5d27d7",
  message: "Fix the readme\n",
  title: "Fix the readme",
  timestamp: "2026-11-20T10:00:00+00:00",
  author: { name: "Joan Smith", email: "joan@example.com" },
};
const issue = {
  id: 301,
  iid: 23,
  title: "The login fails",
  description: "With a **500**",
  state: "opened",
  author_id: 4,
  assignee_ids: [6],
  project_id: 15,
  created_at: at,
  updated_at: at,
  type: "Issue",
  url: "https://gitlab.example/mike/diaspora/-/issues/23",
};
const mergeRequest = {
  id: 99,
  iid: 1,
  title: "Fix the login",
  description: "Closes #23",
  state: "opened",
  author_id: 4,
  source_branch: "fix-login",
  target_branch: "main",
  source_project_id: 15,
  target_project_id: 15,
  draft: false,
  work_in_progress: false,
  created_at: at,
  updated_at: at,
  source: project,
  target: project,
  last_commit: commit,
  url: "https://gitlab.example/mike/diaspora/-/merge_requests/1",
};
const note = {
  id: 1_244,
  note: "@offstage please mend this",
  noteable_type: "Issue",
  author_id: 4,
  created_at: at,
  updated_at: at,
  project_id: 15,
  system: false,
  discussion_id: "8ba2ba4f0b3f8a1c",
  position: null,
  line_code: null,
  st_diff: null,
  url: "https://gitlab.example/mike/diaspora/-/issues/23#note_1244",
};
const pipeline = {
  id: 31,
  iid: 3,
  name: "Build",
  ref: "fix-login",
  tag: false,
  sha: commit.id,
  before_sha: commit.id,
  source: "push",
  status: "failed",
  created_at: at,
  finished_at: at,
  duration: 63,
  variables: [],
  url: "https://gitlab.example/mike/diaspora/-/pipelines/31",
};
const push = {
  object_kind: "push",
  event_name: "push",
  before: "95790bf891e76fee5e1747ab589903a6a1f80f22",
  after: commit.id,
  ref: "refs/heads/main",
  checkout_sha: commit.id,
  user_id: 4,
  user_name: "Joan Smith",
  user_username: "jsmith",
  project_id: 15,
  project,
  commits: [commit],
  total_commits_count: 1,
};
const zeros = "0".repeat(40);

function sample(title: string, header: string, names: readonly string[], payload: Record<string, unknown>): Sample {
  return { title, forge: "gitlab", headers: { "x-gitlab-event": header }, names, payload };
}
function ofIssue(title: string, names: readonly string[], attributes: object, more: object = {}): Sample {
  const payload = { user, project, labels: [bug], assignees: [reviewer], changes: {}, ...more };
  const object = { object_kind: "issue", event_type: "issue", object_attributes: { ...issue, ...attributes } };
  return sample(`issue: ${title}`, "Issue Hook", names, { ...object, ...payload });
}
function ofMergeRequest(title: string, names: readonly string[], attributes: object, more: object = {}): Sample {
  const payload = { user, project, labels: [bug], assignees: [user], reviewers: [reviewer], changes: {}, ...more };
  const kind = { object_kind: "merge_request", event_type: "merge_request" };
  return sample(`merge request: ${title}`, "Merge Request Hook", names, {
    ...kind,
    object_attributes: { ...mergeRequest, ...attributes },
    ...payload,
  });
}
function ofNote(title: string, names: readonly string[], attributes: object, more: object): Sample {
  const kind = { object_kind: "note", event_type: "note" };
  return sample(`note: ${title}`, "Note Hook", names, {
    ...kind,
    user,
    project_id: 15,
    project,
    object_attributes: { ...note, ...attributes },
    ...more,
  });
}
function ofPipeline(title: string, names: readonly string[], attributes: object, more: object = {}): Sample {
  return sample(`pipeline: ${title}`, "Pipeline Hook", names, {
    object_kind: "pipeline",
    object_attributes: { ...pipeline, ...attributes },
    merge_request: null,
    user,
    project,
    commit,
    builds: [],
    ...more,
  });
}

export const gitlabSamples: readonly Sample[] = [
  sample("a push", "Push Hook", ["push"], push),
  sample("a new branch", "Push Hook", ["push"], { ...push, before: zeros, ref: "refs/heads/new", commits: [] }),
  sample("a deleted branch", "Push Hook", ["push"], { ...push, after: zeros, checkout_sha: null, commits: [] }),
  sample("a tag", "Tag Push Hook", [], { ...push, object_kind: "tag_push", ref: "refs/tags/v1.0.0" }),
  ofIssue("opened", ["issue.opened", "issue.labeled", "issue.assigned"], { action: "open" }),
  ofIssue("opened, bare", ["issue.opened"], { action: "open" }, { labels: [], assignees: undefined }),
  ofIssue("reopened", ["issue.opened"], { action: "reopen" }),
  ofIssue("closed", ["issue.closed"], { action: "close", state: "closed" }),
  ofIssue("text edited", [], { action: "update" }, { changes: { title: { previous: "a", current: "b" } } }),
  ofIssue(
    "labelled",
    ["issue.labeled"],
    { action: "update" },
    { labels: [bug, agent], changes: { labels: { previous: [bug], current: [bug, agent] } } },
  ),
  ofIssue(
    "label removed",
    [],
    { action: "update" },
    { changes: { labels: { previous: [bug, agent], current: [bug] } } },
  ),
  ofIssue(
    "assigned",
    ["issue.assigned"],
    { action: "update" },
    { changes: { assignees: { previous: [], current: [reviewer] } } },
  ),
  ofIssue(
    "task opened",
    ["issue.opened"],
    { action: "open", type: "Task" },
    {
      object_kind: "work_item",
      labels: [],
      assignees: [],
    },
  ),
  ofIssue("epic opened", [], { action: "open", type: "Epic" }, { object_kind: "work_item", project: null }),
  ofNote(
    "on an issue",
    ["issue.commented"],
    { action: "create" },
    { issue: { ...issue, labels: [bug], url: undefined } },
  ),
  ofNote("on an issue, before 16.11", ["issue.commented"], {}, { issue }),
  ofNote("edited", [], { action: "update" }, { issue }),
  ofNote("by GitLab itself", [], { action: "create", system: true }, { issue }),
  ofNote(
    "on a merge request",
    ["pullRequest.commented"],
    { action: "create", noteable_type: "MergeRequest" },
    { merge_request: mergeRequest },
  ),
  ofNote(
    "on a line",
    ["pullRequest.commented"],
    {
      action: "create",
      noteable_type: "MergeRequest",
      type: "DiffNote",
      position: { base_sha: commit.id, old_path: "a.ts", new_path: "a.ts", old_line: null, new_line: 7 },
    },
    { merge_request: mergeRequest },
  ),
  ofNote("on a commit", [], { action: "create", noteable_type: "Commit", commit_id: commit.id }, { commit }),
  ofNote("on a snippet", [], { action: "create", noteable_type: "Snippet" }, { snippet: { id: 53, title: "test" } }),
  ofMergeRequest("opened", ["pullRequest.opened", "pullRequest.labeled", "pullRequest.reviewRequested"], {
    action: "open",
  }),
  ofMergeRequest("reopened", ["pullRequest.opened"], { action: "reopen" }),
  ofMergeRequest("new commits", ["pullRequest.updated"], {
    action: "update",
    oldrev: "e59094b8de0f2f91abbe4760a52d9137260252d8",
  }),
  ofMergeRequest("text edited", [], { action: "update" }, { changes: { description: { previous: "", current: "x" } } }),
  ofMergeRequest(
    "ready",
    ["pullRequest.opened"],
    { action: "update" },
    {
      changes: { draft: { previous: true, current: false } },
    },
  ),
  ofMergeRequest(
    "labelled",
    ["pullRequest.labeled"],
    { action: "update" },
    {
      changes: { labels: { previous: [], current: [agent] } },
    },
  ),
  ofMergeRequest(
    "review requested",
    ["pullRequest.reviewRequested"],
    { action: "update" },
    {
      changes: { reviewers: { previous: [], current: [{ ...reviewer, state: "unreviewed", re_requested: false }] } },
    },
  ),
  ofMergeRequest(
    "review requested again",
    ["pullRequest.reviewRequested"],
    { action: "update" },
    {
      changes: {
        reviewers: {
          previous: [{ ...reviewer, state: "reviewed", re_requested: false }],
          current: [{ ...reviewer, state: "unreviewed", re_requested: true }],
        },
      },
    },
  ),
  ofMergeRequest(
    "changes asked for",
    ["pullRequest.reviewSubmitted"],
    { action: "update" },
    {
      changes: {
        reviewers: {
          previous: [{ ...reviewer, state: "review_started", re_requested: false }],
          current: [{ ...reviewer, state: "requested_changes", re_requested: false }],
        },
      },
    },
  ),
  ofMergeRequest("approved by one", ["pullRequest.reviewSubmitted"], { action: "approval" }),
  ofMergeRequest("approved by all", ["pullRequest.reviewSubmitted"], { action: "approved" }),
  ofMergeRequest(
    "changes asked for no more",
    ["pullRequest.reviewDismissed"],
    { action: "update" },
    {
      changes: {
        reviewers: {
          previous: [{ ...reviewer, state: "requested_changes", re_requested: false }],
          current: [{ ...reviewer, state: "unreviewed", re_requested: false }],
        },
      },
    },
  ),
  ofMergeRequest("approval taken back", ["pullRequest.reviewDismissed"], { action: "unapproval" }),
  ofMergeRequest("not approved any more", ["pullRequest.reviewDismissed"], { action: "unapproved" }),
  ofMergeRequest("merged", ["pullRequest.merged"], { action: "merge", state: "merged" }),
  ofMergeRequest("closed", ["pullRequest.closed"], { action: "close", state: "closed" }),
  ofPipeline("failed", ["checks.failed"], {}),
  ofPipeline("passed", ["checks.passed"], { status: "success" }),
  ofPipeline(
    "of a merge request",
    ["checks.failed"],
    { ref: "refs/merge-requests/1/head", source: "merge_request_event" },
    { merge_request: { id: 99, iid: 1, title: "Fix the login", source_branch: "fix-login", target_branch: "main" } },
  ),
  ofPipeline("running", [], { status: "running", finished_at: null }),
  ofPipeline("cancelled", [], { status: "canceled" }),
  sample("a job", "Job Hook", [], {
    object_kind: "build",
    ref: "main",
    sha: commit.id,
    build_status: "failed",
    project,
  }),
  sample("a release", "Release Hook", ["release.published"], {
    id: 1,
    created_at: at,
    description: "v1.1 has been released",
    name: "v1.1",
    released_at: at,
    tag: "v1.1",
    object_kind: "release",
    project,
    url: "https://gitlab.example/mike/diaspora/-/releases/v1.1",
    action: "create",
    assets: { count: 0, links: [], sources: [] },
    commit,
  }),
  sample("a release edited", "Release Hook", [], {
    object_kind: "release",
    project,
    id: 1,
    tag: "v1",
    action: "update",
  }),
  sample("a wiki page", "Wiki Page Hook", [], { object_kind: "wiki_page", user, project, object_attributes: {} }),
  sample("a deployment", "Deployment Hook", [], { object_kind: "deployment", status: "success", project, user }),
  sample("an emoji", "Emoji Hook", [], { object_kind: "emoji", event_type: "award", user, project }),
  sample("a member", "Member Hook", [], { event_name: "user_add_to_group", group_name: "g", user_username: "x" }),
];
