import { lstat, lutimes, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { entriesOf } from "../git/entries.ts";
import { mustGit, type GitOptions } from "../git/git.ts";
import { formatIn } from "../git/object-format.ts";
import { indexEntries, sealIndex, statAt } from "./index-entries.ts";

/** How much older files are made than they are: git compares the content of a file that is as young as the index that names it. */
const olderMs = 10_000;

/**
 * Marks those files as unchanged in the index of a fresh clone that git would store otherwise than their commit has
 * them: they were committed against the attributes, such as with other line ends, or outside of LFS. They are
 * unchanged, but a later `git add --all` would change them.
 * @param clone no agent has seen it yet; it may belong to another user
 */
export async function settleDiffering(clone: Pick<GitOptions, "cwd" | "signal">): Promise<void> {
  const options = { ...clone, mayBeOthers: true };
  // Without attributes git converts nothing.
  if ((await mustGit(["ls-files", "-z", "--", ":(glob)**/.gitattributes"], options)) === "") return;
  const paths: string[] = [];
  const list = ["diff-files", "--name-only", "-z", "--diff-filter=M", "--ignore-submodules=all"];
  await mustGit(list, { ...options, onOutput: entriesOf((path) => paths.push(path)) });
  await settleFiles(clone.cwd, paths);
}

/**
 * Refreshes the index of a fresh clone for files that have another owner by now. git itself would store their contents
 * again, which differ for those of `settleDiffering`.
 * @param clone path of it
 * @param paths of files that are as the index has them, as bytes in Latin-1
 */
export async function settleFiles(clone: string, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  const file = join(clone, ".git/index");
  const index = await readFile(file);
  const format = await formatIn(join(clone, ".git"));
  const wanted = new Set(paths);
  for await (const { at, name } of indexEntries(index, format)) {
    if (!wanted.has(name.toString("latin1"))) continue;
    const path = Buffer.concat([Buffer.from(`${clone}/`), name]);
    const { mtimeMs } = await lstat(path);
    const older = new Date(mtimeMs - olderMs);
    await lutimes(path, older, older);
    statAt(index, at, await lstat(path, { bigint: true }));
  }
  await sealIndex(index, format);
  await writeFile(file, index);
}
