import { git, type GitOptions } from "../git/git.ts";

/** The ref below which commits of the remote are pinned that a session took in after it started. */
export function theirsRef(sessionId: string, directory: string): string {
  return `refs/offstage/${sessionId}/${directory}/theirs`;
}

/** Full name of the mirror's ref at the commit that was last taken out of a clone. */
export function exportedRef(sessionId: string, directory: string): string {
  return `refs/offstage/${sessionId}/${directory}/head`;
}

/** The commit of that ref; null if there is none on this worker. */
export async function exportedHead(options: GitOptions, ref: string): Promise<string | null> {
  return (await git(["rev-parse", "--verify", "--quiet", ref], options)).stdout.trim() || null;
}
