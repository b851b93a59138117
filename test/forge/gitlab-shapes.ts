import { idOf } from "./feedback.ts";
import type { ListedCommit } from "./commits.ts";
import type { KeptPullRequest, Place, RepositoryFacts } from "./state.ts";

// GitLab's own shapes: `gitlab-openapi.test.ts` holds them against its published description.

const began = "2026-01-01T00:00:00.000Z";

export function gitLabUserShape(webUrl: string, username: string, id = 2) {
  return {
    id,
    username,
    name: username,
    state: "active",
    locked: false,
    avatar_url: null,
    web_url: `${webUrl}/${username}`,
  };
}

/** The part of a project that others name it by. */
function detailsShape({ webUrl, owner, name }: Place, id: number) {
  const url = `${webUrl}/${owner}/${name}`;
  return {
    id,
    description: null,
    name,
    name_with_namespace: `${owner.replaceAll("/", " / ")} / ${name}`,
    path: name,
    path_with_namespace: `${owner}/${name}`,
    created_at: began,
    default_branch: "main",
    tag_list: [],
    topics: [],
    ssh_url_to_repo: `git@${new URL(webUrl).hostname}:${owner}/${name}.git`,
    http_url_to_repo: `${url}.git`,
    web_url: url,
    readme_url: null,
    forks_count: 0,
    avatar_url: null,
    star_count: 0,
    last_activity_at: began,
    namespace: {
      id: 1,
      name: owner.split("/").at(-1) ?? "",
      path: owner.split("/").at(-1) ?? "",
      kind: "group",
      full_path: owner,
      parent_id: null,
      avatar_url: null,
      web_url: `${webUrl}/groups/${owner}`,
    },
  };
}

const isOn = (value: boolean | undefined): string => (value === false ? "disabled" : "enabled");

export function projectShape(
  place: Place,
  id: number,
  facts: RepositoryFacts,
  { importStatus, isFull }: { readonly importStatus: string; readonly isFull: boolean },
) {
  const member = { access_level: facts.push === false ? 20 : 30, notification_level: 3 };
  return {
    ...detailsShape(place, id),
    empty_repo: false,
    archived: facts.archived ?? false,
    visibility: "private",
    merge_requests_enabled: facts.hasPullRequests ?? true,
    repository_access_level: "enabled",
    merge_requests_access_level: isOn(facts.hasPullRequests),
    forking_access_level: isOn(facts.allowForking),
    creator_id: 1,
    import_url: null,
    import_type: facts.forkOf === undefined ? null : "fork",
    import_status: importStatus,
    import_error: null,
    mirror: facts.mirror ?? false,
    marked_for_deletion_on: facts.markedForDeletion === true ? "2026-01-08" : null,
    ...(facts.forkOf !== undefined && {
      forked_from_project: detailsShape({ ...place, owner: facts.forkOf }, 1),
    }),
    ...(isFull && {
      permissions:
        facts.silentOnRole === true
          ? { project_access: null, group_access: null }
          : { project_access: null, group_access: member },
    }),
  };
}

export function protectedBranchShapes(rules: NonNullable<RepositoryFacts["rules"]>) {
  return rules.map(({ pattern = "main", level = 40, userId = null }, index) => ({
    id: index + 1,
    name: pattern,
    push_access_levels: [
      {
        id: index + 1,
        access_level: level,
        access_level_description: level === 0 ? "No one" : "Maintainers",
        deploy_key_id: null,
        user_id: userId,
        group_id: null,
      },
    ],
    merge_access_levels: [],
    allow_force_push: false,
    unprotect_access_levels: [],
    code_owner_approval_required: false,
    inherited: false,
  }));
}

export function gitLabCommitShape({ webUrl, owner, name }: Place, commit: ListedCommit) {
  return {
    id: commit.sha,
    short_id: commit.sha.slice(0, 8),
    created_at: commit.date,
    parent_ids: commit.parents,
    title: commit.message,
    message: commit.message,
    author_name: commit.author,
    author_email: commit.email,
    authored_date: commit.date,
    committer_name: commit.author,
    committer_email: commit.email,
    committed_date: commit.date,
    trailers: {},
    extended_trailers: {},
    web_url: `${webUrl}/${owner}/${name}/-/commit/${commit.sha}`,
  };
}

