import type { ForgeAccount } from "../../domain/automations/forge-event.ts";
import { commitOf, longest, mergedAs, reviewEventName, standsAt } from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import { accounts, issue, labels, mergeRequest } from "./gitlab-form.ts";
import type { Around, Issue, Label, MergeRequest, User } from "./gitlab-form.ts";
import { choice, endOfText, identifier, lines, list, required, text, type Untrusted } from "./payload.ts";

interface Change<Value> {
  previous: Value;
  current: Value;
}
/** The fields read of an issue's delivery. */
export type IssuePayload = NonNullable<
  Untrusted<{
    object_attributes: Issue & { action?: unknown; updated_at: unknown };
    assignees?: User[];
    labels?: Label[];
    changes?: { labels?: Change<Label[]>; assignees?: Change<User[]> };
  }>
>;

/** An issue, or a task or incident, which are issues of another type, changed: what is new about it. */
export function issues(payload: object, { projectUrl, actor }: Around): ForgeHappening[] {
  const { object_attributes: given, assignees: assigned, labels: all, changes } = payload as IssuePayload;
  const action = choice(given?.action, {
    open: "opened",
    reopen: "reopened",
    close: "closed",
    update: "updated",
  } as const);
  if (action === null) return [];
  const assignees = accounts(assigned);
  const about = issue({ ...given, labels: all ?? given?.labels }, projectUrl, assignees, [actor, ...assignees]);
  const id = identifier(given?.id);
  const changedAt = text(given?.updated_at, longest.name);
  const base = { subject: about.url, fields: { issue: about } };
  const isNew = action === "opened";
  // Labels and people that an issue begins with are reported like later ones, as GitHub does.
  const labelled = addedLabels(isNew ? { current: all ?? given?.labels } : changes?.labels).map(
    ({ key, label }): ForgeHappening => ({
      ...base,
      name: "issue.labeled",
      key: [id, key, changedAt],
      fields: { issue: about, label },
    }),
  );
  const added = addedAccounts(isNew ? { current: assigned } : changes?.assignees).map((assignee): ForgeHappening => ({
    ...base,
    name: "issue.assigned",
    key: [id, accountKey(assignee), changedAt],
    fields: { issue: about, assignee },
  }));
  const transitions: Readonly<Record<typeof action, ForgeHappening[]>> = {
    opened: [{ ...base, name: "issue.opened", key: [id], fields: { issue: about, transition: "opened" } }],
    reopened: [
      { ...base, name: "issue.opened", key: [id, changedAt], fields: { issue: about, transition: "reopened" } },
    ],
    closed: [{ ...base, name: "issue.closed", key: [id, changedAt] }],
    updated: [],
  };
  return [...transitions[action], ...labelled, ...added];
}

/** Older versions leave out both. */
type Reviewer = User & { state?: unknown; re_requested?: unknown };
/** The fields read of a merge request's delivery. */
export type MergeRequestPayload = NonNullable<
  Untrusted<{
    object_attributes: MergeRequest & {
      action?: unknown;
      updated_at: unknown;
      oldrev?: unknown;
      merge_commit_sha?: unknown;
    };
    assignees?: User[];
    reviewers?: User[];
    labels?: Label[];
    changes?: {
      labels?: Change<Label[]>;
      reviewers?: Change<Reviewer[]>;
      draft?: Change<unknown>;
    };
  }>
>;

