import { stat } from "node:fs/promises";
import { join } from "node:path";
import { differenceOf, type Difference } from "./difference.ts";
import { ensureCheckout, type CheckoutMaking } from "./make-checkout.ts";
import {
  checkoutNames,
  checkoutFamilyOf,
  markUsed,
  nameOf,
  readSharedCheckout,
  checkoutUsedMark,
  type CheckoutSource,
  type SharedCheckout,
  type SharedCheckouts,
} from "./shared-checkouts.ts";

/** The base of a clone. */
export interface Base {
  readonly checkout: SharedCheckout;
  /** The difference of the clone's commit: no files, if the checkout is of that commit. */
  readonly difference: Difference;
}

/**
 * Chooses what a clone begins on, and keeps it from being removed while `work` runs: the checkout of its commit, or the one that was
 * used last of those of other commits of its mirror, if little differs. Otherwise the checkout is made.
 * @param contents fetches contents of files in LFS, knowing whether the commit has some (null: that is not known). If
 *   it returns why they can't be fetched, the clone begins on nothing: a checkout has contents, and no pointers
 * @param work gets null if there is none
 * @throws SessionError resources_exhausted
 */
export async function withBase<T>(
  making: CheckoutMaking,
  source: CheckoutSource,
  contents: (usesLfs: boolean | null) => Promise<string | null>,
  work: (base: Base | null, lfsProblem: string | null) => Promise<T>,
): Promise<T> {
  const { checkouts, mirror } = making;
  const family = checkoutFamilyOf(source, mirror);
  const nearest = await nearestOf(making, family, source.sha);
  const name = nearest?.name ?? nameOf(family, source.sha);
  const result = await checkouts.use.whileUsed(join(checkouts.directory, name), async () => {
    const known = await readSharedCheckout(checkouts, name);
    // Housekeeping was quicker.
    if (known === null && nearest !== null) return null;
    const problem = await contents(known?.usesLfs ?? null);
    if (problem !== null) return { value: await work(null, problem) };
    const checkout = known ?? (await ensureCheckout(making, name, source));
    await markUsed(checkouts, name);
    const difference = nearest?.difference ?? { from: source.sha, to: source.sha, files: [] };
    return { value: await work({ checkout, difference }, null) };
  });
  return result === null ? withBase(making, source, contents, work) : result.value;
}

/** The checkout of a family that a commit begins on; null if none is near enough. */
async function nearestOf(
  { checkouts, mirror, signal }: CheckoutMaking,
  family: string,
  sha: string,
): Promise<{ readonly name: string; readonly difference: Difference } | null> {
  const all = (await checkoutNames(checkouts)).filter((each) => each.startsWith(`${family}-`));
  // No clone begins on one that a loss of power may have broken.
  const known = await Promise.all(all.map((each) => readSharedCheckout(checkouts, each)));
  const names = known.flatMap((checkout) => (checkout === null ? [] : [checkout.name]));
  const exact = nameOf(family, sha);
  const name = names.includes(exact) ? exact : await lastUsed(checkouts, names);
  if (name === null) return null;
  const difference = await differenceOf(mirror, { from: name.slice(family.length + 1), to: sha }, signal);
  return difference === null ? null : { name, difference };
}

async function lastUsed({ directory }: SharedCheckouts, names: readonly string[]): Promise<string | null> {
  const used = await Promise.all(names.map(async (name) => ({ name, ms: await usedAtMs(directory, name) })));
  return used.toSorted((one, other) => other.ms - one.ms)[0]?.name ?? null;
}

/** When a checkout was last used; 0 if it is gone. */
export async function usedAtMs(directory: string, name: string): Promise<number> {
  const found = await stat(join(directory, name, checkoutUsedMark)).catch(() => null);
  return found?.mtimeMs ?? 0;
}
