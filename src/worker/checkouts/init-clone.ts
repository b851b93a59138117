import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { mustGit } from "../git/git.ts";
import { setFilter } from "../git/lfs/lfs.ts";
import { initFormat } from "../git/object-format.ts";
import { setSparse } from "../git/sparse-checkout.ts";

/**
 * Makes the repository of a clone that borrows its objects from a mirror (git alternates). Nothing is checked out yet.
 * @param mirror path of the mirror
 * @param folder of the clone, which is made
 * @param clone.url of the remote `origin`, which can't be reached from the clone
 * @param clone.sha a commit of the mirror
 * @param clone.sparse folders that it will have; everything, if empty
 * @param clone.branch the branch that it will be on
 */
export async function initClone(
  mirror: string,
  folder: string,
  clone: {
    readonly url: string;
    readonly sha: string;
    readonly sparse: readonly string[];
    readonly branch: string;
  },
  signal: AbortSignal,
): Promise<void> {
  const options = { cwd: folder, signal };
  await mkdir(folder, { recursive: true });
  await mustGit(["init", "--quiet", initFormat(clone.sha), "--initial-branch", clone.branch], options);
  await writeFile(join(folder, ".git/objects/info/alternates"), `${join(mirror, "objects")}\n`);
  await mustGit(["remote", "add", "origin", clone.url], options);
  await setSparse(clone.sparse, options);
  await setFilter(mirror, options);
}
