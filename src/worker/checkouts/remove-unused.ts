import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../observability.ts";
import { usedAtMs } from "./choose-base.ts";
import { layersInUse } from "./layers.ts";
import { unfinishedPrefix } from "./make-checkout.ts";
import { checkoutNames, readSharedCheckout, type SharedCheckouts } from "./shared-checkouts.ts";
import { trialPrefix } from "./ways.ts";
import { isOlderThanADay } from "../disk/age.ts";
import { removeFolder } from "../disk/remove-folder.ts";
import { namesIn } from "../disk/session-folders.ts";

const dayMs = 24 * 60 * 60 * 1_000;
/** Prefix of the name of a checkout that is being removed, which no session looks for. */
const removedPrefix = "removed-";

/**
 * Removes shared checkouts that were unused for too long or exceed the size limit, the least recently used first, except those that a
 * workspace is laid on at this moment. A session whose workspace is opened again later has its checkout made again. A removal that a
 * crash interrupts is completed the next time. Errors about one checkout are logged.
 * @param limits.days 0: they may stay unused for ever
 * @param limits.maximumBytes of all together; 0: no limit
 * @returns how many were removed
 */
export async function removeUnusedCheckouts(
  { checkouts, logger }: { readonly checkouts: SharedCheckouts; readonly logger: Logger },
  { days, maximumBytes }: { readonly days: number; readonly maximumBytes: number },
  signal: AbortSignal,
): Promise<number> {
  const { directory } = checkouts;
  await removeLeftovers(directory);
  const known: { name: string; bytes: number; usedMs: number }[] = [];
  for (const name of await checkoutNames(checkouts)) {
    const checkout = await readSharedCheckout(checkouts, name);
    // No clone begins on one that a loss of power may have broken.
    known.push({ name, bytes: checkout?.bytes ?? 0, usedMs: checkout === null ? 0 : await usedAtMs(directory, name) });
  }
  let total = known.reduce((sum, { bytes }) => sum + bytes, 0);
  let count = 0;
  for (const { name, bytes, usedMs } of known.toSorted((one, other) => one.usedMs - other.usedMs)) {
    if (signal.aborted) break;
    const isOld = days > 0 && Date.now() - usedMs > days * dayMs;
    const isTooMuch = maximumBytes > 0 && total > maximumBytes;
    if (!isOld && !isTooMuch) continue;
    try {
      if (!(await removeUnused(checkouts, name))) continue;
      total -= bytes;
      count += 1;
    } catch (error) {
      logger.warn({ err: error, checkout: name }, "could not remove a shared checkout; will retry");
    }
  }
  return count;
}

/** Removes what killed processes left: half made, tried or half removed. */
async function removeLeftovers(directory: string): Promise<void> {
  for (const name of await namesIn(directory)) {
    const path = join(directory, name);
    const isUnfinished = name.startsWith(unfinishedPrefix) || name.startsWith(trialPrefix);
    if (name.startsWith(removedPrefix) || (isUnfinished && (await isOlderThanADay(path)))) await removeFolder(path);
  }
}

/**
 * Removes a checkout that no workspace is laid on. The rename takes it away in one step: a session finds it whole or not at all, and
 * then makes it again.
 * @returns whether it was removed
 */
async function removeUnused(checkouts: SharedCheckouts, name: string): Promise<boolean> {
  const path = join(checkouts.directory, name);
  const aside = join(checkouts.directory, `${removedPrefix}${randomBytes(8).toString("hex")}`);
  const isUnused = await checkouts.use.whileUnused(path, async () => {
    if ((await layersInUse(checkouts)).has(name)) return;
    await rename(path, aside);
    // A replay, which is another process, may have laid its workspace on it in the meantime.
    if ((await layersInUse(checkouts)).has(name)) await rename(aside, path);
  });
  if (!isUnused || !existsSync(aside)) return false;
  await removeFolder(aside);
  return true;
}
