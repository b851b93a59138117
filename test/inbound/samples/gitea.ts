import type { Sample } from "../deliveries.ts";

// After https://docs.gitea.com/usage/webhooks and modules/structs/hook.go of Gitea 1.25 and Forgejo 12.
const user = { id: 1, login: "gituser", full_name: "Git User", email: "user@example.com", username: "gituser" };
const reviewer = { ...user, id: 2, login: "rita", username: "rita" };
const repository = {
  id: 140,
  owner: user,
  name: "webhooks",
  full_name: "gituser/webhooks",
  private: false,
  html_url: "https://gitea.example/gituser/webhooks",
  clone_url: "https://gitea.example/gituser/webhooks.git",
  default_branch: "main",
};
const sha = "bffeb74224043ba2feb48d137756c8a9331c449a";
const at = "2026-11-20T10:00:00Z";
const bug = { id: 5, name: "bug", color: "ee0701" };
const agent = { id: 6, name: "agent", color: "000000" };
const issue = {
  id: 11,
  number: 3,
  user,
  title: "The login fails",
  body: "",
  html_url: "https://gitea.example/gituser/webhooks/issues/3",
  labels: [bug],
  assignee: reviewer,
  assignees: [reviewer],
  state: "open",
  created_at: at,
  updated_at: at,
  closed_at: null,
  pull_request: null,
};
const pullRequest = {
  id: 21,
  number: 4,
  user,
  title: "Fix the login",
  body: "Closes #3",
  html_url: "https://gitea.example/gituser/webhooks/pulls/4",
  labels: [bug],
  state: "open",
  draft: false,
  merged: false,
  merged_at: null,
  head: { label: "fix-login", ref: "fix-login", sha, repo: repository },
  base: { label: "main", ref: "main", sha: "28e1879d029cb852e4844d9c718537df08844e03", repo: repository },
  created_at: at,
  updated_at: at,
  closed_at: null,
};
const comment = {
  id: 77,
  html_url: "https://gitea.example/gituser/webhooks/issues/3#issuecomment-77",
  user,
  body: "@offstage please mend this",
  created_at: at,
  updated_at: at,
};
const push = {
  ref: "refs/heads/develop",
  before: "28e1879d029cb852e4844d9c718537df08844e03",
  after: sha,
  compare_url: "https://gitea.example/gituser/webhooks/compare/28e1879…bffeb74",
  commits: [
    { id: sha, message: "Webhooks Yay!", author: { name: "Git User", email: "user@example.com" }, timestamp: at },
  ],
  total_commits: 1,
  head_commit: null,
  repository,
  pusher: user,
  sender: user,
};
const status = {
  id: 901,
  sha,
  state: "failure",
  context: "jenkins",
  description: "",
  target_url: "https://ci.example/12",
  commit: null,
  repository,
  sender: user,
  created_at: at,
};
const run = {
  id: 500,
  html_url: "https://gitea.example/gituser/webhooks/actions/runs/12",
  display_title: "Fix the login",
  path: "ci.yaml@refs/heads/fix-login",
  event: "push",
  run_attempt: 1,
  run_number: 12,
  head_sha: sha,
  head_branch: "fix-login",
  status: "completed",
  conclusion: "failure",
};
const forgejoRun = {
  id: 61,
  title: "Fix the login",
  workflow_id: "ci.yaml",
  index_in_repo: 12,
  prettyref: "fix-login",
  commit_sha: sha,
  event: "push",
  status: "failure",
  started: at,
  stopped: at,
  trigger_user: user,
  repository,
  html_url: "https://forgejo.example/gituser/webhooks/actions/runs/12",
};
const zeros = "0".repeat(40);

function sample(title: string, event: string, names: readonly string[], payload: Record<string, unknown>): Sample {
  return { title, forge: "gitea", headers: { "x-gitea-event": event }, names, payload };
}
function ofIssue(title: string, action: string, names: readonly string[], more: object = {}): Sample {
  return sample(`issue: ${title}`, "issues", names, { action, number: 3, issue, repository, sender: user, ...more });
}
function ofPullRequest(title: string, action: string, names: readonly string[], more: object = {}): Sample {
  const payload = { action, number: 4, pull_request: pullRequest, requested_reviewer: null, review: null };
  return sample(`pull request: ${title}`, "pull_request", names, { ...payload, repository, sender: user, ...more });
}
function ofReview(title: string, event: string, content: string): Sample {
  return sample(`review: ${title}`, event, ["pullRequest.reviewSubmitted"], {
    action: "reviewed",
    number: 4,
    pull_request: pullRequest,
    requested_reviewer: null,
    review: { type: event, content },
    repository,
    sender: reviewer,
  });
}
function ofForgejo(title: string, event: string, names: readonly string[], payload: Record<string, unknown>): Sample {
  return { title, forge: "gitea", headers: { "x-forgejo-event": event, "x-gitea-event": event }, names, payload };
}

