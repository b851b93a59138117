import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { entriesOf } from "./entries.ts";
import { git, mustGit, type GitOptions } from "./git.ts";

/** Where git looks for attributes, as paths of a commit. */
export const attributeFiles = [":(glob).gitattributes", ":(glob)**/.gitattributes"];

/**
 * Runs a merge in a repository of Offstage's as it would run in a clone in which a commit is checked out: its attributes may say that
 * files are merged line by line from both sides (`merge=union`), or never (`-merge`, `binary`). git reads attributes from a working tree,
 * which such a repository lacks: it gets one that has these files alone.
 * @param merge is run with these options
 */
export async function withMergeAttributes<T>(
  commit: string,
  options: GitOptions,
  merge: (options: GitOptions) => Promise<T>,
): Promise<T> {
  const search = ["grep", "--quiet", "--text", "-e", "merge", "-e", "binary", commit, "--", ...attributeFiles];
  if ((await git(search, options)).code !== 0) return merge(options);
  const folder = await mkdtemp(join(tmpdir(), "offstage-attributes-"));
  try {
    const workTree = join(folder, "tree");
    await mkdir(workTree);
    const within = { ...options, indexFile: join(folder, "index") };
    await mustGit(["read-tree", commit], within);
    const paths: Buffer[] = [];
    const onOutput = entriesOf((path) => paths.push(Buffer.from(`${path}\0`, "latin1")));
    await mustGit(["ls-files", "-z", "--", ...attributeFiles], { ...within, onOutput });
    await mustGit(["checkout-index", "-z", "--stdin"], { ...within, workTree, input: Readable.from(paths) });
    return await merge({ ...options, workTree });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
