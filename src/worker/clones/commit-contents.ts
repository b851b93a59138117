import { git, mustGit } from "../git/git.ts";

/** Most bytes that are read of a repository's settings file or template. */
const fileLimit = 100_000;

/** Bytes of a list of files. */
const listLimit = 1024 ** 2;

/**
 * The files of a commit that have one of these paths, or are below it, as many as a list of 1 MiB names.
 * @param mirror path of a repository that has the commit
 */
export async function committedFiles(
  mirror: string,
  sha: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const options = { cwd: mirror, signal, maximumOutput: listLimit };
  const listed = await mustGit(["ls-tree", "-r", "-z", "--name-only", sha, "--", ...paths], options);
  return listed.split("\0");
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