export const giteaSamples: readonly Sample[] = [
  sample("a push", "push", ["push"], push),
  sample("a new branch", "push", ["push"], { ...push, before: zeros, commits: [] }),
  sample("a tag", "push", [], { ...push, ref: "refs/tags/v1" }),
  sample("a branch made", "create", [], { sha, ref: "develop", ref_type: "branch", repository, sender: user }),
  sample("a branch deleted", "delete", ["push"], {
    ref: "develop",
    ref_type: "branch",
    pusher_type: "user",
    repository,
    sender: user,
  }),
  sample("a tag deleted", "delete", [], { ref: "v1", ref_type: "tag", pusher_type: "user", repository, sender: user }),
  ofIssue("opened", "opened", ["issue.opened"]),
  ofIssue("reopened", "reopened", ["issue.opened"]),
  ofIssue("closed", "closed", ["issue.closed"], { issue: { ...issue, state: "closed", closed_at: at } }),
  ofIssue("edited", "edited", [], { changes: { title: { from: "x" } } }),
  ofIssue("assigned", "assigned", ["issue.assigned"]),
  ofIssue("unassigned", "unassigned", []),
  ofIssue("labelled", "label_updated", ["issue.labeled", "issue.labeled"], {
    issue: { ...issue, labels: [bug, agent] },
  }),
  ofIssue("labelled, and said which", "label_updated", ["issue.labeled"], {
    issue: { ...issue, labels: [bug, agent] },
    changes: { added_labels: [agent], removed_labels: [] },
  }),
  ofIssue("label removed, and said which", "label_updated", [], {
    changes: { added_labels: [], removed_labels: [agent] },
  }),
  ofIssue("labels cleared", "label_cleared", []),
  ofIssue("in a milestone", "milestoned", []),
  sample("a comment on an issue", "issue_comment", ["issue.commented"], {
    action: "created",
    issue,
    comment,
    repository,
    sender: user,
    is_pull: false,
  }),
  sample("a comment edited", "issue_comment", [], {
    action: "edited",
    issue,
    comment,
    changes: { body: { from: "x" } },
    repository,
    sender: user,
    is_pull: false,
  }),
  sample("a comment on a pull request", "issue_comment", ["pullRequest.commented"], {
    action: "created",
    issue: {
      ...issue,
      number: 4,
      html_url: pullRequest.html_url,
      pull_request: { merged: false, merged_at: null, html_url: pullRequest.html_url },
    },
    comment,
    repository,
    sender: user,
    is_pull: true,
  }),
  sample("a comment on a pull request, which the delivery has whole", "issue_comment", ["pullRequest.commented"], {
    action: "created",
    issue: { ...issue, number: 4, html_url: pullRequest.html_url },
    pull_request: pullRequest,
    comment,
    repository,
    sender: user,
    is_pull: true,
  }),
  ofPullRequest("opened", "opened", ["pullRequest.opened"]),
  ofPullRequest("reopened", "reopened", ["pullRequest.opened"]),
  ofPullRequest("new commits", "synchronized", ["pullRequest.updated"]),
  ofPullRequest("edited", "edited", [], { changes: { body: { from: "x" } } }),
  ofPullRequest("ready", "edited", ["pullRequest.opened"], { changes: { title: { from: "WIP: Fix the login" } } }),
  ofPullRequest("labelled", "label_updated", ["pullRequest.labeled"]),
  ofPullRequest("review requested", "review_requested", ["pullRequest.reviewRequested"], {
    requested_reviewer: reviewer,
  }),
  ofPullRequest("review request removed", "review_request_removed", [], { requested_reviewer: reviewer }),
  ofPullRequest("assigned", "assigned", []),
  ofPullRequest("merged", "closed", ["pullRequest.merged"], {
    pull_request: { ...pullRequest, state: "closed", merged: true, merged_at: at, closed_at: at },
  }),
  ofPullRequest("closed", "closed", ["pullRequest.closed"], {
    pull_request: { ...pullRequest, state: "closed", closed_at: at },
  }),
  ofReview("approved", "pull_request_approved", ""),
  ofReview("rejected", "pull_request_rejected", "The null case is missing"),
  ofReview("comments on lines only", "pull_request_comment", ""),
  sample("a status failed", "status", ["checks.failed"], status),
  sample("a status passed", "status", ["checks.passed"], { ...status, state: "success" }),
  sample("a status pending", "status", [], { ...status, state: "pending" }),
  sample("a job of a run failed", "status", ["checks.failed"], { ...status, target_url: `${run.html_url}/jobs/0` }),
  sample("a job of a run passed", "status", [], {
    ...status,
    state: "success",
    target_url: "/gituser/webhooks/actions/runs/12/jobs/1",
  }),
  sample("a run failed", "workflow_run", ["checks.failed"], {
    action: "completed",
    workflow: { id: "ci.yaml", name: "CI" },
    workflow_run: run,
    repository,
    sender: user,
  }),
  sample("a run requested", "workflow_run", [], {
    action: "requested",
    workflow: { id: "ci.yaml", name: "CI" },
    workflow_run: { ...run, status: "queued", conclusion: "" },
    repository,
    sender: user,
  }),
  ofForgejo("a run of Forgejo failed", "action_run_failure", ["checks.failed"], { action: "failure", run: forgejoRun }),
  ofForgejo("a run of Forgejo on a pull request", "action_run_success", ["checks.passed"], {
    action: "success",
    run: { ...forgejoRun, status: "success", prettyref: "#4" },
    prior_status: "failure",
  }),
  sample("a release", "release", ["release.published"], {
    action: "published",
    release: {
      id: 8,
      tag_name: "v1",
      target_commitish: "main",
      name: "One",
      body: "",
      html_url: "https://gitea.example/gituser/webhooks/releases/tag/v1",
      draft: false,
      prerelease: true,
      published_at: at,
      author: user,
    },
    repository,
    sender: user,
  }),
  sample("a release edited", "release", [], { action: "updated", release: { id: 8 }, repository, sender: user }),
  sample("a wiki page", "wiki", [], { action: "created", page: "Home", comment: "", repository, sender: user }),
  sample("a package", "package", [], { action: "created", package: {}, sender: user }),
];
