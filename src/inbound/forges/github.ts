import type { components } from "@octokit/openapi-webhooks-types";
import { branchOf, commitOf, inboundEvents, longest, pushOf, standsAt } from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import {
  account,
  comment,
  commits,
  issue,
  place,
  pullRequest,
  pullRequestOfIssue,
  release,
  repository,
} from "./github-form.ts";
import type { IsBot } from "./github-form.ts";
import { checkSuite, status, workflowRun } from "./github-checks.ts";
import { choice, identifier, integer, readPayload, text, type Untrusted } from "./payload.ts";
import type { DeliveryReader } from "../delivery.ts";
import { hasHubSignature } from "../signatures.ts";

type Schemas = components["schemas"];
type Payload<Name extends keyof Schemas> = NonNullable<Untrusted<Schemas[Name]>>;

/**
 * Webhooks of GitHub and GitHub Enterprise Server, of a repository, an organization or an App
 * (https://docs.github.com/webhooks/webhook-events-and-payloads).
 */
export const github: DeliveryReader = {
  verify: ({ headers, body }, secrets) => hasHubSignature(headers["x-hub-signature-256"], body, secrets),
  read(delivery) {
    const payload = readPayload(delivery);
    const { repository: of, sender } = payload as Pick<Payload<"webhook-issues-opened">, "repository" | "sender">;
    const surroundings = {
      forge: "github",
      repository: repository(of),
      actor: account(sender, isBot),
      payload,
    } as const;
    const read = choice(delivery.headers["x-github-event"], readers);
    const happenings = read?.(payload, surroundings.repository?.url ?? null) ?? [];
    return {
      deliveryId: identifier(delivery.headers["x-github-delivery"]),
      events: inboundEvents(surroundings, happenings),
    };
  },
};

const isBot: IsBot = ({ type, login }) => type === "Bot" || (typeof login === "string" && login.endsWith("[bot]"));

/**
 * One reader for each event that is listened to. Runs of GitHub Actions are reported by `workflow_run`, which has their name and
 * attempt, so their `check_suite` is passed over; `check_run` and `workflow_job` are parts of what it reports.
 */
const readers: Readonly<Record<string, (payload: object, repositoryUrl: string | null) => ForgeHappening[]>> = {
  issues,
  issue_comment: issueComment,
  pull_request: pullRequests,
  pull_request_review: review,
  pull_request_review_comment: reviewComment,
  push,
  check_suite: checkSuite,
  workflow_run: workflowRun,
  status,
  release,
};

function issues(payload: object): ForgeHappening[] {
  const { action, issue: given } = payload as Payload<"webhook-issues-opened">;
  const read = choice(action, issueActions);
  if (read === null) return [];
  const id = identifier(given?.id);
  return read({ payload, about: issue(given, isBot), id, changedAt: text(given?.updated_at, longest.name) });
}

interface Read<About> {
  readonly payload: object;
  readonly about: About;
  readonly id: string | null;
  readonly changedAt: string | null;
}

const issueActions: Readonly<Record<string, (given: Read<ReturnType<typeof issue>>) => ForgeHappening[]>> = {
  opened: ({ payload, about, id }) => {
    // One that came from another repository says there what it was.
    const { old_issue: before, old_repository: from } = (payload as Payload<"webhook-issues-opened">).changes ?? {};
    const isMoved = before != null || from != null;
    const fields = { issue: about, transition: "opened", ...(isMoved && { transferred: true }) } as const;
    return [{ name: "issue.opened", key: [id], subject: about.url, fields }];
  },
  reopened: ({ about, id, changedAt }) => [
    {
      name: "issue.opened",
      key: [id, changedAt],
      subject: about.url,
      fields: { issue: about, transition: "reopened" },
    },
  ],
  labeled: ({ payload, about, id, changedAt }) => {
    const { label } = payload as Payload<"webhook-issues-labeled">;
    return labeled("issue.labeled", label, [id, changedAt], about.url, { issue: about });
  },
  assigned: ({ payload, about, id, changedAt }) => {
    const assignee = account((payload as Payload<"webhook-issues-assigned">).assignee, isBot);
    if (assignee === null) return [];
    const fields = { issue: about, assignee };
    return [{ name: "issue.assigned", key: [id, assignee.id, changedAt], subject: about.url, fields }];
  },
  closed: ({ payload, about, id, changedAt }) => {
    const closedAt = text((payload as Payload<"webhook-issues-closed">).issue?.closed_at, longest.name);
    return [{ name: "issue.closed", key: [id, closedAt ?? changedAt], subject: about.url, fields: { issue: about } }];
  },
};

