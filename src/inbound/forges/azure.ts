import type { ForgeAccount, ForgeEvent } from "../../domain/automations/forge-event.ts";
import type { DeliveryReader } from "../delivery.ts";
import { hasToken } from "../signatures.ts";
import { account, labels, pullRequest, repository, reviewers } from "./azure-form.ts";
import type { Identity, PullRequest, Repository } from "./azure-form.ts";
import { repositoryOfWorkItem, workItemChanged, workItemCommented, workItemCreated } from "./azure-work-items.ts";
import {
  branchOf,
  checksOf,
  commitOf,
  inboundEvents,
  longest,
  most,
  pushedCommit,
  pushOf,
  reviewEventName,
} from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import { choice, identifier, list, present, readPayload, required, text, type Untrusted } from "./payload.ts";

type Envelope = NonNullable<
  Untrusted<{
    id: unknown;
    eventType: unknown;
    message?: { text?: unknown };
    createdDate?: unknown;
    resource: object;
  }>
>;

/**
 * Service hooks of Azure DevOps, of the kind "Web Hooks" (https://learn.microsoft.com/azure/devops/service-hooks/events). They are
 * not signed: the secret is the password of basic authentication (with any user name), or the header `X-Offstage-Token`.
 */
export const azure: DeliveryReader = {
  verify({ headers }, secrets) {
    return hasToken(passwordOf(headers["authorization"]), secrets) || hasToken(headers["x-offstage-token"], secrets);
  },
  read(delivery) {
    const payload = readPayload(delivery);
    const envelope = payload as Envelope;
    const resource = (envelope.resource ?? {}) as Resource;
    const of = isOfWorkItem(envelope)
      ? repositoryOfWorkItem(resource, envelope)
      : repository(resource.repository ?? resource.pullRequest?.repository);
    const read = choice(envelope.eventType, readers);
    const happenings = read?.(resource, envelope, of) ?? [];
    const actor = account(resource.pushedBy ?? resource.comment?.author ?? resource.requestedFor) ?? named(envelope);
    return {
      deliveryId: identifier(envelope.id),
      events: inboundEvents({ forge: "azure", repository: of, actor, payload }, happenings),
    };
  },
};

function isOfWorkItem({ eventType }: Envelope): boolean {
  return typeof eventType === "string" && eventType.startsWith("workitem.");
}

/**
 * Who changed a pull request: only the message says it, which begins with a name, perhaps of an account that the
 * delivery has.
 */
function named(envelope: Envelope): ForgeAccount | null {
  const { createdBy, reviewers: asked } = (envelope.resource ?? {}) as Resource;
  const message = text(envelope.message?.text, longest.title) ?? "";
  const is = (who: Untrusted<Identity>): boolean =>
    typeof who?.displayName === "string" && who.displayName !== "" && message.startsWith(`${who.displayName} `);
  return account([createdBy, ...list(asked, most.accounts)].find(is));
}

/** The password of basic authentication (RFC 7617), undefined if there is none. */
function passwordOf(authorization: string | undefined): string | undefined {
  const encoded = /^Basic +(?<encoded>[A-Za-z0-9+/]+={0,2})$/iu.exec(authorization ?? "")?.groups?.["encoded"];
  if (encoded === undefined) return undefined;
  const credentials = Buffer.from(encoded, "base64").toString("utf8");
  const colon = credentials.indexOf(":");
  return colon === -1 ? undefined : credentials.slice(colon + 1);
}

/** The fields read of resources of all events except work items'. */
export type Resource = NonNullable<
  Untrusted<
    PullRequest & {
      pullRequest?: PullRequest;
      pushedBy?: Identity;
      /** Of a push. */
      date?: unknown;
      requestedFor?: Identity;
      refUpdates?: { name: unknown; oldObjectId: unknown; newObjectId: unknown }[];
      commits?: { commitId: unknown; comment: unknown; author?: { name: unknown } }[];
      comment?: Comment;
      repository?: Repository;
    }
  >
>;
/** A comment on a pull request. */
export interface Comment {
  id: unknown;
  parentCommentId?: unknown;
  author: Identity;
  content: unknown;
  commentType?: unknown;
  isDeleted?: unknown;
  publishedDate?: unknown;
  lastContentUpdatedDate?: unknown;
  _links?: { self?: { href: unknown }; threads?: { href: unknown } };
}

const readers: Readonly<
  Record<string, (resource: Resource, envelope: Envelope, of: ForgeEvent["repository"]) => ForgeHappening[]>
> = {
  "git.push": (resource, _envelope, of) => push(resource, of),
  "git.pullrequest.created": pullRequestCreated,
  "git.pullrequest.updated": pullRequestUpdated,
  // Sent for each attempt to merge, that by which mergeability is found out too.
  "git.pullrequest.merged": (resource) => pullRequestEnded(resource),
  "ms.vss-code.git-pullrequest-comment-event": commented,
  "build.complete": build,
  "workitem.created": (resource, envelope) => workItemCreated(resource, envelope),
  "workitem.updated": (resource, envelope) => workItemChanged(resource, envelope),
  "workitem.commented": (resource, envelope) => workItemCommented(resource, envelope),
};

