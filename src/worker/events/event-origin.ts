import type { Database } from "../../database/database.ts";
import { idScopesOf } from "../../domain/answers/answer.ts";
import { automationStatusName } from "../../domain/automations/automation-file.ts";
import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import { isAboutPullRequest } from "../../domain/automations/event-subject.ts";
import { commentMarkKey } from "../../domain/repositories/comment-mark.ts";
import { UnavailableError } from "../../domain/errors/errors.ts";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import { isOwnComment } from "../../store/answers/answers.ts";
import { outcomeOfFiles } from "../../store/automations/file-sync.ts";
import { findOwnWork, type OwnWork } from "../../store/automations/own-work.ts";
import { noteOrigin, type ClaimedEvent } from "../../store/automations/claimed-events.ts";
import { mayBeMerged } from "../../store/repositories/reported-state.ts";
import type { EventPlace } from "./event-place.ts";

/** Reason in the ledger why nothing hears of an event. */
export const ownWords = "an Offstage wrote it";

/**
 * Whether an event is about a comment of an Offstage: by the id that the forge gave it, or by its mark, as of another
 * Offstage's. No automation gets it: it could answer its own answer.
 */
export async function isOwnWords(database: Database, event: ClaimedEvent, place: EventPlace | null): Promise<boolean> {
  const { connectionId, organizationId, payload } = event;
  const about = connectionId === null ? null : (payload as unknown as ForgeEvent);
  const comment = about?.comment;
  if (about === null || comment === undefined) return false;
  if (commentMarkKey(comment.body) !== null) return true;
  if (place === null || place.known === null) return false;
  const idScopes = idScopesOf(about.pullRequest === undefined ? "issue" : "pullRequest", comment);
  const { id: commentId, body } = comment;
  return isOwnComment(database.pool, { organizationId, repositoryId: place.known.id, commentId, body, idScopes });
}

/**
 * Whether an event is about the status by which this or another Offstage reports the outcome of automations in files.
 * GitLab delivers a status as a separate pipeline without its name: that is recognized by the commit and the outcome.
 */
export async function isOwnStatus(database: Database, event: ClaimedEvent, place: EventPlace | null): Promise<boolean> {
  const { connectionId, name, payload } = event;
  if (connectionId === null || (name !== "checks.failed" && name !== "checks.passed")) return false;
  const { checks, payload: delivered } = payload as unknown as ForgeEvent;
  if (checks?.kind === "status") return checks.name === automationStatusName;
  const { source } = (delivered?.["object_attributes"] ?? {}) as { readonly source?: unknown };
  if (checks?.kind !== "pipeline" || source !== "external" || place?.known == null) return false;
  return (await outcomeOfFiles(database, place.known.id, checks.sha)) === name.slice("checks.".length);
}

/** Names of events about a session's own actions, if the commit is the session's. */
const ownDeeds: ReadonlySet<string> = new Set(["push", "pullRequest.opened", "pullRequest.updated"]);

/** Names of events that follow from what a session did, if the commit is the session's: with those about its pull requests. */
const consequences: ReadonlySet<string> = new Set(["push", "checks.failed", "checks.passed"]);

/** The origin of an event. */
export interface EventOrigin extends Pick<ClaimedEvent, "causedBy" | "rootId" | "depth"> {
  /** Whether it is about a session's own action, by its agent or its settings. */
  readonly isOwnDeed: boolean;
}

/**
 * Finds the origin of an event: a forge delivers a session's own pushes, pull requests, labels and reviewers like any
 * others, and what others do about them: checks, labels, comments, reviews, a merge. The session's own actions never
 * start its automation again; all of them lengthen the chain of the session's run, since a program may have reacted.
 */
