import { mkdir, mkdtemp, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bootId } from "../disk/boot-id.ts";
import { addCheckout, whileWithin, type DiskBounds } from "../disk/checkout-size.ts";
import { removeFolder } from "../disk/remove-folder.ts";
import { mustGit } from "../git/git.ts";
import { gitlinksIn } from "../git/gitmodules.ts";
import { initClone } from "./init-clone.ts";
import { settleDiffering } from "./settle-index.ts";
import { usesLfs } from "../git/lfs/lfs.ts";
import {
  readSharedCheckout,
  recordFile,
  checkoutUsedMark,
  type CheckoutSource,
  type SharedCheckout,
  type SharedCheckouts,
} from "./shared-checkouts.ts";

/** Prefix of the folder in which a checkout is made. */
export const unfinishedPrefix = ".new-";

/** Folder and bounds for making a checkout. */
export interface CheckoutMaking {
  readonly checkouts: SharedCheckouts;
  /** Path of the mirror, which has the commit. */
  readonly mirror: string;
  readonly bounds: DiskBounds;
  readonly signal: AbortSignal;
}

/**
 * The checkout of a name: made, if there is none. If another session is making it at this moment, that is waited for.
 * Contents of its files in LFS must be in the mirror's store.
 * @throws SessionError resources_exhausted if it is larger than the bounds, before anything is written
 */
export async function ensureCheckout(
  making: CheckoutMaking,
  name: string,
  source: CheckoutSource,
): Promise<SharedCheckout> {
  const { checkouts, signal } = making;
  for (;;) {
    const found = await readSharedCheckout(checkouts, name);
    if (found !== null) return found;
    const other = checkouts.making.get(name);
    if (other === undefined) break;
    await other;
    signal.throwIfAborted();
  }
  const made = makeCheckout(making, name, source);
  // A caller that waits makes it if this fails: this one may have been cancelled.
  checkouts.making.set(
    name,
    made.catch(() => undefined),
  );
  try {
    return await made;
  } finally {
    checkouts.making.delete(name);
  }
}

/** Made in a temporary folder and renamed, so that after a kill it is there whole or not at all. */
async function makeCheckout(
  { checkouts, mirror, bounds, signal }: CheckoutMaking,
  name: string,
  source: CheckoutSource,
): Promise<SharedCheckout> {
  const { url, sha, directory, sparse } = source;
  const written = { bytes: 0, files: 0 };
  await addCheckout(written, mirror, sha, bounds, signal, sparse);
  await mkdir(checkouts.directory, { recursive: true, mode: 0o700 });
  const unfinished = await mkdtemp(join(checkouts.directory, unfinishedPrefix));
  try {
    const folder = join(unfinished, "layer", directory);
    const options = { cwd: folder, signal };
    await initClone(mirror, folder, { url, sha, sparse, branch: "offstage-checkout" }, signal);
    await whileWithin(unfinished, bounds, signal, async (watched) => {
      // No branch and no reflog come of it: those are each session's own.
      await mustGit(["read-tree", "--reset", "-u", sha], { ...options, signal: watched, fileBytes: bounds.diskBytes });
    });
    await settleDiffering(options);
    const checkout: SharedCheckout = {
      ...source,
      name,
      ...written,
      usesLfs: await usesLfs(mirror, [sha], signal),
      hasSubmodules: (await gitlinksIn(options, 1)).count > 0,
      boot: await bootId(),
    };
    await writeFile(join(unfinished, checkoutUsedMark), "");
    await writeFile(join(unfinished, recordFile), JSON.stringify(checkout));
    // One that a loss of power may have broken.
    if ((await readSharedCheckout(checkouts, name)) === null) await removeFolder(join(checkouts.directory, name));
    await rename(unfinished, join(checkouts.directory, name));
    checkouts.onMade(name);
    return checkout;
  } catch (error) {
    // Another process, as a replay is, made it in the meantime, which is just as good.
    const found = await readSharedCheckout(checkouts, name);
    if (found === null) throw error;
    return found;
  } finally {
    await removeFolder(unfinished);
  }
}
