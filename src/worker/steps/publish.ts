import { SessionError } from "../../domain/errors/errors.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { isFailure } from "../attempt/end.ts";
import type { RunStep } from "../attempt/named-step.ts";
import type { Clone } from "../clones/clone.ts";
import { completeClones } from "../clones/clones.ts";
import { filesWithMarkers } from "../clones/take-in.ts";
import { named, type Conflict, type LeftMarkers } from "./conflict-prompt.ts";
import { exportWork, type ClonedWork } from "./export-work.ts";
import { bringIn, joinBranches } from "./join-branches.ts";
import { push, type CollidedWork, type PushedWork } from "./push.ts";
import { requireWorkflowRight } from "./require-writable.ts";
import { noticeConflicts, resolveLimit, resolveTurn, type Turns, type TurnsTaken } from "./take-turns.ts";

/** The work of an attempt after it was exported and pushed. */
export interface PublishedWork {
  /** All of it, changed or not. */
  readonly works: readonly ClonedWork[];
  /** What is on the remote now; null if there was nothing to push. */
  readonly pushed: readonly PushedWork[] | null;
}

/**
 * Exports the work and pushes it. If it collides with what others committed, or the agent left conflict markers, the agent gets
 * a further turn to resolve that, twice at most. Each attempt that follows a crash does the same from the start: the merge under
 * way is in the folders and in the checkpoint.
 * @throws SessionError branch_diverged if the conflict is still there; those of the export, the push and a turn
 */
export async function publish(
  attempt: Attempt,
  services: AttemptServices,
  step: RunStep,
  turns: Turns,
  taken: TurnsTaken,
): Promise<PublishedWork> {
  let { clones, harness } = taken;
  for (let turnsLeft = resolveLimit; ; turnsLeft -= 1) {
    const works = await step("commit", () => exportWork(attempt, services, clones));
    // With this checkpoint another worker that takes over pushes the same commits.
    await turns.checkpointer.take();
    const changes = works.filter(({ isChanged }) => isChanged);
    if (changes.length === 0) return { works, pushed: null };
    const left = await leftMarkers(attempt, changes);
    const { pushed, collided } =
      left.length > 0
        ? { pushed: [], collided: [] }
        : await step("push", async () => {
            await requireWorkflowRight(attempt, services, changes);
            return push(attempt, services, changes);
          });
    if (left.length === 0 && collided.length === 0) {
      await followPush(attempt, services, turns, clones, pushed);
      return { works, pushed };
    }
    if (turnsLeft === 0) throw unresolved(collided, left);
    const resolved = await step("agent", async () => {
      const joining = await beginMerges(attempt, services, clones, collided);
      clones = joining.clones;
      turns.checkpointer.start(clones);
      await noticeConflicts(attempt, joining.conflicts);
      // Nothing to ask the agent for: the clone could not be brought into the merge.
      if (joining.conflicts.length + left.length === 0) throw unresolved(collided, left);
      turns.safePoints.enter();
      const turn = await resolveTurn(attempt, services, turns, harness, joining.conflicts, left);
      turns.safePoints.leave();
      return turn;
    });
    harness = resolved.harness;
  }
}

/**
 * Brings clones to what was pushed, if that is not their own commit: the next turn goes on from there. A failure is logged: the
 * work is on the remote, and the next follow-up joins the two.
 */
async function followPush(
  attempt: Attempt,
  services: AttemptServices,
  { checkpointer }: Pick<Turns, "checkpointer">,
  clones: readonly Clone[],
  pushed: readonly PushedWork[],
): Promise<void> {
  const joined = pushed.filter(({ headSha, pushedSha }) => headSha !== pushedSha);
  if (joined.length === 0) return;
  const published = new Map(joined.map(({ headSha, pushedSha }) => [headSha, pushedSha]));
  try {
    const followed = await joinBranches(attempt, services, clones, { published });
    checkpointer.start(followed.clones);
    await checkpointer.take();
  } catch (error) {
    if (!isFailure(error, attempt.signal)) throw error;
    attempt.logger.warn({ err: error }, "could not bring a session's clone to what was pushed");
  }
}

/** Files in which the agent left markers of a conflict with commits that were taken into its clone. */
async function leftMarkers(
  { session, mask, signal }: Pick<Attempt, "session" | "mask" | "signal">,
  changes: readonly ClonedWork[],
): Promise<LeftMarkers[]> {
  const left: LeftMarkers[] = [];
  for (const { clone, headSha } of changes) {
    const theirs = clone.theirs?.at(-1);
    if (theirs === undefined) continue;
    const options = { cwd: clone.mirror.path, signal };
    const paths = await filesWithMarkers({ head: headSha, theirs }, mask.text(session.title), options);
    if (paths.length > 0) left.push({ directory: clone.remote.directory, paths });
  }
  return left;
}

/** Brings the clones whose work collided into the middle of the merge. */
async function beginMerges(
  attempt: Attempt,
  services: AttemptServices,
  clones: readonly Clone[],
  collided: readonly CollidedWork[],
): Promise<{ readonly clones: readonly Clone[]; readonly conflicts: readonly Conflict[] }> {
  const current = [...clones];
  const conflicts: Conflict[] = [];
  for (const { work, collision } of collided) {
    const index = current.findIndex(({ repository }) => repository.position === work.clone.repository.position);
    const { branch, directory } = work.clone.remote;
    const clone = { ...work.clone, theirs: [...new Set([...(work.clone.theirs ?? []), collision.theirs])] };
    current[index] = clone;
    await completeClones(services, attempt.session.sessionId, current);
    if (await bringIn(attempt, services, clone, { from: work.headSha, to: collision, theirs: branch }))
      conflicts.push({ directory, branch, isTarget: false, ...collision });
  }
  return { clones: current, conflicts };
}

function unresolved(collided: readonly CollidedWork[], left: readonly LeftMarkers[]): SessionError {
  const [first] = collided;
  const [marked] = left;
  const reason =
    first === undefined
      ? `The agent left conflict markers in ${named(marked?.paths ?? [])}; nothing was pushed.`
      : `What others committed to ${first.work.clone.remote.branch} collides with this session's work in ${named(first.collision.paths)}, and the agent did not resolve it; nothing was overwritten.`;
  return new SessionError({
    code: "branch_diverged",
    reason: reason.slice(0, 2_000),
    retryable: false,
    remedy: "Tell the agent in a message how to resolve the conflict, or merge by hand: the diff is on this session.",
  });
}
