import type { ForgeAccount, ForgeEvent } from "../../domain/automations/forge-event.ts";
import type { DeliveryReader } from "../delivery.ts";
import { hasHubSignature } from "../signatures.ts";
import {
  accountOf,
  branchOf,
  commitOf,
  inboundEvents,
  longest,
  mergedAs,
  most,
  pushedCommit,
  pushOf,
  reviewEventName,
  standsAt,
} from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import { choice, identifier, integer, list, present, readPayload, required, text, type Untrusted } from "./payload.ts";

/** A user. */
export interface User {
  id?: unknown;
  name: unknown;
  type?: unknown;
}
interface Links {
  self?: ({ href: unknown } | null)[];
}
/** A repository. */
export interface Repository {
  id: unknown;
  slug: unknown;
  project: { key: unknown; type?: unknown };
  links?: Links;
}
interface Ref {
  id?: unknown;
  displayId: unknown;
  latestCommit: unknown;
  repository: Repository;
}
/** A pull request. */
export interface PullRequest {
  id: unknown;
  title: unknown;
  description?: unknown;
  state: unknown;
  draft?: unknown;
  updatedDate?: unknown;
  closedDate?: unknown;
  fromRef: Ref;
  toRef: Ref;
  author: { user: User };
  reviewers?: { user: User }[];
  properties?: { mergeCommit?: { id: unknown } };
}
/** The fields of deliveries; each has a part of them. */
export type Payload = NonNullable<
  Untrusted<{
    date?: unknown;
    actor: User;
    repository?: Repository;
    pullRequest?: PullRequest;
    participant?: { user: User; lastReviewedCommit?: unknown };
    addedReviewers?: User[];
    previousFromHash?: unknown;
    previousDraft?: unknown;
    comment?: {
      id: unknown;
      text: unknown;
      author: User;
      anchor?: { path?: unknown; line?: unknown };
    };
    commentParentId?: unknown;
    changes?: {
      ref: { id: unknown; displayId: unknown; type: unknown };
      fromHash: unknown;
      toHash: unknown;
      type: unknown;
    }[];
    commits?: { id: unknown; message: unknown; author?: { name: unknown } }[];
  }>
>;

/**
 * Webhooks of Bitbucket Data Center, of a repository or a project
 * (https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html). It delivers no builds, and has no
 * issues.
 */
export const bitbucketDataCenter: DeliveryReader = {
  verify: ({ headers, body }, secrets) => hasHubSignature(headers["x-hub-signature"], body, secrets),
  read(delivery) {
    const payload = readPayload(delivery);
    const envelope = payload as Payload;
    const of = repository(envelope.repository ?? envelope.pullRequest?.toRef?.repository);
    const read = choice(delivery.headers["x-event-key"], readers);
    const happenings = read?.(envelope, of?.url ?? null) ?? [];
    return {
      deliveryId: identifier(delivery.headers["x-request-id"]),
      events: inboundEvents(
        {
          forge: "bitbucketDataCenter",
          repository: of === null ? null : { ...of, url: gitUrl(of.url) },
          actor: account(envelope.actor),
          payload,
        },
        happenings,
      ),
    };
  },
};

const readers: Readonly<Record<string, (payload: Payload, repositoryUrl: string | null) => ForgeHappening[]>> = {
  "repo:refs_changed": push,
  "pr:opened": opened,
  "pr:modified": modified,
  "pr:from_ref_updated": (payload) => {
    const sha = text(payload.pullRequest?.fromRef?.latestCommit, longest.name);
    const updated = happening(payload, "pullRequest.updated", [
      text(payload.previousFromHash, longest.name) ?? "",
      sha,
    ]);
    return [{ ...updated, ...standsAt(updated.subject ?? "", sha, text(payload.date, longest.name)) }];
  },
  "pr:reviewer:updated": (payload) => reviewersAsked(payload, payload.addedReviewers, text(payload.date, longest.name)),
  "pr:reviewer:approved": (payload) => review(payload, "approved"),
  "pr:reviewer:needs_work": (payload) => review(payload, "changesRequested"),
  // The name of the same since 8.
  "pr:reviewer:changes_requested": (payload) => review(payload, "changesRequested"),
  "pr:reviewer:unapproved": (payload) => review(payload, "dismissed"),
  "pr:comment:added": commented,
  "pr:merged": (payload) => [happening(payload, "pullRequest.merged", [])],
  "pr:declined": (payload) => [happening(payload, "pullRequest.closed", [endOf(payload)])],
  "pr:deleted": (payload) => [happening(payload, "pullRequest.closed", ["deleted"])],
};

/** An account; those that only programs use are of type SERVICE. */
function account(given: Untrusted<User>): ForgeAccount | null {
  return accountOf(identifier(given?.id), given?.name, given?.type === "SERVICE");
}

/**
 * A repository. Deliveries of versions before 7 don't say where the server is: the address is then a path on it.
 */
function repository(given: Untrusted<Repository>): ForgeEvent["repository"] {
  const key = text(given?.project?.key, longest.name);
  const slug = text(given?.slug, longest.name);
  if (key === null || slug === null) return null;
  const home = given?.project?.type === "PERSONAL" ? `users/${key.replace(/^~/u, "")}` : `projects/${key}`;
  const path = `/${home}/repos/${slug}`;
  const self = text(list(given?.links?.self, 1)[0]?.href, longest.url);
  const url = self === null ? path : self.replace(/\/browse$/u, "");
  return { url, fullName: `${key}/${slug}`, defaultBranch: null };
}

