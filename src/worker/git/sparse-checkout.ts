import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { entriesOf, pathIn } from "./entries.ts";
import { git, mustGit, type GitOptions } from "./git.ts";

// A clone may have some folders of its repository only: git's sparse checkout, in cone mode (git-sparse-checkout(1)). It has the
// files below the named folders, and those directly in the root and in the folders above the named ones. Everything else stays in
// the index and in commits, marked as not checked out (skip-worktree).

/** The folders, without those below another of them, and the folders above them, except the root. */
function coneOf(folders: readonly string[]): { readonly whole: string[]; readonly above: string[] } {
  const named = new Set(folders);
  const parentsOf = (folder: string): string[] => {
    const names = folder.split("/");
    return names.slice(1).map((_, index) => names.slice(0, index + 1).join("/"));
  };
  const whole = [...named].filter((folder) => !parentsOf(folder).some((parent) => named.has(parent)));
  return { whole: whole.toSorted(), above: [...new Set(whole.flatMap(parentsOf))].toSorted() };
}

/** The file `info/sparse-checkout` of a clone with these folders, as git writes it in cone mode. */
export function sparsePatterns(folders: readonly string[]): string {
  const { whole, above } = coneOf(folders);
  const escaped = (folder: string): string => folder.replaceAll(/[*?[\\]/gu, String.raw`\$&`);
  const lines = [
    "/*",
    "!/*/",
    ...above.flatMap((folder) => [`/${escaped(folder)}/`, `!/${escaped(folder)}/*/`]),
    ...whole.map((folder) => `/${escaped(folder)}/`),
  ];
  return `${lines.join("\n")}\n`;
}

/** Whether a clone with these folders has a file. @param folders none: the clone has everything */
export function sparseHas(folders: readonly string[]): (path: string) => boolean {
  if (folders.length === 0) return () => true;
  const { whole, above } = coneOf(folders);
  const parents = new Set(["", ...above]);
  const prefixes = whole.map((folder) => `${folder}/`);
  return (path) =>
    parents.has(path.slice(0, Math.max(0, path.lastIndexOf("/")))) ||
    prefixes.some((prefix) => path.startsWith(prefix));
}

/** A basic regular expression in lines, for grep, of the paths that such a clone has. */
function sparseExpression(folders: readonly string[]): string {
  const { whole, above } = coneOf(folders);
  const escaped = (folder: string): string => folder.replaceAll(/[.*[\]^$\\]/gu, String.raw`\$&`);
  return [
    "^[^/]*$",
    ...above.map((folder) => `^${escaped(folder)}/[^/]*$`),
    ...whole.map((folder) => `^${escaped(folder)}/`),
  ].join("\n");
}

/** Sets a clone, in which nothing is checked out yet, to these folders. @param folders none: nothing is set */
export async function setSparse(folders: readonly string[], clone: GitOptions): Promise<void> {
  if (folders.length === 0) return;
  await mkdir(join(clone.cwd, ".git/info"), { recursive: true });
  await writeFile(join(clone.cwd, ".git/info/sparse-checkout"), sparsePatterns(folders));
  // Set by hand: the command would also set the extension worktreeConfig, with which some of the programs that are no git refuse a
  // repository.
  await appendFile(join(clone.cwd, ".git/config"), "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n");
}

/** The variables about a clone's folders for programs that stage its files (stage-all.sh). */
export function sparseVariables(folders: readonly string[]): Record<string, string> {
  if (folders.length === 0) return {};
  return { OFFSTAGE_SPARSE: sparsePatterns(folders).trimEnd(), OFFSTAGE_SPARSE_HAS: sparseExpression(folders) };
}

/** Which of the folders a commit does not have. */
export async function missingFolders(folders: readonly string[], sha: string, mirror: GitOptions): Promise<string[]> {
  const missing: string[] = [];
  for (const folder of folders) {
    const { stdout } = await git(["cat-file", "-t", `${sha}:${folder}`], mirror);
    if (stdout.trim() !== "tree") missing.push(folder);
  }
  return missing;
}

/**
 * Writes a commit that has no more of another's files than a clone with these folders: for programs that take no list
 * of paths. The same commit is written each time.
 * @param which.folders none: the clone has everything
 * @param which.paths files that it has besides
 * @returns its name; `sha` itself if the clone has everything
 */
export async function sparseCommit(
  { folders, paths = [] }: { readonly folders: readonly string[]; readonly paths?: readonly string[] },
  sha: string,
  mirror: GitOptions,
): Promise<string> {
  if (folders.length === 0) return sha;
  const isInFolders = sparseHas(folders);
  const named = new Set(paths);
  const isThere = (path: string): boolean => isInFolders(path) || named.has(path);
  const kept: string[] = [];
  const onOutput = entriesOf((entry) => {
    if (isThere(pathIn(entry))) kept.push(`${entry}\0`);
  });
  await mustGit(["ls-tree", "-r", "-z", "--full-tree", sha], { ...mirror, onOutput });
  const folder = await mkdtemp(join(tmpdir(), "offstage-index-"));
  try {
    const index = { ...mirror, indexFile: join(folder, "index") };
    const input = Readable.from(kept.map((entry) => Buffer.from(entry, "latin1")));
    await mustGit(["update-index", "-z", "--index-info"], { ...index, input });
    const tree = await mustGit(["write-tree"], index);
    const author = "Offstage <offstage@localhost> 0 +0000";
    const commit = `tree ${tree}\nauthor ${author}\ncommitter ${author}\n\nSome folders\n`;
    return await mustGit(["hash-object", "-t", "commit", "-w", "--stdin"], {
      ...mirror,
      input: Readable.from([commit]),
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
