import { createHash } from "node:crypto";
import type { ListedCommit } from "./commits.ts";
import type { KeptComment, KeptPullRequest, KeptStatus, Place, RepositoryFacts } from "./state.ts";

const began = "2026-01-01T00:00:00.000000+00:00";

/** An id as Bitbucket's, of whatever has this name. */
export function uuidOf(name: string): string {
  const hex = createHash("sha256").update(name).digest("hex");
  return `{${[hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-")}}`;
}

export function bitbucketAccountShape(name: string, id = `557058:${name}`) {
  return {
    type: "user",
    uuid: uuidOf(name),
    account_id: id,
    nickname: name,
    display_name: name,
    links: {},
  };
}

/** In other things, as pull requests. */
export function shortRepositoryShape({ webUrl, owner, name }: Place) {
  return {
    type: "repository",
    uuid: uuidOf(`${owner}/${name}`),
    full_name: `${owner}/${name}`,
    name,
    links: { html: { href: `${webUrl}/${owner}/${name}` } },
  };
}

export function bitbucketRepositoryShape(place: Place, facts: RepositoryFacts) {
  return {
    ...shortRepositoryShape(place),
    is_private: true,
    scm: "git",
    description: "",
    created_on: began,
    updated_on: began,
    size: 1,
    language: "",
    has_issues: (facts.issues ?? []).length > 0,
    has_wiki: false,
    fork_policy: facts.allowForking === false ? "no_forks" : "allow_forks",
    mainbranch: { type: "branch", name: "main" },
    ...(facts.forkOf !== undefined && { parent: shortRepositoryShape({ ...place, owner: facts.forkOf }) }),
  };
}

export function bitbucketPullRequestShape(
  place: Place,
  pull: KeptPullRequest,
  { sha, isOne }: { readonly sha: string; readonly isOne: boolean },
) {
  const { webUrl, owner, name } = place;
  const at = `${webUrl}/2.0/repositories/${owner}/${name}/pullrequests/${pull.number}`;
  const reviewers = (pull.reviewers ?? []).map((each) => bitbucketAccountShape(each));
  return {
    type: "pullrequest",
    id: pull.number,
    title: pull.title,
    description: pull.body,
    summary: { raw: pull.body, markup: "markdown", html: "" },
    state: { open: "OPEN", merged: "MERGED", closed: "DECLINED" }[pull.state],
    draft: pull.draft ?? false,
    author: bitbucketAccountShape("tester"),
    source: {
      branch: { name: pull.head },
      // Bitbucket shortens it.
      commit: { hash: sha.slice(0, 12) },
      repository: shortRepositoryShape({ ...place, owner: pull.headOwner ?? owner }),
    },
    destination: {
      branch: { name: pull.base },
      commit: { hash: pull.baseSha.slice(0, 12) },
      repository: shortRepositoryShape(place),
    },
    comment_count: 0,
    task_count: 0,
    close_source_branch: false,
    reason: "",
    created_on: pull.openedOn,
    updated_on: new Date().toISOString(),
    ...(isOne && { reviewers, participants: [] }),
    links: {
      self: { href: at },
      html: { href: `${webUrl}/${owner}/${name}/pull-requests/${pull.number}` },
      commits: { href: `${at}/commits` },
      comments: { href: `${at}/comments` },
      decline: { href: `${at}/decline` },
    },
  };
}

export function bitbucketCommitShape({ webUrl, owner, name }: Place, commit: ListedCommit) {
  return {
    type: "commit",
    hash: commit.sha,
    date: commit.date,
    message: commit.message,
    author: { type: "author", raw: `${commit.author} <${commit.email}>` },
    parents: commit.parents.map((hash) => ({ type: "commit", hash })),
    links: { html: { href: `${webUrl}/${owner}/${name}/commits/${commit.sha}` } },
  };
}

export function bitbucketCommentShape({ webUrl, owner, name }: Place, comment: KeptComment) {
  const href = `${webUrl}/${owner}/${name}/pull-requests/${comment.number}/_/diff#comment-${comment.id}`;
  return {
    type: "pullrequest_comment",
    id: comment.id,
    content: { raw: comment.body, markup: "markdown", html: "" },
    created_on: comment.createdAt,
    updated_on: comment.createdAt,
    user: bitbucketAccountShape("tester"),
    deleted: false,
    ...(comment.lines !== undefined && { inline: { path: comment.lines.path, from: null, to: comment.lines.line } }),
    ...(comment.thread !== null &&
      comment.thread !== String(comment.id) && { parent: { type: "pullrequest_comment", id: Number(comment.thread) } }),
    links: { html: { href } },
  };
}

export function bitbucketStatusShape({ webUrl, owner, name }: Place, { sha, ...status }: KeptStatus, key: string) {
  return {
    type: "build",
    key,
    ...status,
    created_on: began,
    updated_on: began,
    links: { commit: { href: `${webUrl}/2.0/repositories/${owner}/${name}/commit/${sha}` } },
  };
}
