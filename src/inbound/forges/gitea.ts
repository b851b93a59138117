import type { InboundDelivery, DeliveryReader } from "../delivery.ts";
import { hasHmac, hasHubSignature } from "../signatures.ts";
import { gitPush, inboundEvents, longest, pushOf } from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import { actionRun, status, workflowRun } from "./gitea-checks.ts";
import {
  account,
  comment,
  commits,
  issue,
  pullRequest,
  pullRequestOfIssue,
  release,
  repository,
} from "./github-form.ts";
import type { Account, Comment, IsBot, Issue, PullRequest, Repository } from "./github-form.ts";
import { choice, identifier, list, readPayload, text, type Untrusted } from "./payload.ts";

/**
 * Webhooks of Gitea and Forgejo, of a repository, an organization or the whole server. The payloads follow GitHub's, with less in
 * them (https://docs.gitea.com/usage/webhooks, https://forgejo.org/docs/latest/user/webhooks/; `modules/structs/hook.go` of both).
 */
export const gitea: DeliveryReader = {
  verify({ headers, body }, secrets) {
    const bare = headers["x-forgejo-signature"] ?? headers["x-gitea-signature"];
    if (bare !== undefined) return hasHmac(bare, body, secrets, { algorithm: "sha256", encoding: "hex" });
    return hasHubSignature(headers["x-hub-signature-256"], body, secrets);
  },
  read(delivery) {
    const payload = readPayload(delivery);
    const envelope = payload as NonNullable<Untrusted<{ repository: Repository; sender: Account }>> & {
      repository?: Repository;
      sender?: Account;
      run?: Untrusted<{ repository?: Repository; trigger_user?: Account }>;
    };
    const surroundings = {
      forge: "gitea",
      // Forgejo's deliveries of runs have both in the run.
      repository: repository(envelope.repository ?? envelope.run?.repository),
      actor: account(envelope.sender ?? envelope.run?.trigger_user, isBot),
      payload,
    } as const;
    const read = choice(eventOf(delivery), readers);
    const happenings = read?.(payload, surroundings.repository?.url ?? null) ?? [];
    const { "x-forgejo-delivery": forgejo, "x-gitea-delivery": id } = delivery.headers;
    return { deliveryId: identifier(forgejo ?? id), events: inboundEvents(surroundings, happenings) };
  },
};

function eventOf({ headers }: InboundDelivery): string | undefined {
  return headers["x-forgejo-event"] ?? headers["x-gitea-event"] ?? headers["x-github-event"];
}

/** Users of the server itself, which have ids below 0 (`models/user/user_system.go`), and users called like apps on GitHub. */
const isBot: IsBot = ({ id, login }) =>
  (typeof id === "number" && id < -1) ||
  (typeof login === "string" && /\[bot\]$|^(?:gitea|forgejo)-actions$/u.test(login));

/** By the header of the event. Checks are in their own file. */
const readers: Readonly<Record<string, (payload: object, repositoryUrl: string | null) => ForgeHappening[]>> = {
  issues,
  issue_comment: issueComment,
  pull_request: pullRequests,
  pull_request_approved: (payload) => review(payload, "approved"),
  pull_request_rejected: (payload) => review(payload, "changesRequested"),
  pull_request_comment: (payload, repositoryUrl) =>
    // Both kinds of comments have this name: in a review, and in the conversation.
    "review" in payload ? review(payload, "commented") : issueComment(payload, repositoryUrl),
  push,
  delete: deletion,
  status,
  workflow_run: workflowRun,
  action_run_failure: actionRun,
  action_run_success: actionRun,
  action_run_recover: actionRun,
  release,
};

interface Label {
  id: unknown;
  name: unknown;
}
interface Changes {
  title?: { from: unknown };
  /**
   * In newer versions of Gitea. In others, and in Forgejo, all labels are in the issue and nothing says which one is
   * new.
   */
  added_labels?: Label[];
}
type IssuePayload = NonNullable<Untrusted<{ action: unknown; changes?: Changes }>> & {
  issue?: Issue & Untrusted<{ updated_at: unknown; closed_at?: unknown }>;
};

function issues(payload: object): ForgeHappening[] {
  const { action, issue: given, changes } = payload as IssuePayload;
  const known = choice(action, {
    opened: "opened",
    reopened: "reopened",
    closed: "closed",
    assigned: "assigned",
    label_updated: "labeled",
  } as const);
  if (known === null) return [];
  const about = issue(given, isBot);
  const id = identifier(given?.id);
  const changedAt = text(given?.updated_at, longest.name);
  const base = { subject: about.url, fields: { issue: about } };
  switch (known) {
    case "opened":
      return [{ ...base, name: "issue.opened", key: [id], fields: { issue: about, transition: "opened" } }];
    case "reopened":
      return [
        { ...base, name: "issue.opened", key: [id, changedAt], fields: { issue: about, transition: "reopened" } },
      ];
    case "closed":
      return [{ ...base, name: "issue.closed", key: [id, text(given?.closed_at, longest.name) ?? changedAt] }];
    case "labeled":
      return addedLabels(given?.labels, changes, changedAt).map(({ key, label }) => ({
        ...base,
        name: "issue.labeled",
        key: [id, ...key],
        fields: { issue: about, label },
      }));
    case "assigned":
      // Nothing says who is new, so each one counts once for an issue.
      return about.assignees.map((assignee) => ({
        ...base,
        name: "issue.assigned",
        key: [id, assignee.id],
        fields: { issue: about, assignee },
      }));
  }
}

/**
 * Labels that were added. If the delivery does not say which, all that are there, each with the same key as in the next delivery:
 * a label counts once for an issue then, however often others are changed.
 */