/** A merge request changed: what is new about it. */
export function mergeRequests(payload: object, { projectUrl, actor }: Around): ForgeHappening[] {
  const envelope: MergeRequestPayload = payload;
  const { object_attributes: given, labels: all, reviewers, assignees, changes } = envelope;
  const named = [actor, ...accounts(assignees), ...accounts(reviewers)];
  const action = choice(given?.action, mergeRequestActions);
  if (action === null) return [];
  const read = mergeRequest({ ...given, labels: all ?? given?.labels }, projectUrl, named);
  const about = { ...read, ...(action === "merged" && mergedAs(given?.merge_commit_sha)) };
  const id = identifier(given?.id);
  const changedAt = text(given?.updated_at, longest.name);
  const base = { subject: about.url, fields: { pullRequest: about } };
  const isNew = action === "opened";
  const labelled = addedLabels(isNew ? { current: all ?? given?.labels } : changes?.labels).map(
    ({ key, label }): ForgeHappening => ({
      ...base,
      name: "pullRequest.labeled",
      key: [id, key, changedAt],
      fields: { pullRequest: about, label },
    }),
  );
  const asked = addedAccounts(isNew ? { current: reviewers } : changes?.reviewers).map((assignee): ForgeHappening => ({
    ...base,
    name: "pullRequest.reviewRequested",
    key: [id, accountKey(assignee), changedAt],
    fields: { pullRequest: about, assignee },
  }));
  const { begin, end } = whoAsksForChanges(changes?.reviewers);
  const voted =
    (state: "changesRequested" | "dismissed") =>
    (author: ForgeAccount): ForgeHappening => ({
      ...base,
      name: reviewEventName(state),
      key: [id, state, accountKey(author), changedAt],
      fields: { pullRequest: about, review: { id: null, state, at: changedAt, body: "", url: null, author } },
    });
  const refused = [...begin.map(voted("changesRequested")), ...end.map(voted("dismissed"))];
  const change = mergeRequestChange(action, envelope, about, actor);
  return [
    ...change.map((each) => ({ ...base, ...each, key: [id, ...each.key] })),
    ...labelled,
    ...asked,
    ...(isNew ? [] : refused),
  ];
}

/** `approval` and `unapproval` are one person's; `approved` and `unapproved` say that it completes, or breaks, what is asked for. */
const mergeRequestActions = {
  open: "opened",
  reopen: "reopened",
  update: "updated",
  merge: "merged",
  close: "closed",
  approval: "approved",
  approved: "approved",
  unapproval: "unapproved",
  unapproved: "unapproved",
} as const;

function mergeRequestChange(
  action: (typeof mergeRequestActions)[keyof typeof mergeRequestActions],
  { object_attributes: given, changes }: MergeRequestPayload,
  about: ReturnType<typeof mergeRequest>,
  actor: ForgeAccount | null,
): (Pick<ForgeHappening, "name" | "key"> & Partial<ForgeHappening>)[] {
  const changedAt = text(given?.updated_at, longest.name);
  const sha = about.head?.sha ?? null;
  switch (action) {
    case "opened":
      return [{ name: "pullRequest.opened", key: ["opened"], fields: { pullRequest: about, transition: "opened" } }];
    case "reopened":
      return [
        {
          name: "pullRequest.opened",
          key: [action, changedAt],
          fields: { pullRequest: about, transition: "reopened" },
        },
      ];
    case "updated": {
      const before = commitOf(given?.oldrev);
      const isReady = changes?.draft?.previous === true && changes.draft.current === false;
      return [
        ...(before === null
          ? []
          : [{ name: "pullRequest.updated" as const, key: [before, sha], ...standsAt(about.url, sha, changedAt) }]),
        ...(isReady
          ? [
              {
                name: "pullRequest.opened" as const,
                key: ["readyForReview", changedAt],
                fields: { pullRequest: about, transition: "readyForReview" as const },
              },
            ]
          : []),
      ];
    }
    case "merged":
      return [{ name: "pullRequest.merged", key: [] }];
    case "closed":
      return [{ name: "pullRequest.closed", key: [changedAt] }];
    case "unapproved": {
      const review = { id: null, state: "dismissed", at: changedAt, body: "", url: null, author: actor } as const;
      const key = ["unapproved", actor === null ? null : accountKey(actor), changedAt];
      // Under the approval's name: whether or not anything listens to this, the next approval is another one.
      const keyName = "pullRequest.reviewSubmitted";
      const stands = standsAt(approvalOf(about, actor), "unapproved", changedAt);
      return [{ name: "pullRequest.reviewDismissed", keyName, key, ...stands, fields: { pullRequest: about, review } }];
    }
    case "approved": {
      const review = { id: null, state: "approved", at: changedAt, body: "", url: null, author: actor } as const;
      // One approval is delivered twice if it is the last that was asked for: the same person at the same commit.
      return [
        {
          name: "pullRequest.reviewSubmitted",
          key: ["approved", actor === null ? null : accountKey(actor), sha],
          ...standsAt(approvalOf(about, actor), "approved", changedAt),
          fields: { pullRequest: about, review },
        },
      ];
    }
  }
}

