import { RunError } from "../domain/errors.ts";
import { git, looksWithBytes, mustGit } from "./git.ts";
import type { PreparedRepository } from "./workspace-repository.ts";

/** How much of one file of a repository's is read: settings and templates. */
const fileLimit = 100_000;
const lockFile =
  /[\t/](?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|deno\.lock|Cargo\.lock|poetry\.lock|uv\.lock|pdm\.lock|Pipfile\.lock|requirements[\w.-]*\.txt|Gemfile\.lock|composer\.lock|go\.sum|mix\.lock|gradle\.lockfile|packages\.lock\.json|pubspec\.lock|flake\.lock|pom\.xml|package\.json|\.tool-versions|\.nvmrc|\.python-version)$/u;
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

/** The files of a commit by which package managers pin what they install, each with its content's name. */
export async function listLockFiles(mirror: string, sha: string, signal: AbortSignal): Promise<string[]> {
  const listed = await mustGit(["ls-tree", "-r", sha], { cwd: mirror, signal, memoryBytes: looksWithBytes });
  return listed.split("\n").filter((line) => lockFile.test(line));
}