/** The clone address of a repository, from the address of its pages; one without a server stays. */
function gitUrl(url: string): string {
  const [, server, kind, owner, slug] = /^(https?:.*)\/(projects|users)\/([^/]+)\/repos\/([^/]+)$/u.exec(url) ?? [];
  return server === undefined ? url : `${server}/scm/${kind === "users" ? "~" : ""}${owner}/${slug}`;
}

function pullRequest(given: Untrusted<PullRequest>): NonNullable<ForgeEvent["pullRequest"]> {
  const number = required(integer(given?.id), "pullRequest.id");
  const into = required(repository(given?.toRef?.repository), "pullRequest.toRef.repository");
  const from = repository(given?.fromRef?.repository);
  const branch = text(given?.fromRef?.displayId, longest.name);
  const sha = text(given?.fromRef?.latestCommit, longest.name);
  return {
    number,
    title: text(given?.title, longest.title) ?? "",
    body: text(given?.description, longest.body) ?? "",
    url: `${into.url}/pull-requests/${number}`,
    state: choice(given?.state, { MERGED: "merged", DECLINED: "closed" } as const) ?? "open",
    draft: given?.draft === true,
    head:
      branch === null || sha === null ? null : { branch, sha, repositoryUrl: from === null ? null : gitUrl(from.url) },
    target: text(given?.toRef?.displayId, longest.name),
    labels: [],
    author: account(given?.author?.user),
    ...mergedAs(given?.properties?.mergeCommit?.id),
  };
}

/** A happening about the payload's pull request. Its number is in each key. */
function happening(
  { pullRequest: given }: Payload,
  name: ForgeHappening["name"],
  key: readonly (string | null)[],
  more: ForgeHappening["fields"] = {},
): ForgeHappening {
  const about = pullRequest(given);
  return { name, key: [about.number, ...key], subject: about.url, fields: { pullRequest: about, ...more } };
}

/** When a pull request was closed: it may be opened and closed again. */
function endOf({ pullRequest: given, date }: Payload): string | null {
  return identifier(given?.closedDate) ?? text(date, longest.name);
}

function opened(payload: Payload): ForgeHappening[] {
  const reviewers = list(payload.pullRequest?.reviewers, most.accounts).map((each) => each?.user);
  return [
    happening(payload, "pullRequest.opened", ["opened"], { transition: "opened" }),
    ...reviewersAsked(payload, reviewers, "opened"),
  ];
}

/** Of other changes, only the end of a draft is an event. */
function modified(payload: Payload): ForgeHappening[] {
  if (payload.previousDraft !== true || payload.pullRequest?.draft !== false) return [];
  const at = identifier(payload.pullRequest.updatedDate) ?? text(payload.date, longest.name);
  return [happening(payload, "pullRequest.opened", ["ready", at], { transition: "readyForReview" })];
}

function reviewersAsked(payload: Payload, reviewers: Untrusted<User[]>, at: string | null): ForgeHappening[] {
  const asked = present(list(reviewers, most.accounts).map(account));
  return asked.map((assignee) =>
    happening(payload, "pullRequest.reviewRequested", [assignee.id, assignee.login, at], { assignee }),
  );
}

function review(payload: Payload, state: "approved" | "changesRequested" | "dismissed"): ForgeHappening[] {
  const author = account(payload.participant?.user) ?? account(payload.actor);
  const at = text(payload.date, longest.name);
  const key = [state, author?.login ?? null, at];
  const fields = { review: { id: null, state, at, body: "", url: null, author } };
  return [happening(payload, reviewEventName(state), key, fields)];
}

function commented(payload: Payload): ForgeHappening[] {
  const { comment: given, commentParentId: parent } = payload;
  const id = required(identifier(given?.id), "comment.id");
  const about = pullRequest(payload.pullRequest);
  const comment = {
    id,
    body: text(given?.text, longest.body) ?? "",
    url: `${about.url}/overview?commentId=${encodeURIComponent(id)}`,
    author: account(given?.author),
    path: text(given?.anchor?.path, longest.url),
    line: integer(given?.anchor?.line),
    hunk: null,
    threadId: identifier(parent) ?? id,
  };
  return [happening(payload, "pullRequest.commented", [id], { comment })];
}

/** One push may change several branches. Since 7.21 up to 5 of its commits are delivered, which belong to a single change. */
function push({ date, changes, commits: given }: Payload, repositoryUrl: string | null): ForgeHappening[] {
  const changed = list(changes, most.changes);
  return changed.flatMap((change) => {
    const branch = branchOf(change?.ref?.id);
    if (branch === null) return [];
    const [before, after] = [commitOf(change?.fromHash), commitOf(change?.toHash)];
    const commits = changed.length === 1 ? commitsOf(given) : [];
    const state = { created: change?.type === "ADD", deleted: change?.type === "DELETE" };
    const at = text(date, longest.name);
    return [pushOf(repositoryUrl, { branch, before, after, ...state, commits }, at)];
  });
}

function commitsOf(given: Payload["commits"]): NonNullable<ForgeEvent["push"]>["commits"] {
  return present(
    list(given, most.commits).map((commit) => pushedCommit(commit?.id, commit?.message, commit?.author?.name)),
  ).toReversed();
}
