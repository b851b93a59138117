import type { ListedCommit } from "./commits.ts";
import type { Place, KeptPullRequest, RepositoryFacts } from "./state.ts";

// Gitea's own shapes: `swagger.test.ts` holds them against its published description.

const began = "2026-01-01T00:00:00Z";

export function userShape(webUrl: string, login: string) {
  return {
    id: 1,
    login,
    login_name: "",
    source_id: 0,
    full_name: "",
    email: `${login}@noreply.localhost`,
    avatar_url: `${webUrl}/avatars/1`,
    html_url: `${webUrl}/${login}`,
    language: "",
    is_admin: false,
    last_login: began,
    created: began,
    restricted: false,
    active: false,
    prohibit_login: false,
    location: "",
    website: "",
    description: "",
    visibility: "public",
    followers_count: 0,
    following_count: 0,
    starred_repos_count: 0,
  };
}

export function giteaRepositoryShape({ webUrl, owner, name }: Place, facts: RepositoryFacts) {
  const htmlUrl = `${webUrl}/${owner}/${name}`;
  return {
    id: 1,
    owner: userShape(webUrl, owner),
    name,
    full_name: `${owner}/${name}`,
    description: "",
    empty: false,
    private: true,
    fork: facts.forkOf !== undefined,
    ...(facts.forkOf !== undefined && { parent: { id: 1, name, full_name: `${facts.forkOf}/${name}` } }),
    template: false,
    mirror: facts.mirror ?? false,
    size: 0,
    language: "",
    languages_url: `${webUrl}/api/v1/repos/${owner}/${name}/languages`,
    html_url: htmlUrl,
    url: `${webUrl}/api/v1/repos/${owner}/${name}`,
    link: "",
    ssh_url: `git@${new URL(webUrl).hostname}:${owner}/${name}.git`,
    clone_url: `${htmlUrl}.git`,
    original_url: "",
    website: "",
    stars_count: 0,
    forks_count: 0,
    watchers_count: 0,
    open_issues_count: 0,
    open_pr_counter: 0,
    release_counter: 0,
    default_branch: "main",
    archived: facts.archived ?? false,
    created_at: began,
    updated_at: began,
    archived_at: "1970-01-01T00:00:00Z",
    permissions: { admin: false, push: facts.push ?? true, pull: true },
    has_code: true,
    has_issues: true,
    has_wiki: true,
    has_pull_requests: facts.hasPullRequests ?? true,
    has_projects: true,
    has_releases: true,
    has_packages: true,
    has_actions: true,
    ignore_whitespace_conflicts: false,
    allow_merge_commits: true,
    allow_rebase: true,
    allow_rebase_explicit: true,
    allow_squash_merge: true,
    allow_fast_forward_only_merge: true,
    allow_rebase_update: true,
    default_delete_branch_after_merge: false,
    default_merge_style: "merge",
    default_allow_maintainer_edit: false,
    avatar_url: "",
    internal: false,
    mirror_interval: "",
    object_format_name: "sha1",
    topics: [],
    licenses: [],
  };
}

/** A fork has an id of its own. */
function headRepository(place: Place, { headOwner }: KeptPullRequest) {
  if (headOwner === null) return { repo_id: 1, repo: giteaRepositoryShape(place, {}) };
  const repo = giteaRepositoryShape({ ...place, owner: headOwner }, { forkOf: place.owner });
  return { repo_id: 2, repo: { ...repo, id: 2 } };
}

export function giteaPullRequestShape(
  place: Place,
  pull: KeptPullRequest,
  {
    head,
    baseSha,
    isEmpty,
  }: {
    readonly head: { readonly ref: string; readonly sha: string };
    readonly baseSha: string;
    readonly isEmpty: boolean;
  },
) {
  const { webUrl, owner, name } = place;
  const htmlUrl = `${webUrl}/${owner}/${name}/pulls/${pull.number}`;
  const repo = giteaRepositoryShape(place, {});
  const merged = pull.state === "merged";
  return {
    id: pull.number,
    url: htmlUrl,
    number: pull.number,
    user: userShape(webUrl, owner),
    title: pull.title,
    body: pull.body,
    labels: (pull.labels ?? []).map((each, index) => ({ id: index + 1, name: each, color: "ededed" })),
    assignees: (pull.assignees ?? []).map((each) => userShape(webUrl, each)),
    state: pull.state === "open" ? "open" : "closed",
    draft: pull.draft ?? false,
    is_locked: false,
    comments: 0,
    additions: isEmpty ? 0 : 1,
    deletions: 0,
    changed_files: isEmpty ? 0 : 1,
    html_url: htmlUrl,
    diff_url: `${htmlUrl}.diff`,
    patch_url: `${htmlUrl}.patch`,
    mergeable: !isEmpty,
    merged,
    ...(merged && { merged_at: began, merge_commit_sha: head.sha, merged_by: userShape(webUrl, owner) }),
    allow_maintainer_edit: false,
    base: { label: pull.base, ref: pull.base, sha: baseSha, repo_id: 1, repo },
    head: { label: pull.head, ref: head.ref, sha: head.sha, ...headRepository(place, pull) },
    merge_base: pull.baseSha,
    created_at: began,
    updated_at: began,
    ...(pull.state !== "open" && { closed_at: began }),
    pin_order: 0,
  };
}

function authorOf({ author, email, date }: ListedCommit) {
  return { name: author, email, date };
}

export function giteaCommitShape({ webUrl, owner, name }: Place, commit: ListedCommit) {
  const url = `${webUrl}/api/v1/repos/${owner}/${name}/git/commits/${commit.sha}`;
  return {
    url,
    sha: commit.sha,
    created: commit.date,
    html_url: `${webUrl}/${owner}/${name}/commit/${commit.sha}`,
    commit: {
      url,
      author: authorOf(commit),
      committer: authorOf(commit),
      message: commit.message,
      tree: {
        url: `${webUrl}/api/v1/repos/${owner}/${name}/git/trees/${commit.tree}`,
        sha: commit.tree,
        created: began,
      },
    },
    author: userShape(webUrl, owner),
    committer: userShape(webUrl, owner),
    parents: commit.parents.map((sha) => ({ url: `${webUrl}/api/v1/repos/${owner}/${name}/git/commits/${sha}`, sha })),
  };
}

export function giteaBranchShape(name: string, sha: string, canPush: boolean) {
  return {
    name,
    commit: { id: sha, message: "", url: "" },
    protected: !canPush,
    required_approvals: 0,
    enable_status_check: false,
    status_check_contexts: [],
    user_can_push: canPush,
    user_can_merge: canPush,
    effective_branch_protection_name: canPush ? "" : name,
  };
}
