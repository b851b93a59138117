import { randomUUID } from "node:crypto";
import type { Database } from "../../database/database.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import { createService, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import {
  listDueSchedules,
  tickSchedule,
  untilNextTick,
  type DueSchedule,
  type EvaluateTick,
} from "../../store/automations/ticks.ts";
import type { Templates } from "../../templates/templates.ts";
import { expressionOf } from "../../store/automations/triggers.ts";

/**
 * Longest time between two polls of the schedules, in ms: a new one may tick before the time that the last poll found.
 */
const longestPauseMs = 5_000;
const batch = 100;
/** Schedules that are decided at once. */
const concurrency = 4;

/** Dependencies for deciding the ticks of schedules. */
export interface ScheduleTickOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly templates: Pick<Templates, "evaluateOne">;
  /** A clock instead of the database's. */
  readonly now?: () => Date;
}

/**
 * Makes the task that starts the runs of schedules, within a second of their time. Any number of workers may have one: each tick is
 * decided once.
 */
export function createScheduleTicks(options: ScheduleTickOptions): Service {
  const { database, logger } = options;
  let timer: NodeJS.Timeout | null = null;
  const looks = createPeriodic({
    pass: async (stopping) => {
      await tickSchedules(options, stopping);
      const ms = await untilNextTick(database);
      if (timer !== null) clearTimeout(timer);
      // One that is due now could not be decided just now: it is tried again after the pause.
      timer = ms === null || ms <= 0 || ms > longestPauseMs ? null : setTimeout(() => looks.now(), Math.ceil(ms));
    },
    everyMs: longestPauseMs,
    onFailure: (error) => logger.warn({ err: error }, "could not look at the schedules; will retry"),
  });
  return createService({
    start: () => looks.start(),
    async stop() {
      await looks.stop();
      if (timer !== null) clearTimeout(timer);
    },
  });
}

/**
 * Decides all ticks that are due. A schedule that fails is logged, and due again in the next pass.
 * @param stopping ends the pass before its next schedule
 * @returns how many schedules it decided
 */
export async function tickSchedules(options: ScheduleTickOptions, stopping: AbortSignal): Promise<number> {
  const { database, now } = options;
  const worker = randomUUID();
  const except: string[] = [];
  let count = 0;
  while (!stopping.aborted) {
    const due = await listDueSchedules(database, { limit: batch, except, worker, now: now?.() });
    if (due.length === 0) break;
    const left = due.values();
    const decide = async (): Promise<void> => {
      for (const schedule of left) {
        if (stopping.aborted) return;
        if (await decideOne(options, schedule)) count += 1;
        else except.push(schedule.id);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, decide));
  }
  return count;
}

async function decideOne(
  { database, logger, templates }: ScheduleTickOptions,
  schedule: DueSchedule,
): Promise<boolean> {
  const evaluate: EvaluateTick = ({ id, organizationId, trigger }, event) =>
    templates.evaluateOne(expressionOf(trigger), { event, repository: null }, { organizationId, id });
  try {
    return await tickSchedule(database, schedule, evaluate);
  } catch (error) {
    logger.warn({ err: error, triggerId: schedule.id }, "could not decide a schedule's ticks; will retry");
    return false;
  }
}