function labeled(
  name: "issue.labeled" | "pullRequest.labeled",
  label: Untrusted<{ id: number; name: string }>,
  key: (string | null)[],
  subject: string,
  fields: ForgeHappening["fields"],
): ForgeHappening[] {
  const labelName = text(label?.name, longest.name);
  if (labelName === null) return [];
  return [
    { name, key: [...key, identifier(label?.id) ?? labelName], subject, fields: { ...fields, label: labelName } },
  ];
}

function issueComment(payload: object): ForgeHappening[] {
  const { action, comment: given, issue: on } = payload as Payload<"webhook-issue-comment-created">;
  if (action !== "created") return [];
  const said = comment(given, isBot);
  if (on?.pull_request != null) {
    const about = pullRequestOfIssue(on, isBot);
    return [
      {
        name: "pullRequest.commented",
        key: ["conversation", said.id],
        subject: about.url,
        fields: { pullRequest: about, comment: said },
      },
    ];
  }
  const about = issue(on, isBot);
  return [{ name: "issue.commented", key: [said.id], subject: about.url, fields: { issue: about, comment: said } }];
}

function pullRequests(payload: object): ForgeHappening[] {
  const { action, pull_request: given } = payload as Payload<"webhook-pull-request-synchronize">;
  const read = choice(action, pullRequestActions);
  if (read === null) return [];
  const id = identifier(given?.id);
  return read({ payload, about: pullRequest(given, isBot), id, changedAt: text(given?.updated_at, longest.name) });
}

const pullRequestActions: Readonly<Record<string, (given: Read<ReturnType<typeof pullRequest>>) => ForgeHappening[]>> =
  {
    opened: ({ about, id }) => pullRequestOpened(about, [id], "opened"),
    reopened: ({ about, id, changedAt }) => pullRequestOpened(about, [id, changedAt], "reopened"),
    ready_for_review: ({ about, id, changedAt }) => pullRequestOpened(about, [id, changedAt], "readyForReview"),
    synchronize: ({ payload, about, id, changedAt }) => {
      const { before, after } = payload as Payload<"webhook-pull-request-synchronize">;
      const sha = text(after, longest.name) ?? about.head?.sha ?? null;
      const key = [id, text(before, longest.name) ?? "", sha];
      const stands = standsAt(about.url, sha, changedAt);
      return [{ name: "pullRequest.updated", key, ...stands, subject: about.url, fields: { pullRequest: about } }];
    },
    labeled: ({ payload, about, id, changedAt }) => {
      const { label } = payload as Payload<"webhook-pull-request-labeled">;
      return labeled("pullRequest.labeled", label, [id, changedAt], about.url, { pullRequest: about });
    },
    review_requested: ({ payload, about, id, changedAt }) => {
      const assignee = requestedReviewer(payload);
      if (assignee === null) return [];
      const fields = { pullRequest: about, assignee };
      return [{ name: "pullRequest.reviewRequested", key: [id, assignee.id, changedAt], subject: about.url, fields }];
    },
    closed: ({ payload, about, id, changedAt }) => {
      const closedAt = text((payload as Payload<"webhook-pull-request-closed">).pull_request?.closed_at, longest.name);
      const fields = { pullRequest: about };
      return about.state === "merged"
        ? [{ name: "pullRequest.merged", key: [id], subject: about.url, fields }]
        : [{ name: "pullRequest.closed", key: [id, closedAt ?? changedAt], subject: about.url, fields }];
    },
  };

