import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";

const everyMs = 60_000;
/** Checks of one pass: at most so many requests begin at once, of which each is over in half a minute. */
const batch = 10;

/** Something that is checked again and again, each in its own time. Any number of workers may. */
export interface DueChecks<Due> {
  /** Takes what is due, at most so many. */
  claim(limit: number): Promise<readonly Due[]>;
  check(due: Due, stopping: AbortSignal): Promise<void>;
  /** Reports a check that failed unexpectedly; the others go on. */
  checkFailed(error: unknown, due: Due): void;
  /** Reports that due checks could not be claimed. */
  claimFailed(error: unknown): void;
}

/** Makes the task that checks each minute what is due. */
export function createDueChecks<Due>(checks: DueChecks<Due>): Service {
  return createPeriodic({
    pass: async (stopping) => {
      while (!stopping.aborted && (await checkDue(checks, stopping)) === batch);
    },
    everyMs,
    firstAfterMs: everyMs / 2,
    onFailure: (error) => checks.claimFailed(error),
  });
}

/**
 * Checks what is due, at most ten.
 * @param stopping ends the checks under way, whose results are dropped
 * @returns how many were due
 */
export async function checkDue<Due>(checks: DueChecks<Due>, stopping: AbortSignal): Promise<number> {
  const due = await checks.claim(batch);
  await Promise.all(
    due.map(async (one) => {
      try {
        await checks.check(one, stopping);
      } catch (error) {
        if (!stopping.aborted) checks.checkFailed(error, one);
      }
    }),
  );
  return due.length;
}
