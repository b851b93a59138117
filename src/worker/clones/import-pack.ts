import type { Readable } from "node:stream";
import { SessionError } from "../../domain/errors/errors.ts";
import { git, type GitOptions } from "../git/git.ts";

/**
 * All of git's checks, except for attributes in overlong lines, which git ignores with a warning: repositories have
 * such lines from before git checked.
 */
const checks = "--strict=gitattributesLineLength=ignore";

/**
 * Takes a pack of the agent's objects into a repository. Each object is checked: git itself makes no tree with a `.git` entry,
 * and checking one out would write where it must not. Everything that `heads` need must be there.
 * @param known commits whose objects are there already
 * @throws SessionError workspace_broken
 */
export async function importPack(
  pack: Readable,
  heads: readonly string[],
  known: readonly string[],
  options: GitOptions,
): Promise<void> {
  const imported = await git(["index-pack", "--stdin", "--fix-thin", checks], { ...options, input: pack });
  if (imported.code !== 0) throw brokenWorkspace(imported.stderr);
  const wanted = heads.map((head) => `${head}^{commit}`);
  const connected = await git(["rev-list", "--objects", "--quiet", ...wanted, "--not", ...known], options);
  if (connected.code !== 0) throw brokenWorkspace(connected.stderr);
}

/** If the session's branch went back, it must be at one of the earlier commits. @throws SessionError workspace_broken */
export async function requireKnown(head: string, known: readonly string[], options: GitOptions): Promise<void> {
  const beyond = await git(["rev-list", "--max-count=1", head, "--not", ...known], options);
  if (beyond.code !== 0 || beyond.stdout !== "") throw brokenWorkspace(`${head} is no commit of this work`);
}

/** The error of a repository whose work can't be taken out. @param output of git, whose end the reason has */
export function brokenWorkspace(output: string): SessionError {
  return new SessionError({
    code: "workspace_broken",
    reason: `The agent left its repository in a state from which its work can't be exported: ${output.trim().slice(-500)}`,
    retryable: false,
    remedy: "Start a new session, which works in a fresh clone.",
  });
}
