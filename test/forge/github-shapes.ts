import type { ListedCommit } from "./commits.ts";
import type { KeptPullRequest, Place, RepositoryFacts } from "./state.ts";

// GitHub's own shapes, whole: `openapi.test.ts` holds them against its published description.

export interface Commits {
  readonly headSha: string;
  readonly baseSha: string;
}

const began = "2026-01-01T00:00:00Z";

/** `{ <name>_url: <base>/<name> }` for each name. */
function links(base: string, names: string): Record<string, string> {
  return Object.fromEntries(names.split(" ").map((name) => [`${name}_url`, `${base}/${name}`]));
}

export function userShape(webUrl: string, login: string) {
  const url = `${webUrl}/api/v3/users/${login}`;
  return {
    id: 1,
    node_id: "U_1",
    login,
    url,
    html_url: `${webUrl}/${login}`,
    gravatar_id: null,
    type: "User",
    site_admin: false,
    ...links(url, "avatar events followers following gists organizations received_events repos starred subscriptions"),
  };
}

function repositoryShape({ webUrl, owner, name }: Place) {
  const htmlUrl = `${webUrl}/${owner}/${name}`;
  const url = `${webUrl}/api/v3/repos/${owner}/${name}`;
  return {
    id: 1,
    node_id: "R_1",
    name,
    full_name: `${owner}/${name}`,
    owner: userShape(webUrl, owner),
    private: true,
    description: null,
    fork: false,
    default_branch: "main",
    archived: false,
    disabled: false,
    has_downloads: true,
    has_issues: true,
    has_projects: true,
    has_wiki: true,
    has_pages: false,
    homepage: null,
    language: null,
    license: null,
    forks: 0,
    forks_count: 0,
    open_issues: 0,
    open_issues_count: 0,
    size: 0,
    stargazers_count: 0,
    watchers: 0,
    watchers_count: 0,
    pushed_at: began,
    created_at: began,
    updated_at: began,
    ...links(
      url,
      "archive assignees blobs branches collaborators comments commits compare contents contributors deployments downloads events forks git_commits git_refs git_tags hooks issue_comment issue_events issues keys labels languages merges milestones notifications pulls releases stargazers statuses subscribers subscription tags teams trees",
    ),
    url,
    html_url: htmlUrl,
    clone_url: `${htmlUrl}.git`,
    git_url: `git://${new URL(htmlUrl).host}/${owner}/${name}.git`,
    ssh_url: `git@${new URL(htmlUrl).hostname}:${owner}/${name}.git`,
    svn_url: htmlUrl,
    mirror_url: null,
  };
}

/** The repository itself; what it does not say of itself is as of a token that may push. */
export function fullRepositoryShape(place: Place, facts: RepositoryFacts) {
  const push = facts.push ?? true;
  return {
    ...repositoryShape(place),
    has_discussions: false,
    network_count: 0,
    subscribers_count: 0,
    archived: facts.archived ?? false,
    disabled: facts.disabled ?? false,
    has_pull_requests: facts.hasPullRequests ?? true,
    allow_forking: facts.allowForking ?? true,
    fork: facts.forkOf !== undefined,
    permissions: { admin: false, maintain: false, push, triage: push, pull: true },
  };
}

export function ruleShapes({ owner, name }: Place, rules: NonNullable<RepositoryFacts["rules"]>) {
  return rules.map(({ type, pattern }) => ({
    type,
    ruleset_source_type: "Repository",
    ruleset_source: `${owner}/${name}`,
    ruleset_id: 1,
    ...(pattern !== undefined && { parameters: { name: "", negate: false, operator: "starts_with", pattern } }),
  }));
}

type Approvals = NonNullable<RepositoryFacts["approvals"]>;

export function approvalRuleShapes(place: Place, { excludesPusher, pushDismisses, isClassic }: Approvals) {
  if (isClassic === true) return [];
  const parameters = {
    dismiss_stale_reviews_on_push: pushDismisses ?? false,
    require_code_owner_review: false,
    require_last_push_approval: excludesPusher ?? false,
    required_approving_review_count: 1,
    required_review_thread_resolution: false,
  };
  return ruleShapes(place, [{ type: "pull_request" }]).map((rule) => ({ ...rule, parameters }));
}

/** https://docs.github.com/rest/branches/branch-protection#get-branch-protection. */
export function protectionShape({ excludesPusher, pushDismisses }: Approvals) {
  return {
    required_pull_request_reviews: {
      dismiss_stale_reviews: pushDismisses ?? false,
      require_code_owner_reviews: false,
      require_last_push_approval: excludesPusher ?? false,
      required_approving_review_count: 1,
    },
  };
}

