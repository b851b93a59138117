import type { ForgeAccount, ForgeEvent } from "../../domain/automations/forge-event.ts";
import { withNamesOf } from "./bitbucket-mentions.ts";
import { accountOf, longest, mergedAs } from "./event.ts";
import { choice, identifier, integer, present, required, text, type Untrusted } from "./payload.ts";

interface Links {
  html?: { href: unknown };
}
/** A person, a team or an app. */
export interface Account {
  type?: unknown;
  uuid?: unknown;
  account_id?: unknown;
  nickname?: unknown;
  username?: unknown;
  display_name?: unknown;
}
/** A repository. */
export interface Repository {
  uuid: unknown;
  full_name: unknown;
  links: Links;
  mainbranch?: { name: unknown };
}
interface Place {
  branch: { name: unknown };
  commit?: { hash: unknown };
  repository?: { links: Links };
}
/** A pull request. */
export interface PullRequest {
  id: unknown;
  title: unknown;
  description?: unknown;
  summary?: { raw: unknown };
  state: unknown;
  draft?: unknown;
  author: Account;
  source: Place;
  destination: Place;
  reviewers?: Account[];
  updated_on: unknown;
  merge_commit?: { hash: unknown };
  links: Links;
}
/** A text as it was written, and as it is shown. */
interface Content {
  raw: unknown;
  html?: unknown;
}
/** An issue. */
export interface Issue {
  id: unknown;
  title: unknown;
  content?: Content;
  state?: unknown;
  reporter?: Account;
  assignee?: Account;
  updated_on?: unknown;
  links: Links;
}
/** A comment on either. */
export interface Comment {
  id: unknown;
  content?: Content;
  user?: Account;
  parent?: { id: unknown };
  inline?: { path: unknown; from?: unknown; to?: unknown };
  links?: Links;
}
/** The fields of deliveries; each has a part of them. */
export type Payload = NonNullable<
  Untrusted<{
    actor: Account;
    repository: Repository;
    pullrequest?: PullRequest;
    issue?: Issue;
    comment?: Comment;
    changes?: { status?: Change<unknown>; assignee?: Change<Account> };
    approval?: { date: unknown; user: Account };
    changes_request?: { date: unknown; user: Account };
    push?: { changes: PushChange[] };
    commit_status?: CommitStatus;
  }>
>;
interface Change<Value> {
  old?: Value;
  new?: Value;
}
interface Ref {
  type: unknown;
  name: unknown;
  target?: { hash: unknown };
}
/** A push's change of one branch or tag. */
export interface PushChange {
  old?: Ref;
  new?: Ref;
  created?: unknown;
  closed?: unknown;
  commits?: { hash: unknown; message: unknown; author?: { raw?: unknown; user?: Account } }[];
}
/** A program's status of a commit. */
export interface CommitStatus {
  name?: unknown;
  key: unknown;
  state: unknown;
  url?: unknown;
  refname?: unknown;
  commit?: { hash: unknown };
  links?: { commit?: { href: unknown } };
}

/** An account; apps and access tokens have ones of type `app_user`. */
export function account(given: Untrusted<Account>): ForgeAccount | null {
  const name = given?.nickname ?? given?.username ?? given?.display_name;
  const isBot = typeof given?.type === "string" && /^app_?user$/iu.test(given.type);
  return accountOf(identifier(given?.uuid) ?? identifier(given?.account_id), name, isBot);
}

/** The repository of a delivery; null if there is none. */
export function repository(given: Untrusted<Repository>): ForgeEvent["repository"] {
  const url = text(given?.links?.html?.href, longest.url);
  if (url === null) return null;
  const fullName = text(given?.full_name, longest.name) ?? "";
  return { url, fullName, defaultBranch: text(given?.mainbranch?.name, longest.name) };
}

/** A pull request. @throws InvalidInputError if it has no number or address */
export function pullRequest(given: Untrusted<PullRequest>): NonNullable<ForgeEvent["pullRequest"]> {
  const branch = text(given?.source?.branch?.name, longest.name);
  const sha = text(given?.source?.commit?.hash, longest.name);
  return {
    number: required(integer(given?.id), "pullrequest.id"),
    title: text(given?.title, longest.title) ?? "",
    body: text(given?.description ?? given?.summary?.raw, longest.body) ?? "",
    url: required(text(given?.links?.html?.href, longest.url), "pullrequest.links.html.href"),
    state: choice(given?.state, { MERGED: "merged", DECLINED: "closed", SUPERSEDED: "closed" } as const) ?? "open",
    draft: given?.draft === true,
    head:
      branch === null || sha === null
        ? null
        : { branch, sha, repositoryUrl: text(given?.source?.repository?.links?.html?.href, longest.url) },
    target: text(given?.destination?.branch?.name, longest.name),
    labels: [],
    author: account(given?.author),
    ...mergedAs(given?.merge_commit?.hash),
  };
}

/** The text of a comment or description. */
function textOf(given: Untrusted<Content>): string {
  return withNamesOf(text(given?.raw, longest.body) ?? "", text(given?.html, longest.body) ?? "");
}

/** A comment. @throws InvalidInputError if it has no id */
export function commentOf(given: Untrusted<Comment>): NonNullable<ForgeEvent["comment"]> {
  const id = required(identifier(given?.id), "comment.id");
  return {
    id,
    body: textOf(given?.content),
    url: text(given?.links?.html?.href, longest.url),
    author: account(given?.user),
    path: text(given?.inline?.path, longest.url),
    line: integer(given?.inline?.to ?? given?.inline?.from),
    hunk: null,
    threadId: identifier(given?.parent?.id) ?? id,
  };
}

/** States of the issue tracker in which no more work on an issue is expected. */
export const closedStates = new Set<unknown>(["resolved", "invalid", "duplicate", "wontfix", "closed"]);

/** An issue. @throws InvalidInputError if it has no number or address */
export function issue(given: Untrusted<Issue>): NonNullable<ForgeEvent["issue"]> {
  return {
    number: required(integer(given?.id), "issue.id"),
    title: text(given?.title, longest.title) ?? "",
    body: textOf(given?.content),
    url: required(text(given?.links?.html?.href, longest.url), "issue.links.html.href"),
    state: closedStates.has(given?.state) ? "closed" : "open",
    labels: [],
    assignees: present([account(given?.assignee)]),
    author: account(given?.reporter),
  };
}