export function gitLabBranchShape(place: Place, name: string, commit: ListedCommit | undefined, canPush: boolean) {
  return {
    name,
    ...(commit !== undefined && { commit: gitLabCommitShape(place, commit) }),
    merged: false,
    protected: name === "main",
    developers_can_push: false,
    developers_can_merge: false,
    can_push: canPush,
    default: name === "main",
    web_url: `${place.webUrl}/${place.owner}/${place.name}/-/tree/${name}`,
  };
}

/** What GitLab knows of a merge request beside its text. */
export interface Looked {
  readonly sha: string | null;
  readonly baseSha: string;
  readonly mergeable: boolean | null;
  readonly sourceId: number;
  readonly targetId: number;
  readonly squashSha: string | null;
}

function mergeStatus({ mergeable }: Looked) {
  if (mergeable === null) return { merge_status: "checking", detailed_merge_status: "checking", has_conflicts: false };
  return mergeable
    ? { merge_status: "can_be_merged", detailed_merge_status: "mergeable", has_conflicts: false }
    : { merge_status: "cannot_be_merged", detailed_merge_status: "conflict", has_conflicts: true };
}

/** As lists have it. */
export function mergeRequestBasicShape(place: Place, pull: KeptPullRequest, looked: Looked) {
  const { webUrl, owner, name } = place;
  const user = gitLabUserShape(webUrl, "tester");
  const reference = `!${pull.number}`;
  return {
    // Of the whole server: not the number that its address has.
    id: 1_000 + pull.number,
    iid: pull.number,
    project_id: looked.targetId,
    title: pull.title,
    description: pull.body === "" ? null : pull.body,
    state: pull.state === "open" ? "opened" : pull.state,
    created_at: began,
    updated_at: began,
    merged_by: pull.state === "merged" ? user : null,
    merge_user: pull.state === "merged" ? user : null,
    merged_at: pull.state === "merged" ? began : null,
    closed_by: pull.state === "closed" ? user : null,
    closed_at: pull.state === "closed" ? began : null,
    target_branch: pull.base,
    source_branch: pull.head,
    user_notes_count: 0,
    upvotes: 0,
    downvotes: 0,
    author: user,
    assignees: (pull.assignees ?? []).map((each) => gitLabUserShape(webUrl, each, idOf(each))),
    assignee: null,
    reviewers: (pull.reviewers ?? []).map((each) => gitLabUserShape(webUrl, each, idOf(each))),
    source_project_id: looked.sourceId,
    target_project_id: looked.targetId,
    labels: pull.labels ?? [],
    draft: /^(?:draft:|\[draft\]|\(draft\))/iu.test(pull.title),
    imported: false,
    imported_from: "none",
    work_in_progress: false,
    milestone: null,
    merge_when_pipeline_succeeds: false,
    ...mergeStatus(looked),
    merge_after: null,
    sha: looked.sha,
    merge_commit_sha: null,
    squash_commit_sha: looked.squashSha,
    discussion_locked: null,
    should_remove_source_branch: null,
    force_remove_source_branch: false,
    prepared_at: looked.sha === null ? null : began,
    reference,
    references: { short: reference, relative: reference, full: `${owner}/${name}${reference}` },
    web_url: `${webUrl}/${owner}/${name}/-/merge_requests/${pull.number}`,
    time_stats: { time_estimate: 0, total_time_spent: 0, human_time_estimate: null, human_total_time_spent: null },
    squash: false,
    squash_on_merge: false,
    task_completion_status: { count: 0, completed_count: 0 },
    blocking_discussions_resolved: true,
    approvals_before_merge: null,
  };
}

export function mergeRequestShape(place: Place, pull: KeptPullRequest, looked: Looked) {
  const { sha, baseSha } = looked;
  return {
    ...mergeRequestBasicShape(place, pull, looked),
    subscribed: true,
    changes_count: "1",
    latest_build_started_at: null,
    latest_build_finished_at: null,
    first_deployed_to_production_at: null,
    pipeline: null,
    head_pipeline: null,
    diff_refs: sha === null ? null : { base_sha: baseSha, head_sha: sha, start_sha: baseSha },
    merge_error: null,
    first_contribution: false,
    user: { can_merge: true },
  };
}
