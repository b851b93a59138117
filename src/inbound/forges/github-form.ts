import type { ForgeAccount, ForgeEvent } from "../../domain/automations/forge-event.ts";
import { accountOf, longest, mergedAs, most, pushedCommit, type ForgeHappening } from "./event.ts";
import { endOfText, identifier, integer, lines, list, present, required, text, type Untrusted } from "./payload.ts";

/** An account, as payloads of GitHub and Gitea have it. */
export type Account = Untrusted<{ id: unknown; login: unknown; type?: unknown }>;
/** Whether an account is a program's. */
export type IsBot = (account: NonNullable<Account>) => boolean;
/** A repository, likewise. */
export type Repository = Untrusted<{ html_url: unknown; full_name: unknown; default_branch?: unknown }>;
interface Label {
  id: unknown;
  name: unknown;
}
interface IssueOrPullRequest {
  number: unknown;
  title: unknown;
  body: unknown;
  html_url: unknown;
  state?: unknown;
}
/** An issue or, in events of comments, a pull request as an issue; likewise. */
export type Issue = Untrusted<
  IssueOrPullRequest & {
    id: unknown;
    labels?: Label[];
    assignees?: { id: unknown; login: unknown }[];
    user: { id: unknown; login: unknown };
    draft?: unknown;
    pull_request?: { html_url?: unknown; merged_at?: unknown };
  }
>;
/** A pull request, likewise. */
export type PullRequest = Untrusted<
  IssueOrPullRequest & {
    id: unknown;
    draft?: unknown;
    merged?: unknown;
    merged_at: unknown;
    /** Of an open one: a merge that the forge made to try it. */
    merge_commit_sha?: unknown;
    head: { ref: unknown; sha: unknown; repo?: { html_url: unknown } };
    base: { ref: unknown };
    labels?: Label[];
    user: { id: unknown; login: unknown };
  }
>;
/** A comment, likewise. */
export type Comment = Untrusted<{
  id: unknown;
  body: unknown;
  html_url: unknown;
  user: { id: unknown; login: unknown };
}>;

/** An account of a payload; null if there is none, as of a deleted user. */
export function account(given: Account, isBot: IsBot): ForgeAccount | null {
  return given == null ? null : accountOf(identifier(given.id), given.login, isBot(given));
}

/** The repository of a payload; null if there is none. */
export function repository(given: Repository): ForgeEvent["repository"] {
  const url = text(given?.html_url, longest.url);
  if (url === null) return null;
  const fullName = text(given?.full_name, longest.name) ?? "";
  return { url, fullName, defaultBranch: text(given?.default_branch, longest.name) };
}

/** An issue of a payload. @throws InvalidInputError if it has no number or address */
export function issue(given: Issue, isBot: IsBot): NonNullable<ForgeEvent["issue"]> {
  return {
    ...conversation(given, "issue"),
    state: given?.state === "closed" ? "closed" : "open",
    labels: labels(given?.labels),
    assignees: present(list(given?.assignees, most.accounts).map((each) => account(each, isBot))),
    author: account(given?.user, isBot),
  };
}

/** A pull request of a payload. @throws InvalidInputError if it has no number or address */
export function pullRequest(given: PullRequest, isBot: IsBot): NonNullable<ForgeEvent["pullRequest"]> {
  const branch = text(given?.head?.ref, longest.name);
  const sha = text(given?.head?.sha, longest.name);
  const isMerged = given?.merged === true || typeof given?.merged_at === "string";
  const closed = isMerged ? "merged" : "closed";
  return {
    ...conversation(given, "pull_request"),
    state: given?.state === "closed" ? closed : "open",
    draft: given?.draft === true,
    head:
      branch === null || sha === null
        ? null
        : { branch, sha, repositoryUrl: text(given?.head?.repo?.html_url, longest.url) },
    target: text(given?.base?.ref, longest.name),
    labels: labels(given?.labels),
    author: account(given?.user, isBot),
    ...(isMerged && mergedAs(given?.merge_commit_sha)),
  };
}

/** A pull request that a payload has as an issue. @throws InvalidInputError if it has no number or address */
export function pullRequestOfIssue(given: Issue, isBot: IsBot): NonNullable<ForgeEvent["pullRequest"]> {
  const closed = typeof given?.pull_request?.merged_at === "string" ? "merged" : "closed";
  return {
    ...conversation(given, "issue"),
    // The same address as in events that have the pull request itself.
    url: text(given?.pull_request?.html_url, longest.url) ?? conversation(given, "issue").url,
    state: given?.state === "closed" ? closed : "open",
    draft: given?.draft === true,
    head: null,
    target: null,
    labels: labels(given?.labels),
    author: account(given?.user, isBot),
  };
}

/** The common fields of issues and pull requests; bodies are null if they are empty. */
function conversation(given: Untrusted<IssueOrPullRequest>, name: string) {
  return {
    number: required(integer(given?.number), `${name}.number`),
    title: text(given?.title, longest.title) ?? "",
    body: text(given?.body, longest.body) ?? "",
    url: required(text(given?.html_url, longest.url), `${name}.html_url`),
  };
}

function labels(given: readonly Untrusted<Label>[] | null | undefined): string[] {
  return present(list(given, most.labels).map((label) => text(label?.name, longest.name)));
}

/** A comment of a payload. @throws InvalidInputError if it has no id */
export function comment(given: Comment, isBot: IsBot): NonNullable<ForgeEvent["comment"]> {
  return {
    id: required(identifier(given?.id), "comment.id"),
    body: text(given?.body, longest.body) ?? "",
    url: text(given?.html_url, longest.url),
    author: account(given?.user, isBot),
    path: null,
    line: null,
    hunk: null,
    threadId: null,
  };
}

/** The fields of a comment on lines of a change. */
export function place(
  path: unknown,
  { first, line }: { readonly first: unknown; readonly line: unknown },
  hunk: unknown,
): Pick<NonNullable<ForgeEvent["comment"]>, "path" | "line" | "firstLine" | "hunk"> {
  return { path: text(path, longest.url), ...lines(first, line), hunk: endOfText(hunk, longest.hunk) };
}

/** The commits of a push, the newest ones if there are many. */
export function commits(
  given: Untrusted<{ id: unknown; message: unknown; author: { name: unknown } }[]>,
): NonNullable<ForgeEvent["push"]>["commits"] {
  const all = list(given, Number.POSITIVE_INFINITY).slice(-most.commits);
  return present(all.map((commit) => pushedCommit(commit?.id, commit?.message, commit?.author?.name)));
}

/** A release, likewise. */
type ReleasePayload = NonNullable<
  Untrusted<{
    action: unknown;
    release: {
      id: unknown;
      tag_name: unknown;
      name: unknown;
      body: unknown;
      html_url: unknown;
      prerelease: unknown;
      published_at: unknown;
    };
  }>
>;

/** A release was published; drafts and changes are no events. */
export function release({ action, release: given }: ReleasePayload): ForgeHappening[] {
  if (action !== "published") return [];
  const published = {
    tag: required(text(given?.tag_name, longest.name), "release.tag_name"),
    name: text(given?.name, longest.title) ?? "",
    body: text(given?.body, longest.body) ?? "",
    url: required(text(given?.html_url, longest.url), "release.html_url"),
    prerelease: given?.prerelease === true,
  };
  const key = [identifier(given?.id), text(given?.published_at, longest.name) ?? ""];
  return [{ name: "release.published", key, subject: published.url, fields: { release: published } }];
}