/** One push may change several branches. Its commits are those of a single change. */
function push(resource: Resource, of: ForgeEvent["repository"]): ForgeHappening[] {
  const updates = list(resource.refUpdates, most.changes);
  return updates.flatMap((update) => {
    const branch = branchOf(update?.name);
    if (branch === null) return [];
    const [before, after] = [commitOf(update?.oldObjectId), commitOf(update?.newObjectId)];
    const commits = updates.length === 1 ? commitsOf(resource.commits) : [];
    const state = { branch, before, after, created: before === null, deleted: after === null };
    return [pushOf(of?.url ?? null, { ...state, commits }, text(resource.date, longest.name))];
  });
}

function commitsOf(given: Resource["commits"]): NonNullable<ForgeEvent["push"]>["commits"] {
  return present(
    list(given, most.commits).map((commit) => pushedCommit(commit?.commitId, commit?.comment, commit?.author?.name)),
  ).toReversed();
}

function pullRequestCreated(resource: Resource): ForgeHappening[] {
  const about = pullRequest(resource);
  const base = { subject: about.url, fields: { pullRequest: about } };
  const opened: ForgeHappening = {
    ...base,
    name: "pullRequest.opened",
    key: [about.number],
    fields: { pullRequest: about, transition: "opened" },
  };
  return [opened, ...reviewersAsked(resource), ...labelled(resource)];
}

/**
 * A change of a pull request. Only the message says in words what changed; its end may hold the title, so only the part
 * before the words "pull request" counts.
 */
function pullRequestUpdated(resource: Resource, envelope: Envelope): ForgeHappening[] {
  const about = pullRequest(resource);
  if (about.state !== "open") return pullRequestEnded(resource);
  const message = text(envelope.message?.text, longest.title) ?? "";
  const [change = ""] = message.split(/ pull request\b/u, 1);
  const at = text(envelope.createdDate, longest.name);
  const base = { subject: about.url, fields: { pullRequest: about } };
  if (change.includes("updated the source branch")) {
    // Nothing says at which commit it was before, and it may go back to one.
    return [{ ...base, name: "pullRequest.updated", key: [about.number, about.head?.sha ?? null, at ?? ""] }];
  }
  if (/changed the reviewer list|as a(?: required| optional)? reviewer/u.test(change)) return reviewersAsked(resource);
  if (change.endsWith("tagged the")) return labelled(resource);
  const transition = change.endsWith("reactivated the")
    ? "reopened"
    : /(?:published|marked) the$/u.test(change) && !about.draft
      ? "readyForReview"
      : null;
  if (transition !== null) {
    const fields = { pullRequest: about, transition } as const;
    return [{ ...base, name: "pullRequest.opened", key: [about.number, transition, at], fields }];
  }
  return voted(resource, change, at);
}

function pullRequestEnded(resource: Resource): ForgeHappening[] {
  const about = pullRequest(resource);
  const base = { subject: about.url, fields: { pullRequest: about } };
  if (about.state === "merged") return [{ ...base, name: "pullRequest.merged", key: [about.number] }];
  if (about.state === "open") return [];
  return [{ ...base, name: "pullRequest.closed", key: [about.number, text(resource.closedDate, longest.name)] }];
}

/** All reviewers: nothing says who is new, so each one counts once for a pull request. */
function reviewersAsked(resource: Resource): ForgeHappening[] {
  const about = pullRequest(resource);
  return reviewers(resource).map(({ account: assignee }) => ({
    name: "pullRequest.reviewRequested",
    key: [about.number, assignee.id, assignee.login],
    subject: about.url,
    fields: { pullRequest: about, assignee },
  }));
}

/** All labels: nothing says which one is new, so each one counts once for a pull request. */
function labelled(resource: Resource): ForgeHappening[] {
  const about = pullRequest(resource);
  return labels(resource).map(({ key, label }) => ({
    name: "pullRequest.labeled",
    key: [about.number, key],
    subject: about.url,
    fields: { pullRequest: about, label },
  }));
}

/**
 * A vote of the reviewer with whose name the message begins, or that it was taken back
 * (https://learn.microsoft.com/rest/api/azure/devops/git/pull-request-reviewers: 10 and 5 approve, -5 and -10 ask for changes).
 */
function voted(resource: Resource, change: string, at: string | null): ForgeHappening[] {
  const voter = reviewers(resource).find(
    ({ displayName }) => displayName !== "" && change.startsWith(`${displayName} `),
  );
  const words = voter === undefined ? "" : change.slice(voter.displayName.length);
  const isVote = voter?.vote === 0 ? /\breset\b.*\bvote\b/u : /approved|waiting for the author|rejected/u;
  if (voter === undefined || !isVote.test(words)) return [];
  const about = pullRequest(resource);
  const state = voter.vote === 0 ? "dismissed" : voter.vote > 0 ? "approved" : "changesRequested";
  const review = { id: null, state, at, body: "", url: null, author: voter.account } as const;
  const key = [about.number, voter.account.id, voter.vote, at];
  return [{ name: reviewEventName(state), key, subject: about.url, fields: { pullRequest: about, review } }];
}

