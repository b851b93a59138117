import { git } from "../git/git.ts";

/** How much of one file of a repository's is read: settings and templates. */
const fileLimit = 100_000;

/** One file as it stands in a commit, its first 100,000 bytes; null where there is none. */
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
