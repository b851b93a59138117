import { setImmediate } from "node:timers/promises";
import type { Database, Queryable } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { Verdict } from "../../domain/automations/condition.ts";
import { graceMs, judgeTicks, type JudgedTicks } from "../../domain/automations/due-ticks.ts";
import { silenceGraceMs } from "../../domain/automations/expectation.ts";
import { nextTick, ticksBefore } from "../../domain/automations/schedule.ts";
import { storableJson } from "../../domain/fields/text.ts";
import { isoTime } from "../cursor.ts";
import { derivedId } from "./derived-id.ts";
import { fireTriggerIn } from "./firings.ts";
import { announceSilence } from "./silences.ts";
import { fireableColumns, type FireableTrigger, type TriggerRecord } from "./triggers.ts";

/** Most ticks of one schedule with separate entries in the ledger, the newest: those before them share one. */
const mostTicks = 1_000;
/** Ticks of one schedule that are counted: each takes 0.2 ms of processor time, and after an outage all schedules have some. */
const mostCounted = 3_000;
/** Ticks that are computed before the event loop runs other work: about 5 ms. */
const ticksInOneGo = 25;

type ScheduleRecord = Extract<TriggerRecord, { readonly type: "schedule" }>;

/** A schedule of which a tick is due. */
export interface DueSchedule extends FireableTrigger {
  readonly trigger: ScheduleRecord;
  /** When it is due, as the database has it. */
  readonly dueAt: string;
  /** Why Offstage paused its automation itself; null: it did not. */
  readonly pausedReason: string | null;
  /** Its oldest tick that did not fire, since one did; null: there is none. */
  readonly unfiredAt: string | null;
  /** Changes with each edit of the trigger. */
  readonly version: string;
  /** The clock by which it is due, in ms since the epoch. */
  readonly now: number;
}

/** Evaluates a schedule's condition and key for a tick. */
export type EvaluateTick = (schedule: DueSchedule, event: EventContext) => Promise<Verdict>;

/** The query of `listDueSchedules`. */
export interface DueQuery {
  readonly limit: number;
  /** Schedules that are left out, by id. */
  readonly except: readonly string[];
  /** Gives each worker another order of schedules of the same minute, so that workers seldom take the same ones. */
  readonly worker: string;
  /** Instead of the database's clock. */
  readonly now?: Date | undefined;
}

/**
 * Lists schedules of which a tick is due: those that are on time first, so that they do not become late behind what an outage has left.
 * Schedules of deleted automations tick no more.
 */
export async function listDueSchedules(
  database: Database,
  { limit, except, worker, now }: DueQuery,
): Promise<DueSchedule[]> {
  const { rows } = await database.pool.query<DueSchedule>({
    name: "due_schedules",
    text: `select ${fireableColumns}, ${isoTime("trigger.next_at")} as "dueAt", trigger.updated_at::text as version,
             automation.paused_reason as "pausedReason", ${isoTime("trigger.unfired_at")} as "unfiredAt",
             floor(extract(epoch from clock.time) * 1000)::float8 as now
           from (select coalesce($1, clock_timestamp()) as time) as clock, trigger
           join automation on automation.id = trigger.automation_id and automation.deleted_at is null
           where trigger.next_at <= clock.time and trigger.enabled and trigger.deleted_at is null
             and trigger.type = 'schedule' and not trigger.id = any($2)
           order by trigger.next_at <= clock.time - $5 * interval '1 millisecond', trigger.next_at,
             hashtext(trigger.id::text || $3) limit $4`,
    values: [now, except, worker, limit, graceMs],
  });
  return rows;
}

/** Milliseconds until the next tick of any schedule, at most 0 if one is due; null if there is none. */
export async function untilNextTick(database: Database): Promise<number | null> {
  const { rows } = await database.pool.query<{ ms: number | null }>(
    `select (extract(epoch from next_at - clock_timestamp()) * 1000)::float8 as ms from trigger
     where next_at is not null and enabled and deleted_at is null
       and exists (select from automation where automation.id = trigger.automation_id and automation.deleted_at is null)
     order by next_at limit 1`,
  );
  return rows[0]?.ms ?? null;
}

