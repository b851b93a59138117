import type { Database, Queryable } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import type { Decision } from "../../domain/automations/ledger.ts";
import type { Received } from "../../domain/automations/trigger.ts";
import type { InboundEvent } from "../../domain/automations/inbound-event.ts";
import type { SteeringHint } from "../../domain/conversations/happening.ts";
import { storable, storableJson } from "../../domain/fields/text.ts";
import {
  pullRequestSettingsSchema,
  type PullRequestSettings,
} from "../../domain/repositories/pull-request-settings.ts";
import { fireableColumns, type FireableTrigger } from "./triggers.ts";

/** An event that several triggers may answer, as it came. */
export interface ReceivedEvent {
  /** Id of its ledger entry: the same event has the same id, however often it is written. */
  readonly id: string;
  readonly organizationId: string;
  /** The connection that delivered it; null: Offstage itself. */
  readonly connectionId: string | null;
  /** The scope within which `keys` identify a second delivery of the same. */
  readonly scope: string;
  readonly keys: readonly string[];
  /** Null: no trigger can listen to it. */
  readonly name: string | null;
  readonly deliveryId: string | null;
  /**
   * Equal for all deliveries of the same happening, whichever connection they come by; at most 500 characters. Null or omitted: it is
   * another happening each time, as of a replay.
   */
  readonly contentKey?: string | null;
  /**
   * The current state of a thing, if the sender reports that and not what changed: see `InboundEvent`. Omitted: it does
   * not.
   */
  readonly state?: InboundEvent["state"];
  /** Whether `keys` count even if nothing listens to its name, since events of another name have them; omitted: false. */
  readonly sharesKey?: boolean;
  readonly subject: string | null;
  /** The database must be able to store it as it is. */
  readonly payload: EventContext;
  readonly traceParent: string | null;
  /** The entry that it repeats. */
  readonly originalId?: string;
  /** The hint that it may steer a session; null or omitted: it does not. */
  readonly steering?: SteeringHint | null;
  /** False: another entry of the same delivery keeps it, if nothing listens to this one. Default: true. */
  readonly keepsPayload?: boolean;
}

/** Receives an event: it waits for a worker to decide, unless it was delivered before or no trigger listens to it. */
export async function receiveEvent(database: Database, received: ReceivedEvent): Promise<Received> {
  const [answer] = await receiveEvents(database, [prepareReceived(received)]);
  if (answer === undefined) throw new Error("an event got no outcome");
  return answer;
}

/** An event that is to be taken in together with others. */
export interface Receiving {
  /** The input of `receive_event`, as JSON, except its `order`. */
  readonly json: string;
  /** The first of what is noted of it, with the scope. */
  readonly turn: string;
}

/** Prepares an event. */
export function prepareReceived(received: ReceivedEvent): Receiving {
  const least = received.keys.reduce((one, key) => (key < one ? key : one), received.keys[0] ?? "");
  // Its first recorded state.
  const first = received.state?.about ?? least;
  const { payload, ...head } = received;
  // The payload can be stored as it is, and `storableJson` processes each of its texts.
  const json = `${storableJson(head).slice(0, -1)},"payload":${JSON.stringify(payload)}}`;
  return { json, turn: `${received.scope} ${first}` };
}

/**
 * Receives events in one statement and commit.
 * @returns the outcome of each
 */
export async function receiveEvents(database: Database, all: readonly Receiving[]): Promise<Received[]> {
  // In the order of their keys, so that two batches at once that have some in common do not wait for each other; of equal ones the first
  // is the original.
  const turns = [...all.entries()].toSorted(
    ([, one], [, other]) => Number(one.turn > other.turn) - Number(one.turn < other.turn),
  );
  const { rows } = await database.pool.query<{ outcome: Received["outcome"]; entry: string }>({
    name: "receive_events",
    text: `select outcome, entry from jsonb_array_elements($1::jsonb) with ordinality as given (each, place)
           cross join lateral receive_event(each) order by place`,
    values: [`[${turns.map(([index, { json }]) => `${json.slice(0, -1)},"order":${index}}`).join(",")}]`],
  });
  if (rows.length !== all.length) throw new Error(`${all.length} events got ${rows.length} outcomes`);
  if (rows.some(({ outcome }) => outcome === "accepted")) database.notify("offstage_work", "event");
  const byIndex = new Map(turns.map(([index], place) => [index, rows[place]]));
  return all.map((_, index) => {
    const row = byIndex.get(index);
    if (row === undefined) throw new Error(`event ${index + 1} of ${all.length} got no outcome`);
    return { outcome: row.outcome, ledgerId: row.entry };
  });
}

