import { SessionError } from "../../../domain/errors/errors.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import { commandFoldersOf } from "../../attempt/session-repositories.ts";
import type { Clone } from "../../clones/clone.ts";
import { exportedRef } from "../../clones/exported-refs.ts";
import { takeIn } from "../../clones/take-in.ts";
import { mustGit } from "../../git/git.ts";
import type { Collision } from "../../git/join.ts";
import { fetchForFolder } from "../../git/lfs/lfs.ts";
import type { Exporting } from "../commit/export-work.ts";

/** Services of the worker for joining branches. */
export type JoinServices = Exporting & Pick<AttemptServices, "folders" | "forgeOf" | "forks">;

/**
 * Fetches the contents of others' files in LFS, so that the clone gets these and no pointers.
 * @param theirs.paths files that git puts into the folder even outside a sparse checkout: those that collide
 * @returns whether all are there; if not, a notice says why
 * @throws SessionError repository_* that passes by itself
 */
export async function fetchTheirFiles(
  { emit, signal }: Pick<Attempt, "emit" | "signal">,
  { mirror, remote, sparse = [] }: Clone,
  { branch, sha, paths = [] }: { readonly branch: string; readonly sha: string; readonly paths?: readonly string[] },
): Promise<boolean> {
  const problem = await fetchForFolder(mirror, sha, signal, { sparse, paths });
  if (problem === null) return true;
  const text = `Files in LFS that others committed to ${branch} of ${remote.directory} could not be fetched: the agent sees pointers in their place. ${problem}`;
  await emit({ type: "notice", data: { level: "warning", text: text.slice(0, 2_000) } });
  return false;
}

/**
 * Brings a clone to the joined commit, or into the middle of the merge that the agent is to finish.
 * @param join.theirs name of the branch that it is joined with
 * @returns whether the clone is there; if not, which a notice says, the push joins the two
 */
export async function bringIn(
  attempt: Attempt,
  services: Pick<JoinServices, "sandbox" | "limits" | "author" | "folders" | "mirrors">,
  clone: Clone,
  join: {
    readonly from: string;
    readonly at?: string | undefined;
    readonly to: string | Collision;
    readonly theirs: string;
  },
): Promise<boolean> {
  const { session, mask, signal, logger } = attempt;
  const { remote, mirror } = clone;
  const folders = commandFoldersOf(session, services, remote.directory);
  const message = mask.text(session.title);
  const { from, at = from, to } = join;
  try {
    await takeIn(services, { folders, branch: remote.branch, from, at, to, message, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SessionError) throw error;
    logger.warn({ err: error }, "could not bring others' commits into a session's clone");
    await noticeLeftOut(attempt, clone, join.theirs);
    return false;
  }
  if (typeof join.to === "string") {
    const ref = exportedRef(session.sessionId, remote.directory);
    await mustGit(["update-ref", ref, join.to], { cwd: mirror.path, signal });
  }
  return true;
}

/** Says on the session that what others committed is not in a clone. */
export function noticeLeftOut({ emit }: Pick<Attempt, "emit">, { remote }: Clone, branch: string): Promise<void> {
  const text = `What others committed to ${branch} could not be brought into ${remote.directory}: it is joined with the work when that is pushed.`;
  return emit({ type: "notice", data: { level: "warning", text } });
}
