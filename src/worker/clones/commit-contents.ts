import { git, mustGit } from "../git/git.ts";

/** Most bytes that are read of a repository's settings file or template. */
const fileLimit = 100_000;

/**
 * Which of these paths a commit has.
 * @param mirror path of a repository that has the commit
 */
export async function committedPaths(
  mirror: string,
  sha: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const listed = await mustGit(["ls-tree", "-z", "--name-only", sha, "--", ...paths], { cwd: mirror, signal });
  const found = new Set(listed.split("\0"));
  return paths.filter((path) => found.has(path));
}

/**
 * Reads a file of a commit: its first 100,000 bytes; null if it is not in the commit.
 * @param mirror path of a repository that has the commit
 */
export async function readCommittedFile(
  mirror: string,
  sha: string,
  path: string,
  signal: AbortSignal,
): Promise<string | null> {
  const options = { cwd: mirror, signal, maximumOutput: fileLimit };
  const { code, stdout } = await git(["cat-file", "blob", `${sha}:${path}`], options);
  return code === 0 ? stdout : null;
}
