import type { Database } from "../../database/database.ts";
import type { PullRequest } from "../../domain/repositories/pull-request.ts";
import { appendEvents } from "../sessions/events.ts";
import { lockSession } from "../sessions/transition.ts";

/** An open pull request whose state must be read from its forge. */
export interface OpenPullRequest {
  readonly id: string;
  readonly organizationId: string;
  readonly sessionId: string;
  readonly repositoryId: string;
  readonly repositoryUrl: string;
  readonly number: number;
  /** What its forge last said of whether it can be merged; null if it is not known. */
  readonly mergeable: boolean | null;
  /** How often in a row the forge's answer was not taken for final. */
  readonly mergeableAsked: number;
}

/** Target branches of a session's open pull requests, by repository id. */
export async function openTargets(
  database: Database,
  session: { readonly sessionId: string; readonly branchName: string; readonly repositoryIds: readonly string[] },
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await database.pool.query<{ repositoryId: string; target: string }>(
    `select repository_id as "repositoryId", target from pull_request
     where repository_id = any($2::uuid[]) and head = $3 and session_id = $1 and state = 'open' order by created_at`,
    [session.sessionId, session.repositoryIds, session.branchName],
  );
  return new Map(rows.map(({ repositoryId, target }) => [repositoryId, target]));
}

/** The state of a pull request is not read from its forge after this time. */
const followedFor = "90 days";

/**
 * Claims open pull requests that were not checked for `minutes`, the least recently checked first. No two callers get
 * the same one.
 */
export async function claimOpenPullRequests(
  database: Database,
  { minutes, limit }: { readonly minutes: number; readonly limit: number },
): Promise<OpenPullRequest[]> {
  const { rows } = await database.pool.query<OpenPullRequest>(
    `with due as (
       select id from pull_request where state = 'open' and checked_at < now() - $1 * interval '1 minute'
         and created_at > now() - interval '${followedFor}'
       order by checked_at limit $2 for update skip locked),
     claimed as (
       update pull_request set checked_at = now() where id in (select id from due) returning *)
     select claimed.id, claimed.organization_id as "organizationId", session_id as "sessionId",
       repository_id as "repositoryId", repository.url as "repositoryUrl", number, mergeable,
       mergeable_asked as "mergeableAsked"
     from claimed join repository on repository.id = repository_id`,
    [minutes, limit],
  );
  return rows;
}

/** How often in a row an answer that is not final is asked for again before the next interval. */
const askedAgainLimit = 5;

/**
 * Records what a forge says of whether an open pull request can be merged, with an event when it begins to collide. A forge that
 * computes it says null, or no: null, and a no that is new, are asked for again soon, a few times.
 */
export async function saveMergeable(
  database: Database,
  { id, organizationId, sessionId, repositoryId, number, mergeable: before, mergeableAsked: asked }: OpenPullRequest,
  mergeable: boolean | null,
): Promise<void> {
  const isFinal = mergeable === true || (mergeable === false && (before === false || asked > 0));
  if (!isFinal) {
    await database.pool.query(
      `update pull_request set mergeable_asked = least(mergeable_asked + 1, $2),
         checked_at = case when mergeable_asked < $2 then '-infinity' else checked_at end
       where id = $1 and state = 'open'`,
      [id, askedAgainLimit],
    );
    return;
  }
  const changed = await database.transaction(async (transaction) => {
    await lockSession(transaction, organizationId, sessionId);
    const { rows } = await transaction.query<{ url: string }>(
      `with changed as (
         update pull_request set mergeable = $2, mergeable_asked = 0
         where id = $1 and state = 'open' and mergeable is distinct from $2 returning url, pull_request as changed)
       select url, case when not $2::boolean then enqueue_pull_request_webhooks(changed, 'conflicted') end from changed`,
      [id, mergeable],
    );
    if (rows[0] === undefined) return false;
    const { url } = rows[0];
    if (!mergeable)
      await appendEvents(transaction, sessionId, [
        { type: "pullRequest.conflicted", data: { repositoryId, number, url } },
      ]);
    return true;
  });
  if (changed) database.notify("offstage_event", sessionId);
}

/** Records once that a pull request is no longer open, with its event. */
export async function closePullRequest(
  database: Database,
  {
    id,
    organizationId,
    sessionId,
    repositoryId,
    number,
  }: Pick<OpenPullRequest, "id" | "organizationId" | "sessionId" | "repositoryId" | "number">,
  state: Exclude<PullRequest["state"], "open">,
): Promise<void> {
  const changed = await database.transaction(async (transaction) => {
    await lockSession(transaction, organizationId, sessionId);
    const { rows } = await transaction.query<{ url: string }>(
      `with closed as (
         update pull_request set state = $2 where id = $1 and state = 'open' returning url, pull_request as changed)
       select url, enqueue_pull_request_webhooks(changed, $2) from closed`,
      [id, state],
    );
    if (rows[0] === undefined) return false;
    const data = { repositoryId, number, url: rows[0].url, state };
    await appendEvents(transaction, sessionId, [{ type: "pullRequest.closed", data }]);
    return true;
  });
  if (changed) database.notify("offstage_event", sessionId);
}
