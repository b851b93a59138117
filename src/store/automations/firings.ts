import type { Database, Queryable } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { Verdict } from "../../domain/automations/condition.ts";
import type { JobTask } from "../../domain/automations/job.ts";
import type { Received } from "../../domain/automations/trigger.ts";
import { storableJson } from "../../domain/fields/text.ts";
import { noteTriggerProblem, type FireableTrigger } from "./triggers.ts";

/** What came to a trigger. */
export interface Arrival {
  /** Id of the ledger's entry, and of the job if it starts one: the same arrival has the same id, however often it is written. */
  readonly id: string;
  readonly payload: EventContext;
  /** What tells a second delivery of the same: keys within `scope`, the trigger's or the connection's id. */
  readonly scope?: string;
  readonly keys?: readonly string[];
  readonly name?: string | null;
  readonly deliveryId?: string | null;
  readonly subject?: string | null;
  /** The ledger's entry of the event, if several triggers may answer it. */
  readonly eventId?: string;
  readonly connectionId?: string | null;
  readonly traceParent?: string | null;
  /** Id of the ledger entry that it repeats. */
  readonly replayOf?: string;
  readonly task?: JobTask;
  /** What the session works on if the automation names no repositories. */
  readonly repositoryIds?: readonly string[] | null;
  /** Why it starts nothing, if that is known before its condition is asked. */
  readonly refusal?: string;
}

/** What came of it, and why if no run did. */
export interface Fired extends Received {
  readonly reason: string | null;
}

/**
 * Fires a trigger, or writes into the ledger why not: it was delivered before, its condition does not hold, its policy does not
 * let it.
 * @param verdict what its condition and its key gave
 */
export async function fireTrigger(
  database: Database,
  fireable: FireableTrigger,
  verdict: Verdict,
  arrival: Arrival,
): Promise<Fired> {
  const fired = await fireTriggerIn(database.pool, fireable, verdict, arrival);
  if (fired.outcome === "accepted") database.notify("offstage_work", "job");
  return fired;
}

/**
 * `fireTrigger` within a transaction, or outside. If the outcome is `accepted`, the caller notifies the workers once it is committed.
 * Within a transaction, lock the automation before the trigger, as those do who change them.
 */
export async function fireTriggerIn(
  queryable: Queryable,
  { id: triggerId, organizationId, automationId, priority, paused, trigger }: FireableTrigger,
  verdict: Verdict,
  { id, payload, scope = triggerId, keys = [], ...arrival }: Arrival,
): Promise<Fired> {
  const problem = "problem" in verdict ? verdict.problem : null;
  if (problem !== trigger.problem) await noteTriggerProblem(queryable, triggerId, problem);
  const { concurrency, debounceSeconds, maxPerHour } = trigger;
  const key = "key" in verdict ? verdict.key : null;
  const fired = {
    id,
    organizationId,
    automationId,
    triggerId,
    priority,
    payload,
    scope,
    keys,
    ...arrival,
    refusal: arrival.refusal ?? refusalOf({ paused, trigger }, verdict),
    policy: key === null ? null : (concurrency?.policy ?? null),
    concurrencyKey: key,
    debounceSeconds,
    maxPerHour,
  };
  const { rows } = await queryable.query<{ outcome: Received["outcome"]; entry: string; why: string | null }>({
    name: "fire_trigger",
    text: "select outcome, entry, why from fire_trigger($1::jsonb)",
    values: [storableJson(fired)],
  });
  const { outcome = "filtered", entry = id, why = null } = rows[0] ?? {};
  return { outcome, ledgerId: entry, reason: why };
}

/** Why a trigger starts no run whatever else runs; null: it may. */
function refusalOf({ paused, trigger }: Pick<FireableTrigger, "paused" | "trigger">, verdict: Verdict): string | null {
  if (paused) return "the automation is paused";
  if (!trigger.enabled) return "the trigger is disabled";
  if ("problem" in verdict) return verdict.problem;
  return verdict.passes ? null : "its condition does not hold";
}

/**
 * Lets jobs go that waited for quiet or for an older run of their key.
 * @returns how many
 */
export async function releaseHeldJobs(database: Database): Promise<number> {
  // Which keys are free. Not in the function: it locks automations before their jobs.
  await database.pool.query(
    `update job set holds_key = false
     where id = any(array(
       select job.id from job left join session on session.id = job.session_id
       where holds_key and job.status in ('completed', 'failed', 'cancelled')
         and (session.id is null or session.status in ('completed', 'failed', 'cancelled'))
       limit 10000 for no key update of job skip locked))`,
  );
  const { rows } = await database.pool.query<{ count: number }>("select release_held_jobs() as count");
  return rows[0]?.count ?? 0;
}

/** Sessions whose run a newer trigger has taken the place of, at most 100: they are to be cancelled. */
export async function supersededSessions(
  database: Database,
): Promise<{ readonly id: string; readonly organizationId: string }[]> {
  const { rows } = await database.pool.query<{ id: string; organizationId: string }>(
    `select session.id, session.organization_id as "organizationId" from job join session on session.id = job.session_id
     where job.holds_key and job.superseded and session.status not in ('completed', 'failed', 'cancelled')
       and not session.cancel_requested limit 100`,
  );
  return rows;
}