function addedLabels(
  all: Untrusted<Label[]>,
  changes: Untrusted<Changes>,
  changedAt: string | null,
): { key: (string | null)[]; label: string }[] {
  const added = changes?.added_labels;
  return list(Array.isArray(added) ? added : all).flatMap((given) => {
    const label = text(given?.name, longest.name);
    if (label === null) return [];
    const id = identifier(given?.id) ?? label;
    return [{ key: Array.isArray(added) ? [id, changedAt] : [id], label }];
  });
}

type CommentPayload = NonNullable<Untrusted<{ action: unknown; is_pull: unknown }>> & {
  issue?: Issue;
  /** Older versions leave it out. */
  pull_request?: PullRequest;
  comment?: Comment;
};

function issueComment(payload: object, _repositoryUrl: string | null): ForgeHappening[] {
  const { action, issue: on, pull_request: pull, comment: given, is_pull: isPull } = payload as CommentPayload;
  if (action !== "created") return [];
  const said = comment(given, isBot);
  if (isPull === true || on?.pull_request != null || pull != null) {
    const about = pull == null ? pullRequestOfIssue(on, isBot) : pullRequest(pull, isBot);
    const fields = { pullRequest: about, comment: said };
    return [{ name: "pullRequest.commented", key: [said.id], subject: about.url, fields }];
  }
  const about = issue(on, isBot);
  return [{ name: "issue.commented", key: [said.id], subject: about.url, fields: { issue: about, comment: said } }];
}

type PullRequestPayload = NonNullable<
  Untrusted<{ action: unknown; changes?: Changes; review?: { type: unknown; content: unknown } }>
> & {
  pull_request?: PullRequest & Untrusted<{ updated_at: unknown; closed_at?: unknown; labels?: Label[] }>;
  requested_reviewer?: Account;
  sender?: Account;
};

function pullRequests(payload: object): ForgeHappening[] {
  const { action, pull_request: given, changes, requested_reviewer: asked } = payload as PullRequestPayload;
  const known = choice(action, {
    opened: "opened",
    reopened: "reopened",
    edited: "edited",
    synchronized: "updated",
    closed: "closed",
    label_updated: "labeled",
    review_requested: "reviewRequested",
  } as const);
  if (known === null) return [];
  const about = pullRequest(given, isBot);
  const id = identifier(given?.id);
  const changedAt = text(given?.updated_at, longest.name);
  const base = { subject: about.url, fields: { pullRequest: about } };
  const opened = (transition: "opened" | "reopened" | "readyForReview"): ForgeHappening[] => [
    {
      ...base,
      name: "pullRequest.opened",
      key: transition === "opened" ? [id] : [id, transition, changedAt],
      fields: { pullRequest: about, transition },
    },
  ];
  switch (known) {
    case "opened":
    case "reopened":
      return opened(known);
    case "edited":
      // A draft is one whose title begins so, with the server's settings as they come.
      return /^\s*(?:WIP:|\[WIP\])/iu.test(text(changes?.title?.from, longest.title) ?? "") && !about.draft
        ? opened("readyForReview")
        : [];
    case "updated":
      // Nothing says at which commit it was before, and it may go back to one.
      return [{ ...base, name: "pullRequest.updated", key: [id, about.head?.sha ?? null, changedAt ?? ""] }];
    case "closed":
      return about.state === "merged"
        ? [{ ...base, name: "pullRequest.merged", key: [id] }]
        : [{ ...base, name: "pullRequest.closed", key: [id, text(given?.closed_at, longest.name) ?? changedAt] }];
    case "labeled":
      return addedLabels(given?.labels, changes, changedAt).map(({ key, label }) => ({
        ...base,
        name: "pullRequest.labeled",
        key: [id, ...key],
        fields: { pullRequest: about, label },
      }));
    case "reviewRequested": {
      const assignee = account(asked, isBot);
      if (assignee === null) return [];
      const fields = { pullRequest: about, assignee };
      return [{ ...base, name: "pullRequest.reviewRequested", key: [id, assignee.id, changedAt], fields }];
    }
  }
}

/** A review. One without words counts too: comments on lines have no separate delivery. */
function review(payload: object, state: "approved" | "changesRequested" | "commented"): ForgeHappening[] {
  const { pull_request: given, review: said, sender } = payload as PullRequestPayload;
  const about = pullRequest(given, isBot);
  const author = account(sender, isBot);
  const body = text(said?.content, longest.body) ?? "";
  // A review has no id here.
  const at = text(given?.updated_at, longest.name);
  const key = [identifier(given?.id), state, author?.id ?? null, body, at];
  const fields = { pullRequest: about, review: { id: null, state, at, body, url: null, author } };
  return [{ name: "pullRequest.reviewSubmitted", key, subject: about.url, fields }];
}

type PushPayload = NonNullable<
  Untrusted<{
    ref: unknown;
    before: unknown;
    after: unknown;
    commits: { id: unknown; message: unknown; author: { name: unknown } }[];
    repository: { updated_at: unknown };
  }>
>;

function push(payload: object, repositoryUrl: string | null): ForgeHappening[] {
  const change = payload as PushPayload;
  // As of the push before, which is later for each further one all the same.
  const at = text(change.repository?.updated_at, longest.name);
  return gitPush(repositoryUrl, change, commits(change.commits), at);
}

/** A branch was deleted: there is no push for that. The ref is the branch's short name. */
function deletion(payload: object, repositoryUrl: string | null): ForgeHappening[] {
  const { ref, ref_type: type } = payload as NonNullable<Untrusted<{ ref: unknown; ref_type: unknown }>>;
  const branch = text(ref, longest.name);
  if (type !== "branch" || branch === null || branch === "") return [];
  const change = { branch, before: null, after: null, created: false, deleted: true, commits: [] };
  return [pushOf(repositoryUrl, change, null)];
}