export async function eventOriginOf(
  database: Database,
  event: ClaimedEvent,
  place: EventPlace | null,
): Promise<EventOrigin> {
  const { connectionId, organizationId, name, payload, causedBy, rootId, depth } = event;
  const nothing = { causedBy, rootId, depth, isOwnDeed: false };
  if (connectionId === null || !(isAboutPullRequest(name) || consequences.has(name))) return nothing;
  const about = payload as unknown as ForgeEvent;
  // Checks of a merge that the forge made for them name the pull request, and a commit that was never pushed.
  const numbers = about.checks?.pullRequests ?? (about.pullRequest === undefined ? [] : [about.pullRequest.number]);
  const repositoryId = place?.known?.id;
  const pullRequests = repositoryId === undefined || numbers.length === 0 ? null : { repositoryId, numbers };
  const sha = commitOf(payload);
  const branch = about.push?.branch ?? about.checks?.branch ?? null;
  if (sha === null && pullRequests === null && branch === null) return nothing;
  const along = (about.push?.commits ?? []).map((commit) => commit.sha).filter((each) => each !== sha);
  const of = { sha, pullRequests, along, repositoryId: repositoryId ?? null, branch };
  const works = await findOwnWork(database, organizationId, of);
  const [work] = works;
  if (work === undefined) {
    await waitForMerge(database, event, about, place);
    return nothing;
  }
  const deed = works.find((each) => (each.did === "commit" && ownDeeds.has(name)) || hasSet(each, name, about));
  // Checks, say, may start one run after the other, as often as a chain is long; of a deed each trigger fires once.
  const origin = { rootId: deed?.rootId ?? null, depth: work.depth + 1 };
  await noteOrigin(database, event, origin);
  return { ...origin, causedBy: deed?.automationId ?? null, isOwnDeed: deed !== undefined };
}

/**
 * Of a merge as one new commit, only the merge's event names that commit, and it may come after the push.
 * @throws UnavailableError if it may be a merge, once, and more often if the forge delivered a merge without its
 *   commit: the event is to be decided again
 */
async function waitForMerge(
  database: Database,
  { organizationId, postponed }: ClaimedEvent,
  { push }: ForgeEvent,
  place: EventPlace | null,
): Promise<void> {
  if (push === undefined || place === null || place.known === null) return;
  if (await mayBeMerged(database, { organizationId, repositoryId: place.known.id }, push.branch, postponed > 0))
    throw new UnavailableError("it may be the merge of a pull request, which the forge has not delivered yet");
}

/** Whether an event is about a label or reviewer in the settings of the session that opened the pull request. */
function hasSet({ did, settings }: OwnWork, name: string, { label, assignee }: ForgeEvent): boolean {
  if (did !== "open" || settings === null) return false;
  if (name === "pullRequest.labeled") return label !== undefined && isNamed(settings.labels, label);
  if (name !== "pullRequest.reviewRequested" || assignee === undefined) return false;
  return [assignee.login, assignee.id].some((each) => each !== "" && isNamed(settings.reviewers, each));
}

/** Forges ignore capitals in these names. A team is identified by its own name, without its organization's. */
function isNamed(names: readonly string[], name: string): boolean {
  const plain = name.toLowerCase();
  return names.some((each) => each.toLowerCase() === plain || each.toLowerCase().endsWith(`/${plain}`));
}

/**
 * The event of a session's action at its pull request, as triggers get it: a program opened or labelled it, also if it
 * did so in the name of the person whom the forge names.
 */
export function asOfOffstage({ name, payload }: ClaimedEvent): ClaimedEvent["payload"] {
  const { actor, transition, pullRequest } = payload as unknown as Pick<ForgeEvent, "actor" | "transition"> & {
    readonly pullRequest?: Partial<NonNullable<ForgeEvent["pullRequest"]>>;
  };
  const isOpening = name === "pullRequest.opened" && transition === "opened";
  const isSetting = name === "pullRequest.labeled" || name === "pullRequest.reviewRequested";
  const isOurs = pullRequest !== undefined && readMark(pullRequest.body ?? "") !== null;
  return {
    ...payload,
    ...((isOpening || isSetting) && actor !== null && { actor: { ...actor, isBot: true } }),
    ...(isOurs && {
      pullRequest: { ...pullRequest, author: pullRequest.author && { ...pullRequest.author, isBot: true } },
    }),
  };
}

/** The commit that an event is about; null if it is about none. */
function commitOf(payload: ClaimedEvent["payload"]): string | null {
  const about = payload as {
    readonly push?: { readonly after?: unknown };
    readonly pullRequest?: { readonly head?: { readonly sha?: unknown } };
    readonly checks?: { readonly sha?: unknown };
  };
  const sha = about.push?.after ?? about.pullRequest?.head?.sha ?? about.checks?.sha;
  // The beginning of one, as Bitbucket Cloud has it, is longer than what could be another's by chance.
  return typeof sha === "string" && /^[0-9a-f]{12,64}$/u.test(sha) ? sha : null;
}
