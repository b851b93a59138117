import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { isConflictOfTransactions } from "./connection-errors.ts";

/**
 * How long, in ms, a change of a table waits for those that use it, such as a backup: everything that comes after it waits for it,
 * renewals of leases too. Then it lets them pass, and tries again.
 */
const lockTimeoutMs = 2_000;
const lockPauseMs = 1_000;

/**
 * Changes the schema in a transaction that lets others pass: one that got no lock, or met others in a deadlock, is rolled back and comes
 * again after a pause.
 * @param work what is done, perhaps several times; its errors have those of PostgreSQL as their cause
 * @throws what `work` throws, unless it is for a lock
 */
export async function inYieldingTransaction(client: pg.ClientBase, work: () => Promise<void>): Promise<void> {
  for (;;) {
    await client.query("begin");
    try {
      await client.query(`set local lock_timeout = '${lockTimeoutMs}ms'`);
      await work();
      await client.query("commit");
      return;
    } catch (error) {
      await client.query("rollback");
      if (!isLockTimeout(error)) throw error;
      await pause(lockPauseMs);
    }
  }
}

/** `lock_not_available` of PostgreSQL's error codes, or a deadlock with those who use several tables in another order. */
function isLockTimeout(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  return cause?.code === "55P03" || isConflictOfTransactions(cause);
}
