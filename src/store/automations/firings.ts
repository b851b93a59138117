import type { Database, Queryable } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { Verdict } from "../../domain/automations/condition.ts";
import type { JobTask } from "../../domain/automations/job.ts";
import { isAboutIssue } from "../../domain/automations/event-subject.ts";
import { mostRunsOfSubject, type Received } from "../../domain/automations/trigger.ts";
import { storableJson } from "../../domain/fields/text.ts";
import type { FireableTrigger } from "./triggers.ts";

/** An arrival at a trigger. */
export interface Arrival {
  /** Id of the ledger's entry, and of the job if it starts one: the same arrival has the same id, however often it is written. */
  readonly id: string;
  readonly payload: EventContext;
  /** By what a second delivery of the same to the trigger is recognized. */
  readonly keys?: readonly string[];
  /**
   * By what all triggers of the automation recognize the same happening, of which one answers it; omitted: each may.
   */
  readonly automationKeys?: readonly string[];
  readonly name?: string | null;
  readonly deliveryId?: string | null;
  readonly subject?: string | null;
  /** The ledger's entry of the event, if several triggers may answer it. */
  readonly eventId?: string;
  readonly connectionId?: string | null;
  readonly traceParent?: string | null;
  readonly task?: JobTask;
  /** The session's repositories if the automation names none. */
  readonly repositoryIds?: readonly string[] | null;
  /** Why it starts nothing, if that is known before its condition is asked. */
  readonly refusal?: string;
}

/** Its outcome, and the reason if there is no run. */
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
  fireable: FireableTrigger,
  verdict: Verdict,
  arrival: Arrival,
): Promise<Fired> {
  const { payload } = arrival;
  const { rows } = await queryable.query<{ outcome: Received["outcome"]; entry: string; why: string | null }>({
    name: "fire_trigger",
    text: "select outcome, entry, why from fire_trigger($1::jsonb)",
    values: [storableJson({ ...toFire(fireable, verdict, arrival), payload })],
  });
  // Last: it locks the trigger, and what fires it the automation.
  await noteVerdict(queryable, fireable, verdict);
  const { outcome = "filtered", entry = arrival.id, why = null } = rows[0] ?? {};
  return { outcome, ledgerId: entry, reason: why };
}

/** The input of `fire_trigger`, without the payload. */
function toFire(fireable: FireableTrigger, verdict: Verdict, whole: Arrival) {
  const { payload: _, keys = [], ...arrival } = whole;
  const { id: triggerId, organizationId, automationId, priority, paused, trigger } = fireable;
  const { concurrency, debounceSeconds, maxPerHour } = trigger;
  const key = "key" in verdict ? verdict.key : null;
  return {
    organizationId,
    automationId,
    triggerId,
    priority,
    keys,
    ...arrival,
    refusal: arrival.refusal ?? refusalOf({ paused, trigger }, verdict),
    policy: key === null ? null : (concurrency?.policy ?? null),
    // Without a key, what is about another thing is no part of the same succession.
    concurrencyKey: key ?? (debounceSeconds === null ? null : (arrival.subject ?? null)),
    debounceSeconds,
    maxPerHour,
    mostOfSubject: mostOfSubject(trigger, arrival),
  };
}

/**
 * Runs that the automation may start about what an event is about; null: any number. The subjects of CloudEvents may
 * stand for ever. What follows from work on a pull request is known as such, and what comes of an issue is not: a program
 * may write to it whenever a pull request names it.
 */
function mostOfSubject(
  trigger: FireableTrigger["trigger"],
  { subject, name }: Pick<Arrival, "subject" | "name">,
): number | null {
  const isBounded =
    trigger.type === "source" ? trigger.source !== "cloudEvents" : trigger.type === "forge" && isAboutIssue(name ?? "");
  return isBounded && (subject ?? null) !== null ? mostRunsOfSubject : null;
}

/** A delivery to a trigger that is to be fired together with others. */
export interface Firing {
  /** The input of `fire_triggers`, as JSON. */
  readonly json: string;
  /** Whether it needs no lock on its automation. Others are fired one by one. */
  readonly isPlain: boolean;
}