/** A comment of a person or program, not one of those by which Azure DevOps notes changes, nor an edited or deleted one. */
function commented(resource: Resource): ForgeHappening[] {
  const { comment: given, pullRequest: on } = resource;
  const published = text(given?.publishedDate, longest.name);
  const edited = text(given?.lastContentUpdatedDate, longest.name);
  if (given?.commentType === "system" || given?.isDeleted === true) return [];
  if (published !== null && edited !== null && published !== edited) return [];
  const about = pullRequest(on);
  const id = required(identifier(given?.id), "resource.comment.id");
  const href = text(given?._links?.threads?.href ?? given?._links?.self?.href, longest.url) ?? "";
  const threadId = /\/threads\/(?<id>\d{1,15})(?:\/|$)/iu.exec(href)?.groups?.["id"] ?? null;
  const comment = {
    // In each thread they begin at 1.
    id: threadId === null ? id : `${threadId}.${id}`,
    body: text(given?.content, longest.body) ?? "",
    url: threadId === null ? null : `${about.url}?discussionId=${threadId}`,
    author: account(given?.author),
    // The delivery does not have the place: the thread does.
    path: null,
    line: null,
    hunk: null,
    threadId,
  };
  const fields = { pullRequest: about, comment };
  return [
    { name: "pullRequest.commented", key: [about.number, threadId ?? published, id], subject: about.url, fields },
  ];
}

/** The fields read of a build. */
export type Build = NonNullable<
  Untrusted<{
    id: unknown;
    uri?: unknown;
    buildNumber: unknown;
    status?: unknown;
    result?: unknown;
    finishTime?: unknown;
    definition?: { name: unknown };
    sourceBranch?: unknown;
    sourceVersion?: unknown;
    sourceGetVersion?: unknown;
    /** Its cause; of a pull request's build `pr.sourceSha`. */
    triggerInfo?: Readonly<Record<string, unknown>>;
    /** JSON as text, in versions that have no such information. */
    parameters?: unknown;
    project?: { id: unknown };
    _links?: { web?: { href: unknown } };
    url?: unknown;
  }>
>;

/** A build ended. The result is `status` in version 1.0 of the resource. */
function build(resource: object, envelope: Envelope, of: ForgeEvent["repository"]): ForgeHappening[] {
  const given = resource as Build;
  const outcome = choice(given.result ?? given.status, { succeeded: "passed", failed: "failed" } as const);
  // Version 1.0 has branch and commit in one: LG:refs/heads/main:0123…
  const old = /^LG:(?<ref>.*):(?<sha>[0-9a-f]+)$/u.exec(text(given.sourceGetVersion, longest.name) ?? "")?.groups;
  // A pull request's build is of its merge with the target, which was never pushed.
  const sha = sourceCommit(given) ?? text(given.sourceVersion, longest.name) ?? old?.["sha"] ?? null;
  // A build of something else than git.
  if (outcome === null || sha === null) return [];
  const ref = text(given.sourceBranch, longest.name) ?? old?.["ref"] ?? "";
  const number = /^refs\/pull\/(?<number>\d{1,9})\//u.exec(ref)?.groups?.["number"];
  const id = required(identifier(given.id), "resource.id");
  const checks = {
    kind: "build",
    id,
    name: text(given.definition?.name, longest.name) ?? text(given.buildNumber, longest.name) ?? "",
    url: text(given._links?.web?.href ?? given.url, longest.url),
    sha,
    branch: branchOf(ref),
    pullRequests: number === undefined ? [] : [Number(number)],
  };
  const project = identifier(given.project?.id) ?? projectOf(envelope);
  // The stages of a build can be run again, after which it ends again.
  const run = [project ?? "", id, text(given.finishTime, longest.name) ?? ""];
  return [checksOf(of?.url ?? null, outcome, checks, run, "/pullrequest/")];
}

/** The commit of a pull request that its build checks (`reason` is `pullRequest`); null: the delivery does not say it. */
function sourceCommit({ triggerInfo, parameters }: Build): string | null {
  const sha = commitOf(triggerInfo?.["pr.sourceSha"]);
  if (sha !== null) return sha;
  const name = /"system\.pullRequest\.sourceCommitId"\s*:\s*"(?<sha>[0-9a-f]{40,64})"/u;
  return name.exec(text(parameters, longest.body) ?? "")?.groups?.["sha"] ?? null;
}

function projectOf(envelope: object): string | null {
  const { resourceContainers: containers } = envelope as NonNullable<
    Untrusted<{ resourceContainers?: { project?: { id: unknown } } }>
  >;
  return identifier(containers?.project?.id);
}
