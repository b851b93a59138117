import { SessionError } from "../../domain/errors/errors.ts";
import type { Attempt } from "../attempt/attempt.ts";
import { isFailure } from "../attempt/end.ts";
import type { RunStep } from "../attempt/named-step.ts";
import type { Clone } from "../clones/clone.ts";
import { filesWithMarkers } from "../clones/take-in.ts";
import { named, type Conflict, type LeftConflict } from "./conflict-prompt.ts";
import { exportWork, type ClonedWork } from "./export-work.ts";
import { joinBranches } from "./join-branches.ts";
import { beginJoin, endJoins, resumeJoins } from "./joins-by-hand.ts";
import { push, type CollidedWork, type PushedWork, type PushServices } from "./push.ts";
import { requireWorkflowRight } from "./require-writable.ts";
import {
  noticeConflicts,
  resolveLimit,
  resolveTurn,
  type AgentServices,
  type Turns,
  type TurnsTaken,
} from "./take-turns.ts";

/** The work of an attempt after it was exported and pushed. */
export interface PublishedWork {
  /** All of it, changed or not. */
  readonly works: readonly ClonedWork[];
  /** What is on the remote now; null if there was nothing to push. */
  readonly pushed: readonly PushedWork[] | null;
}

/** What publishing needs of the worker. */
export type PublishServices = AgentServices & PushServices;

/** What keeps work from being pushed. */
interface Unresolved {
  readonly clones: readonly Clone[];
  /** Merges under way that the agent was to finish. */
  readonly conflicts: readonly Conflict[];
  /** Work that the push collided with. */
  readonly collided: readonly CollidedWork[];
  readonly left: readonly LeftConflict[];
}

/**
 * Exports the work and pushes it. If it collides with what others committed, or the agent left that unresolved, the agent gets a
 * further turn to resolve it, twice at most. Each attempt that follows a crash does the same from the start: the merge under way
 * is in the folders and in the checkpoint, and the record says that it is not done.
 * @throws SessionError branch_diverged if the conflict is still there; those of the export, the push and a turn
 */
export async function publish(
  attempt: Attempt,
  services: PublishServices,
  step: RunStep,
  turns: Turns,
  taken: TurnsTaken,
): Promise<PublishedWork> {
  let { clones, conflicts, harness } = taken;
  for (let turnsLeft = resolveLimit; ; turnsLeft -= 1) {
    const end =
      conflicts.length > 0
        ? { clones, conflicts, collided: [], left: [] }
        : await exportAndPush(attempt, services, step, turns, clones);
    if ("works" in end) return end;
    if (turnsLeft === 0) throw unresolved(end);
    const last = harness;
    ({ clones, conflicts, harness } = await step("agent", () => resolve(attempt, services, turns, last, end)));
  }
}

async function exportAndPush(
  attempt: Attempt,
  services: PublishServices,
  step: RunStep,
  turns: Turns,
  taken: readonly Clone[],
): Promise<PublishedWork | Unresolved> {
  const { works, clones, changes, left } = await step("commit", () => exportAll(attempt, services, taken));
  turns.checkpointer.start(clones);
  // With this checkpoint another worker that takes over pushes the same commits.
  await turns.checkpointer.take();
  if (left.length > 0) return { clones, conflicts: [], collided: [], left };
  if (changes.length === 0) return { works, pushed: null };
  const { pushed, collided } = await step("push", async () => {
    await requireWorkflowRight(attempt, services, changes);
    return push(attempt, services, changes);
  });
  if (collided.length > 0) return { clones, conflicts: [], collided, left: [] };
  await followPush(attempt, services, turns, clones, pushed);
  return { works, pushed };
}

/**
 * @returns the clones' work, the clones as they are recorded now, what is to be pushed, and what is left that keeps it from that
 */
async function exportAll(attempt: Attempt, services: PublishServices, taken: readonly Clone[]) {
  const works = await exportWork(attempt, services, taken);
  const clones = await endJoins(attempt, services, works);
  const changes = works.filter(({ isChanged }) => isChanged);
  return { works, clones, changes, left: [...leftUnderWay(works), ...(await leftMarkers(attempt, changes))] };
}

