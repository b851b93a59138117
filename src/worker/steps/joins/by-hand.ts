import { SessionError } from "../../../domain/errors/errors.ts";
import type { Attempt } from "../../attempt/attempt.ts";
import { commandFoldersOf } from "../../attempt/session-repositories.ts";
import type { Clone } from "../../clones/clone.ts";
import { completeClones, withClone } from "../../clones/clones.ts";
import { readJoinState, type JoinState } from "../../export/merge-state.ts";
import type { Joining } from "../../git/remote-repository.ts";
import { bringIn, fetchTheirFiles, type JoinServices } from "./bring-in.ts";
import type { Conflict } from "../agent/conflict-prompt.ts";

/** Most files of a collision in a clone's record. */
const recordedPaths = 1_000;

/**
 * Brings a clone into the middle of a join that the agent is to do by hand, and records that before: until it is done, nothing of
 * the clone counts as both sides' work, whatever ends the turn.
 * @param clones of the session
 * @param clone one of them, as it is now
 * @param join.at the commit that the clone is at, if that is not the session's
 * @returns the clones, and the conflict; null if the clone could not be brought there, which a notice says
 */
export async function beginJoin(
  attempt: Attempt,
  services: JoinServices,
  clones: readonly Clone[],
  clone: Clone,
  { at, theirs, onto, paths, ours, branch, isTarget }: Joining & { readonly at?: string },
): Promise<{ readonly clones: readonly Clone[]; readonly conflict: Conflict | null }> {
  const joining = { ours, theirs, onto, paths: paths.slice(0, recordedPaths), branch, isTarget };
  const begun = await recordJoin(attempt, services, clones, clone, joining);
  const conflict = await conflictOf(attempt, clone, joining);
  if (await bringIn(attempt, services, clone, { from: ours, at, to: { theirs, onto, paths }, theirs: branch }))
    return { clones: begun, conflict };
  return { clones: await recordJoin(attempt, services, begun, clone, null), conflict: null };
}

/**
 * Records the join that the agent is to do by hand in a clone; null: there is none any more.
 * @returns the session's clones with it
 */
export async function recordJoin(
  { session }: Pick<Attempt, "session">,
  services: Pick<JoinServices, "folders">,
  clones: readonly Clone[],
  clone: Clone,
  joining: Joining | null,
): Promise<readonly Clone[]> {
  const recorded = withClone(clones, { ...clone, joining });
  await completeClones(services, session.sessionId, recorded);
  return recorded;
}

/** The message to the agent about a join, once the contents of the other side's files in LFS are there. */
async function conflictOf(
  attempt: Attempt,
  clone: Clone,
  { theirs, onto, paths, branch, isTarget }: Joining,
): Promise<Conflict> {
  const hasPointers = !(await fetchTheirFiles(attempt, clone, { branch, sha: theirs, paths }));
  return { directory: clone.remote.directory, theirs, onto, paths, branch, isTarget, hasPointers };
}

/**
 * Reads the state of joins that the agent was to do by hand. One that is done, or that it threw away, is removed from
 * the record: then the push joins the two again. One that is under way is left to the agent.
 * @param isInterrupted whether the agent's last turn did not end by itself: then also what looks resolved is its to end
 * @returns the clones, and what the agent is still to resolve
 * @throws SessionError resources_exhausted, sandbox_unavailable
 */
export async function resumeJoins(
  attempt: Attempt,
  services: JoinServices,
  clones: readonly Clone[],
  isInterrupted: boolean,
): Promise<{ readonly clones: readonly Clone[]; readonly conflicts: readonly Conflict[] }> {
  let current = clones;
  const conflicts: Conflict[] = [];
  for (const clone of clones) {
    const { joining = null } = clone;
    if (joining === null) continue;
    const state = await stateOf(attempt, services, clone, joining);
    if (state.kind === "underWay" && state.paths.length === 0 && !isInterrupted) continue;
    if (state.kind === "underWay") {
      const paths = state.paths.length === 0 ? joining.paths : state.paths;
      conflicts.push(await conflictOf(attempt, clone, { ...joining, paths }));
      continue;
    }
    // Nothing of the work is in the clone: the next commit on top of theirs would be taken for all of it.
    const isEmptied = state.kind === "undone" && state.isEmptied;
    if (!isEmptied) {
      current = await recordJoin(attempt, services, current, clone, null);
      continue;
    }
    const again = await beginJoin(attempt, services, current, clone, { ...joining, at: joining.theirs });
    current = again.clones;
    if (again.conflict === null) {
      await recordJoin(attempt, services, current, clone, joining);
      throw emptied(clone, joining);
    }
    conflicts.push(again.conflict);
  }
  return { clones: current, conflicts };
}

function emptied({ remote }: Clone, { branch }: Joining): SessionError {
  return new SessionError({
    code: "branch_diverged",
    reason: `The work that was to go on top of the rewritten branch ${branch} is no longer in ${remote.directory}, and could not be put there again; nothing was pushed.`,
    retryable: true,
    remedy: "Tell the agent in a message to make the change again: the diff is on this session.",
  });
}

/**
 * Takes joins by hand off the record of clones that were exported, so that what they joined is one commit now.
 * @returns the clones of the exported work, in its order
 */
export async function endJoins(
  attempt: Pick<Attempt, "session">,
  services: Pick<JoinServices, "folders">,
  exported: readonly { readonly clone: Clone; readonly unfinished: readonly string[] | null }[],
): Promise<readonly Clone[]> {
  let current: readonly Clone[] = exported.map(({ clone }) => clone);
  for (const { clone, unfinished } of exported) {
    const { joining = null } = clone;
    if (joining !== null && unfinished === null) current = await recordJoin(attempt, services, current, clone, null);
  }
  return current;
}

/** The state of a join by hand; `undone` if the agent left the clone in a state that git can't read. */
async function stateOf(attempt: Attempt, services: JoinServices, clone: Clone, joining: Joining): Promise<JoinState> {
  const { session, signal } = attempt;
  const folders = commandFoldersOf(session, services, clone.remote.directory);
  try {
    return await readJoinState({ ...services, signal }, folders, joining, clone.mirror.path);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SessionError) throw error;
    attempt.logger.warn({ err: error }, "could not look at a merge in a session's clone");
    return { kind: "undone", isEmptied: false };
  }
}
