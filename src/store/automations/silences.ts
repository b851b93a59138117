import type { Database, Queryable } from "../../database/database.ts";
import { silenceGraceMs } from "../../domain/automations/expectation.ts";
import { isoTime } from "../cursor.ts";

const grace = `interval '${silenceGraceMs} milliseconds'`;
const tickOf = (column: string): string => `'the tick of ' || ${isoTime(column)}`;

/**
 * SQL for what is overdue: `automation_id`, since when, and a sentence. An automation that a person has paused or
 * deleted is never overdue. $1 is the time, or null for the database's clock; $2 the only automation to look at, or
 * null for all.
 */
const overdue = `
  select automation.id as automation_id, found.since, found.reason
  from (select coalesce($1, clock_timestamp()) as now) as clock, automation, lateral (
    select trigger.next_at as since, ${tickOf("trigger.next_at")} || ' is due, and no worker has decided it' as reason from trigger
    where trigger.automation_id = automation.id and trigger.type = 'schedule' and trigger.enabled and trigger.deleted_at is null
      and trigger.next_at <= clock.now - ${grace}
    union all
    select trigger.unfired_at, ${tickOf("trigger.unfired_at")} || ' did not fire: '
        || case when automation.paused then 'the automation is paused, because ' || automation.paused_reason
          else 'no worker looked at it in time' end from trigger
    where trigger.automation_id = automation.id and trigger.enabled and trigger.deleted_at is null
      and trigger.unfired_at <= clock.now - ${grace}
    union all
    select waiting.since, 'the run of a tick has waited for a worker since ' || ${isoTime("waiting.since")} from (
      select min(job.created_at) as since from job join trigger on trigger.id = job.trigger_id and trigger.type = 'schedule'
      where job.organization_id = automation.organization_id and job.automation_id = automation.id and job.status = 'pending'
        and job.held_until is null and job.created_at <= clock.now - ${grace}) as waiting
    where waiting.since is not null
    union all
    -- One that waits for the run before it (concurrency: queue) is late once the next tick's waits behind it.
    select queued.since, 'the run of a tick has waited for the runs before it since ' || ${isoTime("queued.since")}
        || ', and that of the next tick waits too' from (
      select min(job.created_at) as since from job join trigger on trigger.id = job.trigger_id and trigger.type = 'schedule'
      where job.organization_id = automation.organization_id and job.automation_id = automation.id and job.status = 'pending'
        and job.held_until = 'infinity' and job.created_at <= clock.now - ${grace}
        and exists (select from job as next where next.organization_id = job.organization_id and next.automation_id = job.automation_id
          and next.status = 'pending' and next.held_until = 'infinity' and next.trigger_id = job.trigger_id
          and next.concurrency_key = job.concurrency_key and next.created_at > job.created_at)) as queued
    where queued.since is not null
    union all
    select clock.now, 'it fired ' || fired.count || case fired.count when 1 then ' time' else ' times' end || ' within '
        || (automation.expect ->> 'everyHours') || ' h, and at least ' || (automation.expect ->> 'atLeast') || ' are expected' from (
      select count(*)::integer as count from (
        select from job where job.automation_id = automation.id and job.status = 'completed'
          and job.created_at > clock.now - (automation.expect ->> 'everyHours')::integer * interval '1 hour'
        limit (automation.expect ->> 'atLeast')::integer) as counted) as fired
    where automation.expect is not null
      and automation.expect_since <= clock.now - (automation.expect ->> 'everyHours')::integer * interval '1 hour'
      and fired.count < (automation.expect ->> 'atLeast')::integer) as found
  where ($2::uuid is null or automation.id = $2) and automation.deleted_at is null
    and not (automation.paused and automation.paused_reason is null)`;

/** Which automations a pass announced. */
export interface ReviewedSilences {
  readonly silent: number;
  readonly recovered: number;
}

/**
 * Finds automations that were expected to fire and did not, and those that do again: each is announced once, in the
 * transaction that records it, however many workers look and whenever they are restarted.
 * @param now instead of the database's clock
 */
export async function reviewSilences(database: Database, now: Date | null = null): Promise<ReviewedSilences> {
  const { rows } = await database.pool.query<{ id: string }>(
    `with overdue as (select distinct automation_id from (${overdue}) as each)
     select automation.id from automation left join overdue on overdue.automation_id = automation.id
     where (automation.silent_since is null) = (overdue.automation_id is not null)
     order by automation.id`,
    [now, null],
  );
  let silent = 0;
  let recovered = 0;
  for (const { id } of rows) {
    const outcome = await database.transaction((transaction) => reviewOne(transaction, id, now));
    if (outcome === "silent") silent += 1;
    if (outcome === "recovered") recovered += 1;
  }
  return { silent, recovered };
}

async function reviewOne(
  transaction: Queryable,
  id: string,
  now: Date | null,
): Promise<"silent" | "recovered" | "unchanged"> {
  // Read again under the lock, when no other transaction can decide, pause or report it.
  await transaction.query("select from automation where id = $1 for no key update", [id]);
  const { rows } = await transaction.query<{ since: Date; reason: string }>(
    `select since, reason from (${overdue}) as each order by since limit 1`,
    [now, id],
  );
  const [found] = rows;
  if (found === undefined) return (await announceRecovery(transaction, id)) ? "recovered" : "unchanged";
  return (await announceSilence(transaction, id, found)) ? "silent" : "unchanged";
}

/**
 * Records that an automation is silent, and announces it to its organization's webhooks, unless that was done before.
 * The caller has locked the automation.
 * @returns false if it was
 */
export async function announceSilence(
  transaction: Queryable,
  id: string,
  { since, reason }: { readonly since: Date; readonly reason: string },
): Promise<boolean> {
  const { rowCount } = await transaction.query(
    `with changed as (
       update automation set silent_since = $2, silent_reason = $3 where id = $1 and silent_since is null returning *)
     select enqueue_webhooks(organization_id, 'automation.silent', jsonb_build_object('id', id, 'name', name, 'macro', macro,
       'since', ${isoTime("silent_since")}, 'reason', silent_reason)) from changed`,
    [id, since, reason],
  );
  return rowCount === 1;
}

/** Records and announces that nothing is overdue any more. @returns false if it was so before */
async function announceRecovery(transaction: Queryable, id: string): Promise<boolean> {
  const { rowCount } = await transaction.query(
    `with before as (select silent_since from automation where id = $1 and silent_since is not null),
     changed as (
       update automation set silent_since = null, silent_reason = null where id = $1 and silent_since is not null returning *)
     select enqueue_webhooks(organization_id, 'automation.recovered', jsonb_build_object('id', id, 'name', name, 'macro', macro,
       'since', ${isoTime("before.silent_since")}, 'reason', case when deleted_at is not null then 'it was deleted'
         when paused then 'somebody paused it' else 'nothing that is expected of it is overdue any more' end)) from changed, before`,
    [id],
  );
  return rowCount === 1;
}

/**
 * Restarts the expectations of an automation that a person resumes: runs that were missing meanwhile are not overdue. A
 * silence that was announced stays until it fires.
 */
export async function resumeExpectations(transaction: Queryable, id: string): Promise<void> {
  await transaction.query(
    `update automation set expect_since = clock_timestamp() where id = $1 and silent_since is null and expect is not null`,
    [id],
  );
  await transaction.query(
    `update trigger set unfired_at = null from automation
     where automation_id = $1 and automation.id = automation_id and silent_since is null and unfired_at is not null`,
    [id],
  );
}
