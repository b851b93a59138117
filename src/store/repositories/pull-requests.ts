import type { Database } from "../../database/database.ts";
import type { PullRequest } from "../../domain/repositories/pull-request.ts";
import { appendEvents } from "../sessions/events.ts";
import { lockSession } from "../sessions/transition.ts";

/** A pull request whose state is read. */
export interface ReadPullRequest {
  readonly id: string;
  readonly organizationId: string;
  readonly sessionId: string;
  readonly repositoryId: string;
  readonly number: number;
  /** When reading it began: the result is dropped if a later read has begun. Omitted: not checked. */
  readonly checkedAt?: string;
}

/** A pull request whose state must be read from its forge: an open one, or one that was closed lately. */
export interface FollowedPullRequest extends ReadPullRequest {
  readonly state: "open" | "closed";
  readonly repositoryUrl: string;
  /** Whether it can be merged, by its forge's last answer; null if unknown. */
  readonly mergeable: boolean | null;
  /** How often in a row the forge's answer was not taken for final. */
  readonly mergeableAsked: number;
}

/** A pull request of a work branch, as it was recorded. */
export interface RecordedPullRequest {
  readonly id: string;
  /** The session that opened or found it first. */
  readonly sessionId: string;
  readonly number: number;
  readonly target: string;
}

/**
 * The pull request of a session's work branch: its own, an open one before others, or another session's into the same target.
 * @param of.target null: the session's own alone
 */
export async function recordedPullRequest(
  database: Database,
  of: {
    readonly sessionId: string;
    readonly repositoryId: string;
    readonly head: string;
    readonly target: string | null;
  },
): Promise<RecordedPullRequest | null> {
  const { rows } = await database.pool.query<RecordedPullRequest>(
    `select id, session_id as "sessionId", number, target from pull_request
     where repository_id = $2 and head = $3 and (session_id = $1 or target = $4)
     order by session_id <> $1, state <> 'open', created_at desc limit 1`,
    [of.sessionId, of.repositoryId, of.head, of.target],
  );
  return rows[0] ?? null;
}

/**
 * SQL for whether no later read of a pull request began than the one at the time of a parameter; null: it was
 * delivered, not read.
 * @param parameter its sign, as `$3`
 */
const isAsOf = (parameter: string, column = "checked_at"): string =>
  `(${parameter}::timestamptz is null or ${column} = ${parameter})`;

/**
 * Records that an open pull request has another target now, which its forge lets people change. One that was closed
 * earlier with the same branches is forgotten, as it is for a new one. Its forge's earlier answer about whether it can
 * be merged is dropped, and so are reads under way.
 * @returns whether it was not known
 */
