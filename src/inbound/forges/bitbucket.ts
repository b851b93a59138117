import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import type { DeliveryReader } from "../delivery.ts";
import { hasHubSignature } from "../signatures.ts";
import { account, closedStates, commentOf, issue, pullRequest, repository } from "./bitbucket-form.ts";
import type { Payload, PullRequest, PushChange } from "./bitbucket-form.ts";
import { checksOf, commitOf, inboundEvents, longest, most, pushedCommit, pushOf, reviewEventName } from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import { choice, identifier, list, present, readPayload, required, text, type Untrusted } from "./payload.ts";

/**
 * Webhooks of Bitbucket Cloud, of a repository or a workspace (https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/).
 */
export const bitbucket: DeliveryReader = {
  verify: ({ headers, body }, secrets) => hasHubSignature(headers["x-hub-signature"], body, secrets),
  read(delivery) {
    const payload = readPayload(delivery);
    const envelope = payload as Payload;
    const of = repository(envelope.repository);
    const read = choice(delivery.headers["x-event-key"], readers);
    const happenings = read?.(envelope, of?.url ?? null) ?? [];
    return {
      // Equal for the attempts at one delivery.
      deliveryId: identifier(delivery.headers["x-request-uuid"]),
      events: inboundEvents(
        { forge: "bitbucket", repository: of, actor: account(envelope.actor), payload },
        happenings,
      ),
    };
  },
};

const readers: Readonly<Record<string, (payload: Payload, repositoryUrl: string | null) => ForgeHappening[]>> = {
  "repo:push": push,
  "repo:commit_status_created": commitStatus,
  "repo:commit_status_updated": commitStatus,
  "issue:created": issueCreated,
  "issue:updated": issueUpdated,
  "issue:comment_created": issueComment,
  "pullrequest:created": pullRequestCreated,
  "pullrequest:updated": pullRequestUpdated,
  "pullrequest:approved": (payload) => review(payload, "approved"),
  "pullrequest:changes_request_created": (payload) => review(payload, "changesRequested"),
  "pullrequest:unapproved": (payload) => review(payload, "dismissed"),
  "pullrequest:changes_request_removed": (payload) => review(payload, "dismissed"),
  "pullrequest:comment_created": pullRequestComment,
  "pullrequest:fulfilled": (payload) => pullRequestEnded(payload, "pullRequest.merged"),
  "pullrequest:rejected": (payload) => pullRequestEnded(payload, "pullRequest.closed"),
};

function pullRequestCreated({ pullrequest: given }: Payload): ForgeHappening[] {
  const about = pullRequest(given);
  const fields = { pullRequest: about, transition: "opened" } as const;
  const opened: ForgeHappening = { name: "pullRequest.opened", ...contentOf(given, about), subject: about.url, fields };
  return [opened, ...reviewersAsked(given, about)];
}

/** A change of anything about a pull request. */
function pullRequestUpdated({ pullrequest: given }: Payload): ForgeHappening[] {
  const about = pullRequest(given);
  const fields = { pullRequest: about };
  const updated: ForgeHappening = {
    name: "pullRequest.updated",
    ...contentOf(given, about),
    subject: about.url,
    fields,
  };
  return [updated, ...reviewersAsked(given, about)];
}

/**
 * No delivery says what changed, so what is new about a pull request is its commit, and whether it is a draft. A delivery for a
 * change of the text has the key of the one that reported the commit, be that the first one, and is a repetition of it, unless the branch
 * had another commit in between.
 */
function contentOf(
  given: Untrusted<PullRequest>,
  { number, head, draft }: ReturnType<typeof pullRequest>,
): Pick<ForgeHappening, "key" | "keyName" | "state"> {
  const key = [number, head?.sha ?? null, draft ? "draft" : "ready"];
  const at = text(given?.updated_on, longest.name);
  return { keyName: "pullRequest.updated", key, state: { about: `pull request ${number}`, value: key.join(" "), at } };
}

/** All reviewers: nothing says who is new, so each one counts once for a pull request. */
function reviewersAsked(
  given: Untrusted<PullRequest>,
  about: NonNullable<ForgeEvent["pullRequest"]>,
): ForgeHappening[] {
  return present(list(given?.reviewers, most.accounts).map(account)).map((assignee) => ({
    name: "pullRequest.reviewRequested",
    key: [about.number, assignee.id],
    subject: about.url,
    fields: { pullRequest: about, assignee },
  }));
}

/** A vote, or that one was taken back, which has the date of the vote. */
function review(payload: Payload, state: "approved" | "changesRequested" | "dismissed"): ForgeHappening[] {
  const about = pullRequest(payload.pullrequest);
  const given = payload.approval ?? payload.changes_request;
  const author = account(given?.user) ?? account(payload.actor);
  const at = text(given?.date, longest.name);
  const key = [about.number, state, author?.id ?? null, at];
  const fields = { pullRequest: about, review: { id: null, state, at, body: "", url: null, author } };
  return [{ name: reviewEventName(state), key, subject: about.url, fields }];
}