/** What one person's approval of a merge request is known by. */
function approvalOf({ number }: ReturnType<typeof mergeRequest>, actor: ForgeAccount | null): string {
  return `approval of merge request ${number} by ${actor === null ? "" : accountKey(actor)}`;
}

/** Labels that a change added. @param change without `previous`: all are new */
function addedLabels(change: Untrusted<{ previous?: Label[]; current: Label[] }>): { key: string; label: string }[] {
  const before = new Set(labels(change?.previous));
  return list(change?.current).flatMap((given) => {
    const [label] = labels([given]);
    return label === undefined || before.has(label) ? [] : [{ key: identifier(given?.id) ?? label, label }];
  });
}

/** People that a change added, and reviewers who are asked again. @param change without `previous`: all are new */
function addedAccounts(change: Untrusted<{ previous?: User[]; current: Reviewer[] }>): ForgeAccount[] {
  const before = new Set(accounts(change?.previous).map(accountKey));
  return list(change?.current).flatMap((given) =>
    accounts([given]).filter((each) => given?.re_requested === true || !before.has(accountKey(each))),
  );
}

/**
 * Reviewers who now ask for changes, and who do so no more (delivered by newer versions of GitLab). What they write comes as comments, so
 * one who only comments is not reported.
 */
function whoAsksForChanges(change: Untrusted<Change<Reviewer[]>>): {
  readonly begin: readonly ForgeAccount[];
  readonly end: readonly ForgeAccount[];
} {
  const asking = (all: Untrusted<Reviewer[]>): ForgeAccount[] =>
    accounts(list(all).filter((each) => each?.state === "requested_changes"));
  const [before, after] = [asking(change?.previous), asking(change?.current)];
  const without = (all: readonly ForgeAccount[], others: readonly ForgeAccount[]): ForgeAccount[] => {
    const known = new Set(others.map(accountKey));
    return all.filter((each) => !known.has(accountKey(each)));
  };
  return { begin: without(after, before), end: without(before, after) };
}

function accountKey({ id, login }: ForgeAccount): string {
  return id === "" ? login : id;
}

/** The fields read of a comment's delivery. */
export type NotePayload = NonNullable<
  Untrusted<{
    object_attributes: {
      id: unknown;
      note: unknown;
      noteable_type: unknown;
      action?: unknown;
      system: unknown;
      url: unknown;
      discussion_id?: unknown;
      position?: {
        new_path?: unknown;
        old_path?: unknown;
        new_line?: unknown;
        old_line?: unknown;
        line_range?: { start?: { new_line?: unknown; old_line?: unknown } };
      };
      st_diff?: { diff: unknown; new_path: unknown };
    };
    issue?: Issue;
    merge_request?: MergeRequest;
  }>
>;

/** A comment on an issue or a merge request; those on commits and snippets belong to neither. */
export function note(payload: object, { projectUrl, actor }: Around): ForgeHappening[] {
  const { object_attributes: given, issue: onIssue, merge_request: onMergeRequest } = payload as NotePayload;
  // Versions before 16.11 have no action, and deliver new ones only.
  if ((given?.action ?? "create") !== "create" || given?.system === true) return [];
  const id = required(identifier(given?.id), "object_attributes.id");
  const { position } = given ?? {};
  const { start } = position?.line_range ?? {};
  const comment = {
    id,
    body: text(given?.note, longest.body) ?? "",
    url: text(given?.url, longest.url),
    author: actor,
    path: text(position?.new_path ?? position?.old_path ?? given?.st_diff?.new_path, longest.url),
    ...lines(start?.new_line ?? start?.old_line, position?.new_line ?? position?.old_line),
    hunk: endOfText(given?.st_diff?.diff, longest.hunk),
    threadId: identifier(given?.discussion_id),
  };
  if (given?.noteable_type === "MergeRequest" && onMergeRequest != null) {
    const about = mergeRequest(onMergeRequest, projectUrl, [actor]);
    return [{ name: "pullRequest.commented", key: [id], subject: about.url, fields: { pullRequest: about, comment } }];
  }
  if (given?.noteable_type !== "Issue" || onIssue == null) return [];
  const about = issue(onIssue, projectUrl, [], [actor]);
  return [{ name: "issue.commented", key: [id], subject: about.url, fields: { issue: about, comment } }];
}
