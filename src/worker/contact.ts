import type { Database } from "../database/database.ts";

/** Whether the leases of others say anything: after a time without the database, every worker's have run out. */
export interface Contact {
  /**
   * Asks the database for nothing but an answer.
   * @returns whether it has answered for a whole lease without a gap in which leases may have run out
   * @throws if it does not answer
   */
  lasts(): Promise<boolean>;
}

/**
 * Watches how long a worker has reached the database. A lease that ran out while this worker did not may be that of a worker that was cut
 * off as well, and comes back: for the length of one lease that worker takes its sessions again before others do. This delays a takeover
 * by the machine's own clock, and never permits one.
 */
export function createContact(database: Database, leaseMs: number): Contact {
  // A worker that starts has seen no gap.
  let since = Number.NEGATIVE_INFINITY;
  let last: number | null = null;
  return {
    async lasts() {
      await database.pool.query("select");
      const now = performance.now();
      // A lease is renewed every third of its length, so that after a shorter gap none has run out.
      if (last !== null && now - last > leaseMs / 2) since = now;
      last = now;
      return now - since >= leaseMs;
    },
  };
}