/**
 * Decides a schedule's ticks up to now, and moves it to its next one, all in one transaction: each tick has one entry in the ledger,
 * however many workers look at it, and if one of them dies. A paused automation does not tick: its schedule is moved on alone.
 * @param evaluate is called outside of the transaction, which holds locks
 * @returns false if another worker was first, or the trigger has just changed: read it again
 */
export async function tickSchedule(
  database: Database,
  schedule: DueSchedule,
  evaluate: EvaluateTick,
): Promise<boolean> {
  const { trigger, now } = schedule;
  const next = nextTick(trigger, now);
  const due = schedule.paused ? noTicks : await dueTicks(schedule);
  const judged = judgeTicks(due.ticks, { now, missed: trigger.missed });
  const runs: { readonly id: string; readonly payload: EventContext; readonly verdict: Verdict }[] = [];
  for (const tick of judged.run) {
    const payload = eventOf(trigger, tick);
    runs.push({ id: tickId(schedule.id, tick), payload, verdict: await evaluate(schedule, payload) });
  }
  const outcome = await database.transaction(async (transaction) => {
    const locked = await lock(transaction, schedule);
    if (locked === null) return "taken";
    let accepted = false;
    const known = await decided(transaction, runs);
    for (const { verdict, ...run } of runs.filter(({ id }) => !known.has(id))) {
      const fired = await fireTriggerIn(transaction, locked, verdict, run);
      accepted ||= fired.outcome === "accepted";
    }
    await noteMissed(transaction, schedule, judged, due.older);
    await noteUnfired(transaction, schedule, judged);
    await transaction.query("update trigger set next_at = $2 where id = $1", [
      schedule.id,
      next === null ? null : new Date(next),
    ]);
    return accepted ? "accepted" : "moved";
  });
  if (outcome === "accepted") database.notify("offstage_work", "job");
  return outcome !== "taken";
}

/** The ticks of a schedule that are due, the oldest first, and what is known of those before the first of them. */
interface DueTicks {
  readonly ticks: readonly number[];
  readonly older: { readonly count: number; readonly newest: number } | null;
}
const noTicks: DueTicks = { ticks: [], older: null };

async function dueTicks({ trigger, dueAt, now }: DueSchedule): Promise<DueTicks> {
  const from = Date.parse(dueAt);
  const ticks: number[] = [];
  for (const tick of ticksBefore(trigger, now + 1)) {
    if (tick < from || ticks.length > mostCounted) break;
    ticks.push(tick);
    if (ticks.length % ticksInOneGo === 0) await setImmediate();
  }
  const [newest] = ticks.slice(mostTicks);
  return {
    ticks: ticks.slice(0, mostTicks).toReversed(),
    older: newest === undefined ? null : { count: ticks.length - mostTicks, newest },
  };
}

/**
 * Locks a schedule as it was read, with its automation, so that neither is changed before the end of the transaction;
 * null if either has changed. The automation is locked first, as by changes of it, so that there is no deadlock.
 */
async function lock(transaction: Queryable, schedule: DueSchedule): Promise<FireableTrigger | null> {
  await transaction.query({
    name: "lock_automation_of_schedule",
    text: "select from automation where id = $1 for no key update",
    values: [schedule.automationId],
  });
  const { rows } = await transaction.query<FireableTrigger>({
    name: "lock_schedule",
    text: `select ${fireableColumns} from trigger
           join automation on automation.id = trigger.automation_id and automation.deleted_at is null
           where trigger.id = $1 and date_trunc('milliseconds', trigger.next_at) = $2::timestamptz
             and trigger.updated_at = $3::timestamptz and automation.paused = $4 and trigger.enabled
             and trigger.deleted_at is null
           for no key update of trigger`,
    values: [schedule.id, schedule.dueAt, schedule.version, schedule.paused],
  });
  return rows[0] ?? null;
}

