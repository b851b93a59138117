import type { Database } from "../../database/database.ts";
import type { Vault } from "../secrets/vault.ts";
import { findReceivingTrigger, type ReceivingTrigger } from "./triggers.ts";

/** Triggers that take deliveries, kept in memory for a short time. */
export interface ReceivingTriggers {
  /**
   * The trigger that a delivery came to, perhaps slightly stale: the caller names its version in the statement that
   * acts on it, and asks for the fresh one if that is refused. Null if there is none, which is never answered from the
   * cache.
   */
  find(id: string): Promise<{ readonly found: ReceivingTrigger; readonly isFresh: boolean } | null>;
  /** The trigger as it is now. */
  findFresh(id: string): Promise<ReceivingTrigger | null>;
}

/** Its opened secrets are in memory for so long after they were read, in ms. */
const keptForMs = 60_000;
/** So many triggers are kept, those that were read last. */
const mostKept = 5_000;

/**
 * Caches the triggers of deliveries: decrypting a secret takes longer than all other work on a small delivery.
 * @param now a clock in milliseconds that never goes back
 */
export function createReceivingTriggers(
  database: Database,
  vault: Vault,
  now: () => number = () => performance.now(),
): ReceivingTriggers {
  const kept = new Map<string, { readonly trigger: ReceivingTrigger; readonly at: number }>();

  function forgetOld(): void {
    for (const [id, { at }] of kept) {
      // In the order of their reading.
      if (kept.size <= mostKept && now() - at < keptForMs) return;
      kept.delete(id);
    }
  }

  async function findFresh(id: string): Promise<ReceivingTrigger | null> {
    const at = now();
    const trigger = await findReceivingTrigger(database, vault, id);
    kept.delete(id);
    if (trigger !== null) kept.set(id, { trigger, at });
    forgetOld();
    return trigger;
  }

  return {
    findFresh,
    async find(id) {
      const known = kept.get(id);
      if (known !== undefined && now() - known.at < keptForMs) return { found: known.trigger, isFresh: false };
      const found = await findFresh(id);
      return found === null ? null : { found, isFresh: true };
    },
  };
}