function pullRequestOpened(
  about: ReturnType<typeof pullRequest>,
  key: (string | null)[],
  transition: "opened" | "reopened" | "readyForReview",
): ForgeHappening[] {
  const fields = { pullRequest: about, transition };
  return [{ name: "pullRequest.opened", key: [transition, ...key], subject: about.url, fields }];
}

/** A person, or a team by its short name. */
function requestedReviewer(payload: object) {
  const asked = payload as {
    requested_reviewer?: Untrusted<Schemas["simple-user"]>;
    requested_team?: Untrusted<Schemas["team-simple"]>;
  };
  const person = account(asked.requested_reviewer, isBot);
  const team = asked.requested_team;
  return person ?? account({ id: `team ${identifier(team?.id) ?? ""}`, login: team?.slug }, () => false);
}

const reviewStates = {
  approved: "approved",
  changes_requested: "changesRequested",
  commented: "commented",
  dismissed: "dismissed",
} as const;

/**
 * A submitted review. One without words that neither approves nor asks for changes only holds comments on lines (each answer in a
 * thread comes in such a one), and these are reported one by one.
 */
function review(payload: object): ForgeHappening[] {
  const { action, review: given, pull_request: on } = payload as Payload<"webhook-pull-request-review-submitted">;
  if (action !== "submitted" && action !== "dismissed") return [];
  const about = pullRequest(on, isBot);
  if (action === "dismissed") return [reviewDismissed(given, about)];
  const state = choice(text(given?.state, longest.name)?.toLowerCase(), reviewStates) ?? "commented";
  const body = text(given?.body, longest.body) ?? "";
  if (state === "commented" && body === "") return [];
  const id = identifier(given?.id);
  const author = account(given?.user, isBot);
  const fields = { pullRequest: about, review: { id, state, body, url: text(given?.html_url, longest.url), author } };
  return [{ name: "pullRequest.reviewSubmitted", key: [id], subject: about.url, fields }];
}

/** A review was dismissed. */
function reviewDismissed(
  given: Payload<"webhook-pull-request-review-dismissed">["review"],
  about: ReturnType<typeof pullRequest>,
): ForgeHappening {
  const id = identifier(given?.id);
  const said = { body: text(given?.body, longest.body) ?? "", url: text(given?.html_url, longest.url) };
  const gone = { id, state: "dismissed", ...said, author: account(given?.user, isBot) } as const;
  const fields = { pullRequest: about, review: gone };
  return { name: "pullRequest.reviewDismissed", key: [id], subject: about.url, fields };
}

function reviewComment(payload: object): ForgeHappening[] {
  const {
    action,
    comment: given,
    pull_request: on,
  } = payload as Payload<"webhook-pull-request-review-comment-created">;
  if (action !== "created") return [];
  const about = pullRequest(on, isBot);
  const written = comment(given, isBot);
  const { line, start_line: first, original_line: before, original_start_line: firstBefore } = given ?? {};
  const said = {
    ...written,
    // The line is null if the change no longer has it.
    ...place(given?.path, line == null ? { first: firstBefore, line: before } : { first, line }, given?.diff_hunk),
    threadId: identifier(given?.in_reply_to_id) ?? written.id,
    reviewId: identifier(given?.pull_request_review_id),
  };
  const fields = { pullRequest: about, comment: said };
  return [{ name: "pullRequest.commented", key: ["lines", said.id], subject: about.url, fields }];
}

function push(payload: object, repositoryUrl: string | null): ForgeHappening[] {
  const { ref, before, after, created, deleted, commits: given, repository: of } = payload as Payload<"webhook-push">;
  const branch = branchOf(ref);
  if (branch === null) return [];
  return [
    pushOf(
      repositoryUrl,
      {
        branch,
        before: commitOf(before),
        after: commitOf(after),
        created: created === true,
        deleted: deleted === true,
        commits: commits(given),
      },
      timeOf(of?.pushed_at),
    ),
  ];
}

/** The time of a push: in seconds since the epoch, elsewhere in words. */
function timeOf(pushedAt: unknown): string | null {
  const seconds = integer(pushedAt);
  if (seconds === null) return text(pushedAt, longest.name);
  const date = new Date(seconds * 1_000);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}