/**
 * Prepares a delivery.
 * @param arrival whose payload the database must be able to store as it is, and which names no repositories
 * @param version of the trigger when the delivery's signature was verified; null: any
 */
export function prepareFiring(
  fireable: FireableTrigger,
  verdict: Verdict,
  arrival: Arrival & { readonly repositoryIds?: never },
  version: string | null,
): Firing {
  const fired = toFire(fireable, verdict, arrival);
  const { policy, debounceSeconds, maxPerHour, mostOfSubject: most } = fired;
  const isPlain = policy === null && debounceSeconds === null && maxPerHour === null && most === null;
  const head = storableJson({ ...fired, version });
  return { json: `${head.slice(0, -1)},"payload":${JSON.stringify(arrival.payload)}}`, isPlain };
}

/**
 * Fires triggers in one statement and commit, in the order of the list.
 * @param firings more than one only if all are plain
 * @returns the outcome of each; null: its trigger has changed, and nothing was written
 */
export async function fireTriggers(database: Database, firings: readonly Firing[]): Promise<(Fired | null)[]> {
  const { rows } = await database.pool.query<{
    place: number;
    outcome: Received["outcome"] | "stale";
    entry: string;
    why: string | null;
  }>({
    name: "fire_triggers",
    text: "select place::integer, outcome, entry, why from fire_triggers($1::jsonb)",
    values: [`[${firings.map(({ json }) => json).join(",")}]`],
  });
  const byPlace = new Map(rows.map((row) => [row.place, row]));
  if (rows.some(({ outcome }) => outcome === "accepted")) database.notify("offstage_work", "job");
  return firings.map((_, index) => {
    const row = byPlace.get(index + 1);
    if (row === undefined) throw new Error(`no outcome of delivery ${index + 1} of ${firings.length}`);
    return row.outcome === "stale" ? null : { outcome: row.outcome, ledgerId: row.entry, reason: row.why };
  });
}

/** Why a trigger starts no run whatever else runs; null: it may. */
function refusalOf({ paused, trigger }: Pick<FireableTrigger, "paused" | "trigger">, verdict: Verdict): string | null {
  if (paused) return "the automation is paused";
  if (!trigger.enabled) return "the trigger is disabled";
  return refusalOfVerdict(verdict);
}

/** Why a trigger starts no run by its condition and key alone; null: it may. */
export function refusalOfVerdict(verdict: Verdict): string | null {
  if ("problem" in verdict) return verdict.problem;
  return verdict.passes ? null : "its condition does not hold";
}

/** Records why a trigger's condition or key could not be evaluated, or that it could again. `fireTrigger` does so by itself. */
export async function noteVerdict(
  queryable: Queryable,
  { id, trigger }: Pick<FireableTrigger, "id" | "trigger">,
  verdict: Verdict,
): Promise<void> {
  const problem = "problem" in verdict ? verdict.problem : null;
  if (problem === trigger.problem) return;
  await queryable.query("update trigger set problem = $2 where id = $1 and problem is distinct from $2", [id, problem]);
}

/**
 * Releases jobs that waited for quiet or for an older run of their key.
 * @returns how many
 */
export async function releaseHeldJobs(database: Database): Promise<number> {
  // Which keys are free. Not in the function: it locks automations before their jobs.
  await database.pool.query(
    `update job set holds_key = false
     where id = any(array(
       select id from job where holds_key and not is_under_way(job)
       limit 10000 for no key update skip locked))`,
  );
  const { rows } = await database.pool.query<{ count: number }>("select release_held_jobs() as count");
  return rows[0]?.count ?? 0;
}

/** Sessions whose run a newer trigger has taken the place of, at most 100: they are to be cancelled. */
export async function supersededSessions(
  database: Database,
): Promise<{ readonly id: string; readonly organizationId: string }[]> {
  const { rows } = await database.pool.query<{ id: string; organizationId: string }>(
    `select session.id, session.organization_id as "organizationId" from job join session on session.job_id = job.id
     where job.holds_key and job.superseded and session.status not in ('completed', 'failed', 'cancelled')
       and not session.cancel_requested limit 100`,
  );
  return rows;
}