export function commitShape({ webUrl, owner, name }: Place, commit: ListedCommit) {
  const repository = `${webUrl}/api/v3/repos/${owner}/${name}`;
  const url = `${repository}/commits/${commit.sha}`;
  const person = { name: commit.author, email: commit.email, date: commit.date };
  return {
    sha: commit.sha,
    node_id: "C_1",
    url,
    html_url: `${webUrl}/${owner}/${name}/commit/${commit.sha}`,
    comments_url: `${url}/comments`,
    commit: {
      url: `${repository}/git/commits/${commit.sha}`,
      author: person,
      committer: person,
      message: commit.message,
      comment_count: 0,
      tree: { sha: commit.tree, url: `${repository}/git/trees/${commit.tree}` },
      verification: { verified: false, reason: "unsigned", signature: null, payload: null, verified_at: null },
    },
    author: userShape(webUrl, owner),
    committer: userShape(webUrl, owner),
    parents: commit.parents.map((sha) => ({ sha, url: `${repository}/commits/${sha}` })),
  };
}

/** A fork has an id of its own. */
function headShape(place: Place, { head, headOwner }: KeptPullRequest, sha: string) {
  const { webUrl, name } = place;
  const owner = headOwner ?? place.owner;
  const repo = { ...repositoryShape({ webUrl, owner, name }), ...(headOwner !== null && { id: 2, fork: true }) };
  return { label: `${owner}:${head}`, ref: head, sha, repo, user: userShape(webUrl, owner) };
}

export function pullRequestShape(place: Place, pull: KeptPullRequest, { headSha, baseSha }: Commits) {
  const { webUrl, owner, name } = place;
  const user = userShape(webUrl, owner);
  const repo = repositoryShape(place);
  const htmlUrl = `${webUrl}/${owner}/${name}/pull/${pull.number}`;
  const url = `${repo.url}/pulls/${pull.number}`;
  const merged = pull.state === "merged";
  const endedAt = pull.state === "open" ? null : began;
  const addresses = {
    ...links(url, "comments commits review_comment review_comments statuses"),
    issue_url: `${repo.url}/issues/${pull.number}`,
    html_url: htmlUrl,
    url,
  };
  return {
    id: pull.number,
    node_id: `PR_${pull.number}`,
    number: pull.number,
    title: pull.title,
    body: pull.body,
    state: pull.state === "open" ? "open" : "closed",
    merged,
    merged_at: merged ? endedAt : null,
    closed_at: endedAt,
    created_at: began,
    updated_at: began,
    merge_commit_sha: null,
    merged_by: merged ? user : null,
    head: headShape(place, pull, headSha),
    base: { label: `${owner}:${pull.base}`, ref: pull.base, sha: baseSha, repo, user },
    user,
    assignee: null,
    labels: (pull.labels ?? []).map((label, index) => ({
      id: index + 1,
      node_id: `LA_${index + 1}`,
      url: `${url}/labels/${label}`,
      name: label,
      description: "",
      color: "ededed",
      default: false,
    })),
    draft: pull.draft ?? false,
    milestone: null,
    locked: false,
    author_association: "OWNER",
    auto_merge: null,
    maintainer_can_modify: false,
    mergeable: null,
    mergeable_state: "unknown",
    additions: 0,
    deletions: 0,
    changed_files: 0,
    comments: 0,
    commits: 1,
    review_comments: 0,
    ...addresses,
    diff_url: `${htmlUrl}.diff`,
    patch_url: `${htmlUrl}.patch`,
    _links: {
      self: { href: url },
      html: { href: htmlUrl },
      issue: { href: addresses.issue_url },
      comments: { href: `${url}/comments` },
      commits: { href: `${url}/commits` },
      statuses: { href: `${url}/statuses` },
      review_comments: { href: `${url}/review_comments` },
      review_comment: { href: `${url}/review_comment` },
    },
  };
}

export function installationShape({ webUrl, owner }: Place, appId: number) {
  const url = `${webUrl}/api/v3/app/installations/1`;
  return {
    id: 1,
    app_id: appId,
    app_slug: "offstage-test",
    target_id: 1,
    target_type: "User",
    account: userShape(webUrl, owner),
    single_file_name: null,
    repository_selection: "all",
    events: [],
    permissions: { contents: "write", pull_requests: "write" },
    access_tokens_url: `${url}/access_tokens`,
    repositories_url: `${webUrl}/api/v3/installation/repositories`,
    html_url: `${webUrl}/settings/installations/1`,
    created_at: began,
    updated_at: began,
    suspended_at: null,
    suspended_by: null,
  };
}