function pullRequestComment({ pullrequest: given, comment: said }: Payload): ForgeHappening[] {
  const about = pullRequest(given);
  const comment = commentOf(said);
  return [
    {
      name: "pullRequest.commented",
      key: [comment.id],
      subject: about.url,
      fields: { pullRequest: about, comment },
    },
  ];
}

function pullRequestEnded(
  { pullrequest: given }: Payload,
  name: "pullRequest.merged" | "pullRequest.closed",
): ForgeHappening[] {
  const about = pullRequest(given);
  // A declined pull request can't be opened again.
  return [{ name, key: [about.number], subject: about.url, fields: { pullRequest: about } }];
}

function issueCreated({ issue: given }: Payload): ForgeHappening[] {
  const about = issue(given);
  const [assignee] = about.assignees;
  const base = { key: [about.number], subject: about.url };
  const assigned: ForgeHappening[] =
    assignee === undefined ? [] : [{ ...base, name: "issue.assigned", fields: { issue: about, assignee } }];
  return [{ ...base, name: "issue.opened", fields: { issue: about, transition: "opened" } }, ...assigned];
}

/** A change of an issue, which comes with a comment about it. */
function issueUpdated({ issue: given, comment, changes }: Payload): ForgeHappening[] {
  const about = issue(given);
  const change = identifier(comment?.id) ?? text(given?.updated_on, longest.name);
  const base = { key: [about.number, change], subject: about.url };
  const [before, after] = [changes?.status?.old, changes?.status?.new];
  const isChanged = typeof after === "string" && closedStates.has(before) !== closedStates.has(after);
  const ended: ForgeHappening = closedStates.has(after)
    ? { ...base, name: "issue.closed", fields: { issue: about } }
    : { ...base, name: "issue.opened", fields: { issue: about, transition: "reopened" } };
  const assignee = account(changes?.assignee?.new);
  return [
    ...(isChanged ? [ended] : []),
    ...(assignee === null ? [] : [{ ...base, name: "issue.assigned" as const, fields: { issue: about, assignee } }]),
  ];
}

function issueComment({ issue: given, comment: said }: Payload): ForgeHappening[] {
  const about = issue(given);
  const comment = commentOf(said);
  return [{ name: "issue.commented", key: [comment.id], subject: about.url, fields: { issue: about, comment } }];
}

/** One push may change several branches; tags are passed over. */
function push({ push: given }: Payload, repositoryUrl: string | null): ForgeHappening[] {
  return list(given?.changes, most.changes).flatMap((change) => {
    const ref = change?.new ?? change?.old;
    const branch = text(ref?.name, longest.name);
    if (ref?.type !== "branch" || branch === null || branch === "") return [];
    const [before, after] = [commitOf(change?.old?.target?.hash), commitOf(change?.new?.target?.hash)];
    const state = { branch, before, after, created: before === null, deleted: change?.new == null };
    // Nothing in it says when it was pushed.
    return [pushOf(repositoryUrl, { ...state, commits: commits(change) }, null)];
  });
}

function commits(change: Untrusted<PushChange>): NonNullable<ForgeEvent["push"]>["commits"] {
  // The newest comes first.
  return present(
    list(change?.commits, most.commits).map((commit) =>
      pushedCommit(commit?.hash, commit?.message, commit?.author?.raw),
    ),
  ).toReversed();
}

/** The number of a pipeline of Bitbucket's own, by which its log can be read; null: another program's status. */
function pipelineIn(url: string | null): string | null {
  const results = /^https?:\/\/[^/]+\/[^/]+\/[^/]+\/(?:addon\/)?pipelines\/(?:home#!\/)?results\/(?<number>\d+)/u;
  return results.exec(url ?? "")?.groups?.["number"] ?? null;
}

function commitStatus({ commit_status: given }: Payload, repositoryUrl: string | null): ForgeHappening[] {
  const outcome = choice(given?.state, { SUCCESSFUL: "passed", FAILED: "failed" } as const);
  if (outcome === null) return [];
  const href = text(given?.links?.commit?.href, longest.url);
  const linked = href === null ? null : (/\/commit\/(?<sha>[0-9a-f]{7,64})$/u.exec(href)?.groups?.["sha"] ?? null);
  const sha = required(text(given?.commit?.hash, longest.name) ?? linked, "commit_status.commit.hash");
  const key = identifier(given?.key) ?? "";
  const url = text(given?.url, longest.url);
  const checks = {
    kind: "status",
    id: pipelineIn(url) ?? key,
    name: text(given?.name, longest.name) ?? key,
    url,
    sha,
    branch: text(given?.refname, longest.name),
    pullRequests: [],
  };
  // A build has its own address; a status of it may be set again with other words.
  return [checksOf(repositoryUrl, outcome, checks, [sha, key, url ?? ""], "/pull-requests/")];
}
