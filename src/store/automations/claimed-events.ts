import type { Database } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { Decision } from "../../domain/automations/ledger.ts";
import { storable, storableJson } from "../../domain/fields/text.ts";

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
  /** The automation whose session it tells of, if it is an event of Offstage itself. */
  readonly causedBy: string | null;
  /** The first event of the chain of runs that led to it; null: it is that itself. */
  readonly rootId: string | null;
  /** How many runs led to it. */
  readonly depth: number;
}

/** Keys of what an event tells, whichever connection tells it. */
export function contentKeysOf({ contentKey }: Pick<ClaimedEvent, "contentKey">): string[] {
  return contentKey === null ? [] : [`content:${contentKey}`];
}

/**
 * Keys by which of an automation's triggers one alone answers an event, also if they are changed before it is decided again, or listen
 * to several connections that tell of the same.
 */
export function automationKeysOf(event: Pick<ClaimedEvent, "id" | "contentKey">): string[] {
  return [`event:${event.id}`, ...contentKeysOf(event)];
}

/**
 * Nobody else may claim an event for so long. What steers keeps a lease that never ends, for workers of the version before: they would
 * decide it for triggers alone, and what was said would be lost.
 */
const leasedFor = (ms: string): string => `
  lease_until = case when steers_from is null then now() + ${ms} * interval '1 millisecond' else 'infinity' end,
  steers_from = case when steers_from is not null then now() + ${ms} * interval '1 millisecond' end`;

/** An event is given up after this many attempts that did not end; those that were put off are not counted. */
const attemptLimit = 10;

/**
 * Claims an event that nobody decides, of any organization with the same chance the oldest; null if there is none. So whoever sends a
 * thousand holds up nobody else. One that its workers broke off too often is dead-lettered.
 * @param leaseMs after which another worker may claim it
 * @param without ids of organizations and connections whose events are not claimed now
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
                 and (connection_id is null or connection_id <> all($4::uuid[]))
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

/** Records what a delivery of a forge follows from, so that what comes of it in turn is counted. */
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

/** What came of an event in its conversation. */
export interface Steered {
  readonly outcome: "fired" | "filtered";
  readonly reason: string | null;
  /** The session that it steers; null: of a run of an automation, which the ledger has by itself. */
  readonly sessionId: string | null;
  /** The automation that was called by its macro and has a run of it, whichever event told of it first; null: none. */
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
