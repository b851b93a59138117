import { RunError } from "../domain/errors.ts";
import { git, looksWithBytes } from "./git.ts";
import type { PreparedRepository } from "./workspace-repository.ts";

/** How much of one file of a repository's is read: settings and templates. */
const fileLimit = 100_000;
const historyLimit = 64 * 1024 * 1024;

/**
 * Everything that would be pushed, as text: each commit's message and changes. Beyond 64 MiB it is cut.
 * @throws RunError resources_exhausted where it is more than can be looked at
 */
export async function readHistory(
  mirror: string,
  start: PreparedRepository,
  headSha: string,
  signal: AbortSignal,
  memoryBytes = looksWithBytes,
): Promise<string> {
  const unchanged = ["--text", "--no-ext-diff", "--no-textconv", "--no-color"];
  const known = [start.baseSha, start.headSha];
  // Of a merge only what is in none of its parents: those are read by themselves.
  const parameters = ["log", "--patch", "--cc", ...unchanged, "--format=%an%n%ae%n%cn%n%ce%n%B"];
  const options = { cwd: mirror, signal, maximumOutput: historyLimit, memoryBytes };
  const { code, stdout } = await git([...parameters, headSha, "--not", ...known], options);
  if (code === 0) return stdout;
  throw new RunError({
    code: "resources_exhausted",
    reason: "The commits have more in them than can be looked through for secrets: nothing was pushed.",
    retryable: false,
    mend: "Tell the agent in a message to commit less, or start anew.",
  });
}

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
