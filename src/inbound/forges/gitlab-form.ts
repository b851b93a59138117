import type { ForgeAccount, ForgeEvent } from "../../domain/automations/forge-event.ts";
import { accountOf, longest, most } from "./event.ts";
import { choice, identifier, integer, list, present, required, text, type Untrusted } from "./payload.ts";

/** The context of readers in addition to the payload. */
export interface Around {
  readonly projectUrl: string;
  readonly actor: ForgeAccount | null;
}

/** A user. Older versions leave the id out. */
export interface User {
  id?: unknown;
  username: unknown;
}
/** A project; in lists of other objects only its address. */
export interface Project {
  web_url: unknown;
  path_with_namespace: unknown;
  default_branch: unknown;
}
/** A label. */
export interface Label {
  id: unknown;
  title: unknown;
}
/** The common fields of issues and merge requests. */
interface IssueOrMergeRequest {
  id: unknown;
  iid: unknown;
  title: unknown;
  description: unknown;
  state: unknown;
  author_id: unknown;
  labels?: Label[];
}
/** An issue, as the attributes of its own events and beside its comments. */
export type Issue = IssueOrMergeRequest;
/** A merge request, likewise. */
export interface MergeRequest extends IssueOrMergeRequest {
  source_branch: unknown;
  target_branch: unknown;
  draft?: unknown;
  /** The name of `draft` before GitLab 14. */
  work_in_progress?: unknown;
  source?: { web_url: unknown };
  last_commit?: { id: unknown };
}

/**
 * Users that programs have: of access tokens of projects and groups, of service accounts, and GitLab's own
 * (https://docs.gitlab.com/user/project/settings/project_access_tokens/#bot-users-for-projects,
 * https://docs.gitlab.com/administration/internal_users/).
 */
const botName =
  /^(?:(?:project|group)_\d+_bot(?:_?[0-9a-z]+)?|service_account_.*|(?:admin|alert|automation|llm|migration|security|security-policy|support|visual-review)-bot\d*|GitLabDuo|GitLab-Security-Bot|duo-.*)$/u;

/** An account; null if there is none, as of a deleted user. */
export function account(given: Untrusted<User>): ForgeAccount | null {
  const { username } = given ?? {};
  return accountOf(identifier(given?.id), username, typeof username === "string" && botName.test(username));
}

/** The project of a delivery; null if there is none. */
export function repository(given: Untrusted<Project>): ForgeEvent["repository"] {
  const url = text(given?.web_url, longest.url);
  if (url === null) return null;
  const fullName = text(given?.path_with_namespace, longest.name) ?? "";
  return { url, fullName, defaultBranch: text(given?.default_branch, longest.name) };
}

/** Titles of labels. */
export function labels(given: Untrusted<Label[]>): string[] {
  return present(list(given, most.labels).map((label) => text(label?.title, longest.name)));
}

/** Accounts of a list. */
export function accounts(given: Untrusted<User[]>): ForgeAccount[] {
  return present(list(given, most.accounts).map(account));
}

/**
 * The author of something, of whom a delivery says only the id, unless it is one of the users that it names.
 * @param others users that the delivery names
 */
function author(id: unknown, others: readonly (ForgeAccount | null)[]): ForgeAccount | null {
  const wanted = identifier(id);
  return wanted === null ? null : (others.find((other) => other?.id === wanted) ?? null);
}

/**
 * An issue. Its address is made of the project's, so that it is the same beside a comment, in which GitLab leaves it out.
 * @throws InvalidInputError if it has no number
 */
export function issue(
  given: Untrusted<Issue>,
  projectUrl: string,
  assignees: ForgeAccount[],
  named: readonly (ForgeAccount | null)[],
): NonNullable<ForgeEvent["issue"]> {
  const number = required(integer(given?.iid), "iid");
  return {
    ...words(given),
    number,
    url: `${projectUrl}/-/issues/${number}`,
    state: given?.state === "closed" ? "closed" : "open",
    assignees,
    author: author(given?.author_id, named),
  };
}

/** A merge request, with its address made likewise. @throws InvalidInputError if it has no number */
export function mergeRequest(
  given: Untrusted<MergeRequest>,
  projectUrl: string,
  named: readonly (ForgeAccount | null)[],
): NonNullable<ForgeEvent["pullRequest"]> {
  const number = required(integer(given?.iid), "iid");
  const branch = text(given?.source_branch, longest.name);
  const sha = text(given?.last_commit?.id, longest.name);
  return {
    ...words(given),
    number,
    url: `${projectUrl}/-/merge_requests/${number}`,
    state: choice(given?.state, { merged: "merged", closed: "closed" } as const) ?? "open",
    draft: (given?.draft ?? given?.work_in_progress) === true,
    head:
      branch === null || sha === null
        ? null
        : { branch, sha, repositoryUrl: text(given?.source?.web_url, longest.url) },
    target: text(given?.target_branch, longest.name),
    author: author(given?.author_id, named),
  };
}

function words(given: Untrusted<IssueOrMergeRequest>) {
  return {
    title: text(given?.title, longest.title) ?? "",
    body: text(given?.description, longest.body) ?? "",
    labels: labels(given?.labels),
  };
}
