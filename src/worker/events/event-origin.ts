import type { Database } from "../../database/database.ts";
import { idScopesOf } from "../../domain/answers/answer.ts";
import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import { commentMarkKey } from "../../domain/repositories/comment-mark.ts";
import { readMark } from "../../domain/repositories/pull-request-mark.ts";
import { isOwnComment } from "../../store/answers/answers.ts";
import { findOwnWork, noteOrigin, type ClaimedEvent } from "../../store/automations/inbound-events.ts";
import type { Place } from "./event-place.ts";

/** Runs of which each started the next by an event of Offstage, or by what a forge tells of its work. */
export const longestChain = 5;

/** Reason in the ledger why nothing hears of an event. */
export const ownWords = "an Offstage wrote it";

/**
 * Whether an event tells of what an Offstage said: by the id that the forge gave it, or by its mark, as of another Offstage's. No
 * automation hears of that: it could answer its own answer.
 */
export async function isOwnWords(database: Database, event: ClaimedEvent, place: Place | null): Promise<boolean> {
  const { connectionId, organizationId, payload } = event;
  const told = connectionId === null ? null : (payload as unknown as ForgeEvent);
  const comment = told?.comment;
  if (told === null || comment === undefined) return false;
  if (commentMarkKey(comment.body) !== null) return true;
  if (place === null || place.known === null) return false;
  const idScopes = idScopesOf(told.pullRequest === undefined ? "issue" : "pullRequest", comment);
  const { id: commentId, body } = comment;
  return isOwnComment(database.pool, { organizationId, repositoryId: place.known.id, commentId, body, idScopes });
}

/** Names of events by which a forge tells of what a session itself did, if the commit is the session's. */
const ownDeeds: ReadonlySet<string> = new Set(["push", "pullRequest.opened", "pullRequest.updated"]);

/** Names of events that follow from what a session did. */
const consequences: ReadonlySet<string> = new Set(["checks.failed", "checks.passed"]);

/**
 * What led to an event: a forge tells of a session's own pushes and pull requests as of anybody's, and of the checks of its commits. The
 * first never start the session's own automation again; both lengthen the chain that the session's run stands in.
 */
export async function originOf(
  database: Database,
  event: ClaimedEvent,
): Promise<Pick<ClaimedEvent, "causedBy" | "rootId" | "depth"> & { readonly isOwnDeed: boolean }> {
  const { connectionId, name, payload, causedBy, rootId, depth } = event;
  const sha = ownDeeds.has(name) || consequences.has(name) ? commitOf(payload) : null;
  const work = connectionId === null || sha === null ? null : await findOwnWork(database, event.organizationId, sha);
  if (work === null) return { causedBy, rootId, depth, isOwnDeed: false };
  // Checks may start one run after the other, as often as a chain is long; of a deed each trigger fires once.
  const origin = { rootId: ownDeeds.has(name) ? work.rootId : null, depth: work.depth + 1 };
  await noteOrigin(database, event, origin);
  const isOwnDeed = ownDeeds.has(name);
  return { ...origin, causedBy: isOwnDeed ? work.automationId : null, isOwnDeed };
}

/**
 * The event of what a session did at its pull request, as triggers get it: a program opened it, also if it did so in the name of the
 * person whom the forge names.
 */
export function asOfOffstage({ name, payload }: ClaimedEvent): ClaimedEvent["payload"] {
  const { actor, transition, pullRequest } = payload as unknown as Pick<ForgeEvent, "actor" | "transition"> & {
    readonly pullRequest?: Partial<NonNullable<ForgeEvent["pullRequest"]>>;
  };
  const isOpening = name === "pullRequest.opened" && transition === "opened";
  const isOurs = pullRequest !== undefined && readMark(pullRequest.body ?? "") !== null;
  return {
    ...payload,
    ...(isOpening && actor !== null && { actor: { ...actor, isBot: true } }),
    ...(isOurs && {
      pullRequest: { ...pullRequest, author: pullRequest.author && { ...pullRequest.author, isBot: true } },
    }),
  };
}

/** The commit that an event is about; null if it is about none. */
function commitOf(payload: ClaimedEvent["payload"]): string | null {
  const told = payload as {
    readonly push?: { readonly after?: unknown };
    readonly pullRequest?: { readonly head?: { readonly sha?: unknown } };
    readonly checks?: { readonly sha?: unknown };
  };
  const sha = told.push?.after ?? told.pullRequest?.head?.sha ?? told.checks?.sha;
  return typeof sha === "string" && sha !== "" ? sha : null;
}
