import { SessionError } from "../../domain/errors/errors.ts";
import { mustGit, type GitOptions } from "./git.ts";

/** The first version of git with `http.curloptResolve`, which pins a host to an address; older ones ignore the setting. */
const firstHeld = [2, 37] as const;

/** Whether git can pin an HTTP host to an address. @param version output of `git --version` */
export function canBeHeld(version: string): boolean {
  return isSince(version, firstHeld);
}

/** The first version of git that merges without a working tree (`git merge-tree --write-tree`). */
const firstMerging = [2, 38] as const;

/** Whether git can merge others' commits to a work branch. @param version output of `git --version` */
export function canMerge(version: string): boolean {
  return isSince(version, firstMerging);
}

function isSince(version: string, first: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/u.exec(version) ?? []).slice(1).map(Number);
  return major > first[0] || (major === first[0] && minor >= first[1]);
}

/**
 * Requires a git that pins an HTTP host to the checked address; an older one would resolve the name again and contact whatever
 * it points to by then.
 * @throws SessionError repository_unreachable if git is older than 2.37
 */
export async function requireHeldGit(options: GitOptions): Promise<void> {
  const version = await mustGit(["--version"], options);
  if (canBeHeld(version)) return;
  throw new SessionError({
    code: "repository_unreachable",
    reason: `The repository's host is not in OFFSTAGE_FORGES, and this worker's git is too old to pin its address (${version}).`,
    retryable: false,
    remedy: "Install git 2.37 or newer on the worker, or add the host to OFFSTAGE_FORGES (docs/forges.md).",
  });
}