/** An event that a worker decides. `attempt` is the fence: a write under an older attempt changes nothing. */
export interface ClaimedEvent {
  readonly id: string;
  readonly organizationId: string;
  readonly connectionId: string | null;
  readonly name: string;
  /** See `ReceivedEvent`. */
  readonly contentKey: string | null;
  readonly subject: string | null;
  readonly payload: EventContext;
  readonly attempt: number;
  /** How often it was put off. */
  readonly postponed: number;
  readonly traceParent: string | null;
  /** The automation whose session it is about, if it is an event of Offstage itself. */
  readonly causedBy: string | null;
  /** The first event of the chain of runs that led to it; null: it is that itself. */
  readonly rootId: string | null;
  /** How many runs led to it. */
  readonly depth: number;
}

/** Keys of an event's happening, independent of the connection. */
export function contentKeysOf({ contentKey }: Pick<ClaimedEvent, "contentKey">): string[] {
  return contentKey === null ? [] : [`content:${contentKey}`];
}

/**
 * Keys by which of an automation's triggers one alone answers an event, also if they are changed before it is decided
 * again, or listen to several connections that deliver the same.
 */
export function automationKeysOf(event: Pick<ClaimedEvent, "id" | "contentKey">): string[] {
  return [`event:${event.id}`, ...contentKeysOf(event)];
}

/**
 * No other worker may claim an event for so long. An event that steers keeps a lease that never ends, for workers of
 * the version before: they would decide it for triggers alone, and the comment would be lost.
 */
const leasedFor = (ms: string): string => `
  lease_until = case when steers_from is null then now() + ${ms} * interval '1 millisecond' else 'infinity' end,
  steers_from = case when steers_from is not null then now() + ${ms} * interval '1 millisecond' end`;

/** An event is given up after this many attempts that did not end; those that were put off are not counted. */
const attemptLimit = 10;

/**
 * Claims an event that no worker is deciding: the oldest of an organization that is drawn with equal chances, so that a
 * sender of a thousand does not delay the others. Null if there is none. One that its workers broke off too often is
 * dead-lettered.
 * @param leaseMs after which another worker may claim it
 * @param without ids of organizations whose events are not claimed now
 */
