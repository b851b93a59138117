import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import { orphans } from "./marks.ts";
import { endProcess } from "./process-table.ts";

const sweepEveryMs = 10 * 60_000;

/** Ends what killed servers of this machine left running, at its start and now and then. */
export function createOrphanSweep(): Service {
  return createPeriodic({
    pass: () => {
      for (const pid of orphans()) endProcess(pid);
      return Promise.resolve();
    },
    everyMs: sweepEveryMs,
    // Processes that can't be read now, another user's or ending ones, are read again in the next pass.
    onFailure: () => undefined,
  });
}