/** Which of the ticks are in the ledger already: an API node whose clock is behind may set a schedule back when it is saved. */
async function decided(transaction: Queryable, ticks: readonly { readonly id: string }[]): Promise<Set<string>> {
  if (ticks.length === 0) return new Set();
  const { rows } = await transaction.query<{ id: string }>(
    "select id from arrival where id = any($1) union all select id from job where id = any($1)",
    [ticks.map(({ id }) => id)],
  );
  return new Set(rows.map(({ id }) => id));
}

async function noteMissed(
  transaction: Queryable,
  { id, organizationId, automationId, trigger, now }: DueSchedule,
  { missed, instead }: JudgedTicks,
  older: DueTicks["older"],
): Promise<void> {
  const consequence =
    instead === null
      ? `it does not run (missed: ${trigger.missed})`
      : `the tick of ${timeOf(instead)} runs in its place (missed: ${trigger.missed})`;
  const entries: { id: string; reason: string; payload?: EventContext }[] = missed.map((tick) => ({
    id: tickId(id, tick),
    reason: `no worker looked at the schedule in time: it was ${lateness(now - tick)} late, and ${consequence}`,
    payload: eventOf(trigger, tick),
  }));
  if (older !== null) {
    const count = older.count > mostCounted - mostTicks ? `more than ${mostCounted - mostTicks}` : `${older.count}`;
    const reason = `${count} more ticks, up to that of ${timeOf(older.newest)}, were missed too: only the newest ${mostTicks} have entries of their own`;
    // Without an event: one entry of many can't be replayed.
    entries.unshift({ id: tickId(id, older.newest), reason });
  }
  if (entries.length === 0) return;
  await transaction.query(
    `insert into arrival (id, organization_id, automation_id, trigger_id, outcome, reason, payload)
     select entry.id, $1, $2, $3, 'missed', entry.reason, entry.payload
     from jsonb_to_recordset($4::jsonb) as entry (id uuid, reason text, payload jsonb)
     where not exists (select from job where job.id = entry.id)
     on conflict (id) do nothing`,
    [organizationId, automationId, id, storableJson(entries)],
  );
}

/**
 * Records since when ticks of the schedule have not fired, which the watch of silences reads; and announces at once
 * those that were so late that the watch would find nothing overdue any more.
 */
async function noteUnfired(
  transaction: Queryable,
  { id, automationId, dueAt, paused, pausedReason, unfiredAt, now }: DueSchedule,
  { run, missed }: JudgedTicks,
): Promise<void> {
  const first = unfiredAt ?? dueAt;
  const fires = run.length > 0;
  if (fires && now - Date.parse(first) >= silenceGraceMs) {
    const reason = `the tick of ${first} did not fire in time: no worker looked at its schedule for ${lateness(now - Date.parse(first))}`;
    await announceSilence(transaction, automationId, { since: new Date(first), reason });
  }
  // A schedule that a person has paused misses no ticks.
  const isMissed = paused ? pausedReason !== null : missed.length > 0;
  const left = fires || !isMissed ? null : first;
  if (left !== unfiredAt) await transaction.query("update trigger set unfired_at = $2 where id = $1", [id, left]);
}

/** The `event` of conditions and instructions. */
function eventOf({ cron, timeZone }: ScheduleRecord, tick: number): EventContext {
  return { scheduledAt: timeOf(tick), timeZone, cron };
}

const timeOf = (ms: number): string => new Date(ms).toISOString();

/** For example `3 h 20 min`. */
function lateness(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The id of a tick's entry in the ledger, the same on every worker. */
export function tickId(triggerId: string, tick: number): string {
  return derivedId(`offstage:tick:${triggerId}:${tick}`);
}

/** Resumes the schedules of an automation that was paused: ticks of the time between were not missed. */
export async function resumeSchedules(transaction: Queryable, automationId: string): Promise<void> {
  const { rows } = await transaction.query<{ id: string; settings: ScheduleRecord; now: number }>(
    `select id, settings, floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now from trigger
     where automation_id = $1 and type = 'schedule' and deleted_at is null and next_at <= clock_timestamp() for update`,
    [automationId],
  );
  for (const { id, settings, now } of rows) {
    const next = nextTick(settings, now);
    await transaction.query("update trigger set next_at = $2 where id = $1", [
      id,
      next === null ? null : new Date(next),
    ]);
  }
}