export async function claimEvent(
  database: Database,
  {
    worker,
    leaseMs,
    without = [],
  }: { readonly worker: string; readonly leaseMs: number; readonly without?: readonly string[] },
): Promise<ClaimedEvent | null> {
  const { rows } = await database.pool.query<ClaimedEvent & { readonly isDead: boolean }>({
    name: "claim_event",
    text: `with recursive waiting (organization_id) as (
             (select organization_id from arrival where outcome is null order by organization_id limit 1)
             union all
             select (select organization_id from arrival where outcome is null and organization_id > waiting.organization_id
               order by organization_id limit 1) from waiting where waiting.organization_id is not null),
           chosen as (
             select candidate.id from (
               select organization_id from waiting where organization_id is not null and organization_id <> all($4::uuid[])
               order by random()) as turn, lateral (
               select id from arrival where outcome is null and organization_id = turn.organization_id
                 and (lease_until is null or lease_until < now() or steers_from < now())
               order by created_at for update skip locked limit 1) as candidate
             limit 1)
           update arrival set worker = $1, ${leasedFor("$2")}, attempt = attempt + 1,
             outcome = case when attempt - postponed >= $3 then 'dead-lettered' end,
             reason = case when attempt - postponed >= $3
               then 'its worker broke off ' || attempt - postponed || ' times: see the server''s log' end,
             updated_at = now()
           where id = (select id from chosen)
           returning id, organization_id as "organizationId", connection_id as "connectionId", name, content_key as "contentKey",
             subject, payload, attempt, postponed, trace_parent as "traceParent", outcome is not null as "isDead", root_id as "rootId", depth,
             case when connection_id is null then (payload -> 'session' ->> 'automationId')::uuid end as "causedBy"`,
    values: [worker, leaseMs, attemptLimit, without],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { isDead, ...claimed } = row;
  return isDead ? claimEvent(database, { worker, leaseMs, without }) : claimed;
}

/** Extends the time that a worker has for an event. @returns false if another has claimed it */
export async function renewEvent(database: Database, { id, attempt }: ClaimedEvent, leaseMs: number): Promise<boolean> {
  const { rowCount } = await database.pool.query(
    `update arrival set ${leasedFor("$3")}
     where id = $1 and attempt = $2 and outcome is null`,
    [id, attempt, leaseMs],
  );
  return rowCount === 1;
}

/** An event is given up if it was put off for this time. */
const longestPostponed = "1 day";

/**
 * Gives an event back that could not be decided for a reason that passes: its attempt does not count. One that was put off for a day is
 * dead-lettered.
 * @param why for the ledger, if it is given up
 * @returns whether it is given up
 */
export async function postponeEvent(
  database: Database,
  { id, attempt }: ClaimedEvent,
  { pauseMs, why }: { readonly pauseMs: number; readonly why: string },
): Promise<boolean> {
  const { rows } = await database.pool.query<{ isDead: boolean }>(
    `update arrival set postponed = postponed + 1, postponed_since = coalesce(postponed_since, now()), worker = null, updated_at = now(),
       ${leasedFor("$3")},
       outcome = case when postponed_since < now() - interval '${longestPostponed}' then 'dead-lettered' end,
       reason = case when postponed_since < now() - interval '${longestPostponed}' then $4::text end
     where id = $1 and attempt = $2 and outcome is null returning outcome is not null as "isDead"`,
    [id, attempt, pauseMs, storable(`it could not be decided for ${longestPostponed}: ${why}`)],
  );
  return rows[0]?.isDead === true;
}

/**
 * Later deliveries of the same connection: an event may be decided after them. $1 is the event, $2 its organization.
 */
const deliveredSince = `from arrival told join arrival later
    on later.organization_id = told.organization_id and later.created_at > told.created_at and later.connection_id = told.connection_id
  where told.id = $1 and later.organization_id = $2 and later.payload #> '{repository,url}' = told.payload #> '{repository,url}'`;
/** The same of one pull request. */
const deliveredOfPullRequestSince = `${deliveredSince} and later.payload #> '{pullRequest,number}' = told.payload #> '{pullRequest,number}'`;

/**
 * Whether a later delivery about an event's pull request fulfils a condition. @param name of the prepared statement
 * @param condition on `later`
 */
async function isDeliveredSince(
  queryable: Queryable,
  { id, organizationId }: Pick<ClaimedEvent, "id" | "organizationId">,
  name: string,
  condition: string,
): Promise<boolean> {
  const text = `select ${deliveredOfPullRequestSince} and ${condition} limit 1`;
  const { rowCount } = await queryable.query({ name, text, values: [id, organizationId] });
  return rowCount === 1;
}

/**
 * The checks of a commit whose end was delivered after an event about one of them: the event may be decided after
 * those, if it was put off.
 * @param sha as the event names it
 */
export async function checksToldSince(
  queryable: Queryable,
  { id, organizationId }: Pick<ClaimedEvent, "id" | "organizationId">,
  sha: string,
): Promise<NonNullable<ForgeEvent["checks"]>[]> {
  const { rows } = await queryable.query<{ checks: NonNullable<ForgeEvent["checks"]> }>({
    name: "checks_told_since",
    text: `select later.payload -> 'checks' as checks ${deliveredSince} and later.name in ('checks.failed', 'checks.passed')
             and later.payload #>> '{checks,sha}' = $3`,
    values: [id, organizationId, sha],
  });
  return rows.map(({ checks }) => checks);
}

/**
 * Likewise: whether another verdict of a review of the same pull request was delivered after an event about a review.
 */
export function isReviewedSince(
  queryable: Queryable,
  event: Pick<ClaimedEvent, "id" | "organizationId">,
): Promise<boolean> {
  return isDeliveredSince(
    queryable,
    event,
    "is_reviewed_since",
    `later.name in ('pullRequest.reviewSubmitted', 'pullRequest.reviewDismissed')
             and later.payload #>> '{review,state}' <> 'commented'`,
  );
}

/** Likewise: whether the dismissal or withdrawal of a review was delivered after an event about it. */
export function isDismissedSince(
  queryable: Queryable,
  event: Pick<ClaimedEvent, "id" | "organizationId">,
): Promise<boolean> {
  return isDeliveredSince(
    queryable,
    event,
    "is_dismissed_since",
    `later.name = 'pullRequest.reviewDismissed'
             and later.payload #> '{review,id}' = told.payload #> '{review,id}'
             and later.payload #> '{review,author,id}' = told.payload #> '{review,author,id}'`,
  );
}

/** Likewise: whether its author asked for changes again after an event about a vote that was taken back. */
export function isAskedAgainSince(
  queryable: Queryable,
  event: Pick<ClaimedEvent, "id" | "organizationId">,
): Promise<boolean> {
  return isDeliveredSince(
    queryable,
    event,
    "is_asked_again_since",
    `later.name = 'pullRequest.reviewSubmitted'
             and later.payload #>> '{review,state}' = 'changesRequested'
             and later.payload #> '{review,author,id}' = told.payload #> '{review,author,id}'`,
  );
}

/** A session whose work on a forge a delivery is about. */
export interface OwnWork {
  /**
   * Whether it made the commit, opened the pull request, pushed there last, made what was merged as, or along with, the commit, or opened a
   * pull request of the branch, to which others pushed.
   */
  readonly did: "commit" | "open" | "push" | "merged" | "branch";
  readonly automationId: string | null;
  /** Of the event that started the session's run, or of the first event that led to that. */
  readonly rootId: string | null;
  /** How many runs led to the work, whichever session did most of it: the same for all. */
  readonly depth: number;
  /** How its pull requests are opened; null: as usual. */
  readonly settings: PullRequestSettings | null;
}

/** Sessions whose work one event may be about; of more, the newest. */
const mostOwnWork = 20;

/**
 * The organization's sessions that made a commit or worked on a pull request, those that made the commit first, then the newest first.
 * @param of.sha whole or, as Bitbucket Cloud delivers it with pull requests, its beginning; null: no commit is known
 * @param of.pullRequests null: it is about none, or about those of a repository that is not connected
 * @param of.along other commits of the same push, whole
 * @param of.repositoryId in which the commit may be a pull request's merge; null: it is not connected
 * @param of.branch in that repository, which may be that of a pull request; null: none is known
 */
export async function findOwnWork(
  database: Database,
  organizationId: string,
  of: {
    readonly sha: string | null;
    readonly pullRequests: { readonly repositoryId: string; readonly numbers: readonly number[] } | null;
    readonly along: readonly string[];
    readonly repositoryId: string | null;
    readonly branch: string | null;
  },
): Promise<readonly OwnWork[]> {
  const { rows } = await database.pool.query<Omit<OwnWork, "settings"> & { readonly settings: unknown }>({
    name: "find_own_work",
    text: `with own (did, session_id) as (
        select 'commit', session_id from session_repository where pushed_sha >= $2 and pushed_sha < $2 || 'g'
        union select 'commit', session_id from session_commit where sha >= $2 and sha < $2 || 'g'
        union select 'open', session_id from pull_request
          where organization_id = $1 and repository_id = $3 and number = any($4::integer[])
        union select 'push', part.session_id from pull_request join session_repository part
          on part.repository_id = pull_request.repository_id and part.pushed_sha = pull_request.head_sha
          where organization_id = $1 and pull_request.repository_id = $3 and pull_request.number = any($4::integer[])
        union select 'merged', session_id from session_repository where pushed_sha = any($5::text[])
        union select 'merged', session_id from session_commit where sha = any($5::text[])
        union select 'merged', session_id from pull_request
          where organization_id = $1 and repository_id = $6 and left(merge_sha, 12) = left($2, 12)
        union select 'branch', session_id from pull_request
          where organization_id = $1 and repository_id = $6 and head = $7
            -- GitLab rebases a branch as it merges it.
            and (state = 'open' or closed_at > now() - interval '1 minute'))
      select did, session.automation_id as "automationId", coalesce(arrival.root_id, arrival.id) as "rootId",
        max(coalesce(arrival.depth, 0)) over () as depth, session.pull_request as settings
      from own join session on session.id = own.session_id and session.organization_id = $1
      left join job on job.id = session.job_id left join arrival on arrival.id = job.event_id
      order by did <> 'commit', session.created_at desc limit ${mostOwnWork}`,
    values: [
      organizationId,
      of.sha,
      of.pullRequests?.repositoryId ?? null,
      of.pullRequests?.numbers ?? [],
      of.along,
      of.repositoryId,
      of.branch,
    ],
  });
  return rows.map((row) => ({
    ...row,
    settings: row.settings === null ? null : pullRequestSettingsSchema.parse(row.settings),
  }));
}

/** Records the origin of a forge's delivery, so that its own consequences are counted. */
export async function noteOrigin(
  database: Database,
  { id, attempt }: ClaimedEvent,
  { rootId, depth }: { readonly rootId: string | null; readonly depth: number },
): Promise<void> {
  await database.pool.query("update arrival set root_id = $3, depth = $4 where id = $1 and attempt = $2", [
    id,
    attempt,
    rootId,
    depth,
  ]);
}

/** Ends an event that goes no further, for the reason. A claim that was lost changes nothing. */
export async function filterEvent(database: Database, { id, attempt }: ClaimedEvent, reason: string): Promise<void> {
  await database.pool.query(
    `update arrival set outcome = 'filtered', reason = $3, lease_until = null, updated_at = now()
     where id = $1 and attempt = $2 and outcome is null`,
    [id, attempt, reason],
  );
}

/**
 * The enabled triggers that listen to an event by name and, if a connection delivered it, by that, those of one automation after each other and in their order, from
 * the one after `after`.
 */
export async function listeningTriggers(
  database: Database,
  {
    organizationId,
    connectionId,
    name,
    causedBy,
  }: Pick<ClaimedEvent, "organizationId" | "connectionId" | "name" | "causedBy">,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<FireableTrigger[]> {
  const { rows } = await database.pool.query<FireableTrigger>({
    name: "listening_triggers",
    text: `select ${fireableColumns} from trigger
           join automation on automation.id = trigger.automation_id and automation.deleted_at is null
           where trigger.organization_id = $1 and trigger.type = 'forge' and trigger.enabled and trigger.deleted_at is null
             and trigger.settings -> 'events' ? $2
             and ($3::text is null or trigger.settings ->> 'connectionId' is null or trigger.settings ->> 'connectionId' = $3)
             -- What a session did never starts its own automation again.
             and trigger.automation_id is distinct from $6
             and ($4::uuid is null or (trigger.automation_id, trigger.position, trigger.id) > (
               select last.automation_id, last.position, last.id from trigger last where last.id = $4))
           order by trigger.automation_id, trigger.position, trigger.id limit $5`,
    values: [organizationId, name, connectionId, after, limit, causedBy],
  });
  return rows;
}

/** The outcome of an event in its conversation. */
export interface Steered {
  readonly outcome: "fired" | "filtered";
  readonly reason: string | null;
  /** The session that it steers; null: of a run of an automation, which the ledger has by itself. */
  readonly sessionId: string | null;
  /**
   * The automation that was called by its macro and has a run of it, whichever event was delivered first; null: none.
   */
  readonly calledId: string | null;
}

/** Decisions of an event that are kept; beyond, its reason has their number alone. */
const mostDecisions = 100;

/** Writes what the listening triggers made of an event. A claim that was lost changes nothing. */
export async function decideEvent(
  database: Database,
  { id, attempt }: ClaimedEvent,
  decisions: readonly Decision[],
  steered: Steered | null = null,
): Promise<void> {
  const isSteering = steered?.outcome === "fired";
  const fired = decisions.filter(({ outcome }) => outcome === "fired").length + Number(isSteering);
  const kept = decisions
    .toSorted((one, other) => Number(one.outcome !== "fired") - Number(other.outcome !== "fired"))
    .slice(0, mostDecisions);
  const none = `none of the ${decisions.length} triggers that listen to it started a run`;
  const why = [decisions.length > 0 || steered === null ? none : null, steered?.reason ?? null];
  const reason = fired > 0 ? null : why.filter((each) => each !== null).join("; ");
  const sessionId = isSteering ? steered.sessionId : null;
  await database.pool.query(
    `update arrival set outcome = $3, reason = $4, decisions = $5, session_id = $6, lease_until = null, updated_at = now()
     where id = $1 and attempt = $2 and outcome is null`,
    [
      id,
      attempt,
      fired > 0 ? "fired" : "filtered",
      reason === null ? null : storable(reason),
      storableJson(kept),
      sessionId,
    ],
  );
}