export async function moveToTarget(
  database: Database,
  { id, sessionId, checkedAt }: Pick<ReadPullRequest, "id" | "sessionId" | "checkedAt">,
  target: string,
): Promise<boolean> {
  const isMoved = await database.transaction(async (transaction) => {
    await transaction.query(
      `delete from pull_request former using pull_request moved
       where moved.id = $1 and moved.state = 'open' and moved.target <> $2 and former.state <> 'open' and former.target = $2
         and former.repository_id = moved.repository_id and former.head = moved.head
         and ${isAsOf("$3", "moved.checked_at")}`,
      [id, target, checkedAt],
    );
    const { rowCount } = await transaction.query(
      `update pull_request moved set target = $2, mergeable = null, mergeable_asked = 0,
         checked_at = coalesce($3::timestamptz, '-infinity')
       where id = $1 and state = 'open' and target <> $2 and ${isAsOf("$3")} and not exists (
         select from pull_request other where other.repository_id = moved.repository_id and other.head = moved.head and other.target = $2)`,
      [id, target, checkedAt],
    );
    return rowCount === 1;
  });
  if (isMoved) database.notify("offstage_event", sessionId);
  return isMoved;
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
/** A closed one is polled for this time: its reopening may have been delivered before, or not at all. */
const closedFollowedFor = "3 days";

/**
 * Claims open pull requests that were not checked for `minutes`, the least recently checked first, and a few that were closed lately. No
 * two callers get the same one.
 */
export async function claimOpenPullRequests(
  database: Database,
  { minutes, limit }: { readonly minutes: number; readonly limit: number },
): Promise<FollowedPullRequest[]> {
  const { rows } = await database.pool.query<FollowedPullRequest>(
    `with due_open as (
       select id from pull_request where state = 'open' and checked_at < now() - $1 * interval '1 minute'
         and created_at > now() - interval '${followedFor}'
       order by checked_at limit $2 for update skip locked),
     due_closed as (
       select id from pull_request where state = 'closed' and closed_at > now() - interval '${closedFollowedFor}'
         and checked_at < now() - $1 * interval '1 minute'
       order by checked_at limit greatest(1, $2 / 4) for update skip locked),
     claimed as (
       update pull_request set checked_at = clock_timestamp()
       where id in (select id from due_open union all select id from due_closed) returning *)
     select claimed.id, claimed.organization_id as "organizationId", session_id as "sessionId",
       repository_id as "repositoryId", repository.url as "repositoryUrl", number, mergeable,
       mergeable_asked as "mergeableAsked", state, claimed.checked_at::text as "checkedAt"
     from claimed join repository on repository.id = repository_id`,
    [minutes, limit],
  );
  return rows;
}

/** How often in a row an answer that is not final is asked for again before the next interval. */
const askedAgainLimit = 5;

/**
 * Records what a forge says of whether an open pull request can be merged, with an event when it begins to collide. A forge that
 * computes it says null, or no: null, and a no that is new, are asked for again soon, a few times. What was read before the session pushed
 * again is of another commit, and changes nothing.
 */
export async function saveMergeable(
  database: Database,
  {
    id,
    organizationId,
    sessionId,
    repositoryId,
    number,
    mergeable: before,
    mergeableAsked: asked,
    checkedAt,
  }: FollowedPullRequest,
  mergeable: boolean | null,
): Promise<void> {
  const isFinal = mergeable === true || (mergeable === false && (before === false || asked > 0));
  if (!isFinal) {
    await database.pool.query(
      `update pull_request set mergeable_asked = least(mergeable_asked + 1, $2),
         checked_at = case when mergeable_asked < $2 then '-infinity' else checked_at end
       where id = $1 and state = 'open' and ${isAsOf("$3")}`,
      [id, askedAgainLimit, checkedAt],
    );
    return;
  }
  const changed = await database.transaction(async (transaction) => {
    await lockSession(transaction, organizationId, sessionId);
    const { rows } = await transaction.query<{ url: string }>(
      `with changed as (
         update pull_request set mergeable = $2, mergeable_asked = 0
         where id = $1 and state = 'open' and mergeable is distinct from $2 and ${isAsOf("$3")}
         returning url, pull_request as changed)
       select url, case when not $2::boolean then enqueue_pull_request_webhooks(changed, 'conflicted') end from changed`,
      [id, mergeable, checkedAt],
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

/** Begins to read what a forge says of a pull request's state. */
export async function beginReading(
  database: Database,
  place: Pick<ReadPullRequest, "organizationId" | "repositoryId" | "number">,
): Promise<ReadPullRequest[]> {
  const { rows } = await database.pool.query<{ id: string; sessionId: string; checkedAt: string }>(
    `update pull_request set checked_at = clock_timestamp()
     where organization_id = $1 and repository_id = $2 and number = $3
     returning id, session_id as "sessionId", checked_at::text as "checkedAt"`,
    [place.organizationId, place.repositoryId, place.number],
  );
  return rows.map((row) => ({ ...place, ...row }));
}

/** Makes a pull request due in the next pass, since its forge's answer and delivery disagree: one of them is late. */
export async function readAgainSoon(database: Database, { id }: Pick<ReadPullRequest, "id">): Promise<void> {
  await database.pool.query("update pull_request set checked_at = '-infinity' where id = $1", [id]);
}

/** Records once that a pull request is no longer open, or that one that was closed is merged, with its event. */
export async function closePullRequest(
  database: Database,
  { id, organizationId, sessionId, repositoryId, number, checkedAt }: ReadPullRequest,
  state: Exclude<PullRequest["state"], "open">,
): Promise<void> {
  const changed = await database.transaction(async (transaction) => {
    await lockSession(transaction, organizationId, sessionId);
    const { rows } = await transaction.query<{ url: string }>(
      `with closed as (
         update pull_request set state = $2, closed_at = now()
         where id = $1 and (state = 'open' or (state = 'closed' and $2 = 'merged'))
           and ${isAsOf("$3")}
         returning url, pull_request as changed)
       select url, enqueue_pull_request_webhooks(changed, $2) from closed`,
      [id, state, checkedAt],
    );
    if (rows[0] === undefined) return false;
    const data = { repositoryId, number, url: rows[0].url, state };
    await appendEvents(transaction, sessionId, [{ type: "pullRequest.closed", data }]);
    return true;
  });
  if (changed) database.notify("offstage_event", sessionId);
}

/** Records that a pull request that was closed is open again: it is followed again, soon. A merged one stays so. */
export async function reopenPullRequest(
  database: Database,
  { id, sessionId, checkedAt }: Pick<ReadPullRequest, "id" | "sessionId" | "checkedAt">,
): Promise<void> {
  const { rowCount } = await database.pool.query(
    `update pull_request set state = 'open', closed_at = null, mergeable = null, mergeable_asked = 0, checked_at = '-infinity'
     where id = $1 and state = 'closed' and ${isAsOf("$2")}`,
    [id, checkedAt],
  );
  if (rowCount === 1) database.notify("offstage_event", sessionId);
}
