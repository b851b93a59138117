import { SessionError } from "../../../domain/errors/errors.ts";
import type { Forge, ForgePullRequest } from "../../../forges/forge.ts";
import type { RecordedWork } from "../../../store/queue/recorded-work.ts";
import { moveToTarget, recordedPullRequest } from "../../../store/repositories/pull-requests.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import type { Clone, CloneSource } from "../../clones/clone.ts";
import { isWithin } from "../../git/join.ts";

/**
 * The pull request that is recorded for the session's work branch, as its forge has it now. Its number stays what it is whatever
 * becomes of its target: a reviewer may choose another, and forges do if a branch is renamed. The record then follows.
 * @param target the branch that the session's work is for; null: not known yet
 * @returns null if none is recorded, or the forge does not know it any more
 * @throws SessionError if the forge can't be asked
 */
export async function knownPullRequest(
  { session, signal }: Pick<Attempt, "session" | "signal">,
  { database }: Pick<AttemptServices, "database">,
  forge: Forge,
  { repository, address }: Pick<CloneSource, "repository" | "address">,
  target: string | null,
): Promise<ForgePullRequest | null> {
  if (!forge.opensPullRequests) return null;
  const { sessionId, branchName: head } = session;
  const recorded = await recordedPullRequest(database, { sessionId, repositoryId: repository.id, head, target });
  if (recorded === null) return null;
  try {
    const read = await forge.readPullRequest(address, recorded.number, signal);
    if (read.head !== head) return null;
    if (read.state === "open" && read.target !== recorded.target) await moveToTarget(database, recorded, read.target);
    return read;
  } catch (error) {
    // The forge does not know the number, for example after the repository was recreated.
    if (error instanceof SessionError && !error.passing) return null;
    throw error;
  }
}

/**
 * Whether the clone's target has all that the session pushed, by a pull request that was merged: also if its commits are others there,
 * as after a merge that squashed or rebased them.
 * @throws SessionError if the forge can't be asked
 */
export async function isPushMerged(
  attempt: Pick<Attempt, "session" | "signal">,
  services: Pick<AttemptServices, "database" | "forgeOf">,
  clone: Clone,
  { pushedSha, hasPullRequest }: Pick<RecordedWork, "pushedSha" | "hasPullRequest">,
): Promise<boolean> {
  if (pushedSha === null || !hasPullRequest) return false;
  const { address, targetBranch, mirror } = clone;
  const known = await knownPullRequest(attempt, services, services.forgeOf(address), clone, targetBranch);
  if (known?.state !== "merged" || known.target !== targetBranch) return false;
  // Commits to the branch after the merge are not in the target.
  return isWithin(pushedSha, known.headSha, { cwd: mirror.path, signal: attempt.signal });
}