/** A further turn of the agent, in which it resolves what keeps its work from being pushed. */
async function resolve(
  attempt: Attempt,
  services: PublishServices,
  turns: Turns,
  last: TurnsTaken["harness"],
  open: Unresolved,
): Promise<TurnsTaken> {
  const begun = await beginMerges(attempt, services, open);
  turns.checkpointer.start(begun.clones);
  const conflicts = [...open.conflicts, ...begun.conflicts];
  await noticeConflicts(attempt, conflicts);
  // Nothing to ask the agent for: the clone could not be brought into the merge.
  if (conflicts.length + open.left.length === 0) throw unresolved(open);
  turns.safePoints.enter();
  const { harness } = await resolveTurn(attempt, services, turns, last, conflicts, open.left);
  turns.safePoints.leave();
  return { ...(await resumeJoins(attempt, services, begun.clones, false)), harness };
}

/** Merges that the agent began by itself, and in which it left files unresolved. */
function leftUnderWay(works: readonly ClonedWork[]): LeftConflict[] {
  return works.flatMap(({ clone, unfinished }) =>
    unfinished === null ? [] : [{ directory: clone.remote.directory, paths: unfinished, isUnderWay: true }],
  );
}

/**
 * Brings clones to what was pushed, if that is not their own commit: the next turn goes on from there. A failure is logged: the
 * work is on the remote, and the next follow-up joins the two.
 */
async function followPush(
  attempt: Attempt,
  services: PublishServices,
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
): Promise<LeftConflict[]> {
  const left: LeftConflict[] = [];
  for (const { clone, headSha } of changes) {
    const theirs = clone.theirs?.at(-1);
    if (theirs === undefined) continue;
    const options = { cwd: clone.mirror.path, signal };
    const paths = await filesWithMarkers({ head: headSha, theirs }, mask.text(session.title), options);
    if (paths.length > 0) left.push({ directory: clone.remote.directory, paths, isUnderWay: false });
  }
  return left;
}

/** Brings the clones whose work collided into the middle of the merge. */
async function beginMerges(
  attempt: Attempt,
  services: PublishServices,
  { clones, collided }: Unresolved,
): Promise<{ readonly clones: readonly Clone[]; readonly conflicts: readonly Conflict[] }> {
  let current = clones;
  const conflicts: Conflict[] = [];
  for (const { work, collision } of collided) {
    const { repository, remote } = work.clone;
    const clone = clones.find((each) => each.repository.position === repository.position);
    if (clone === undefined) throw new Error(`the session has no clone of ${repository.name}`);
    const fetched = { ...clone, theirs: [...new Set([...(clone.theirs ?? []), collision.theirs])] };
    const join = { branch: remote.branch, isTarget: false, ...collision, ours: work.headSha };
    const begun = await beginJoin(attempt, services, current, fetched, join);
    current = begun.clones;
    if (begun.conflict !== null) conflicts.push(begun.conflict);
  }
  return { clones: current, conflicts };
}

function unresolved({ conflicts, collided, left }: Unresolved): SessionError {
  const collisions = collided.map(({ work, collision }) => ({ branch: work.clone.remote.branch, ...collision }));
  const [first] = [...conflicts, ...collisions];
  const [marked] = left;
  const reason =
    first !== undefined
      ? `What others committed to ${first.branch} collides with this session's work in ${named(first.paths)}, and the agent did not resolve it; nothing was overwritten.`
      : `The agent left ${marked?.isUnderWay === true ? "a merge unresolved" : "conflict markers"} in ${named(marked?.paths ?? [])}; nothing was pushed.`;
  return new SessionError({
    code: "branch_diverged",
    reason: reason.slice(0, 2_000),
    retryable: false,
    remedy: "Tell the agent in a message how to resolve the conflict, or merge by hand: the diff is on this session.",
  });
}
