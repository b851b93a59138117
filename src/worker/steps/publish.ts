import { SessionError } from "../../domain/errors/errors.ts";
import type { RefusedRepository } from "../../domain/errors/refused-repositories.ts";
import type { Attempt } from "../attempt/attempt.ts";
import { isFailure } from "../attempt/end.ts";
import type { RunStep } from "../attempt/named-step.ts";
import type { Clone } from "../clones/clone.ts";
import { filesWithMarkers } from "../clones/take-in.ts";
import { named, type Conflict, type LeftConflict } from "./agent/conflict-prompt.ts";
import { exportWork, type ClonedWork } from "./commit/export-work.ts";
import { joinBranches } from "./joins/join-branches.ts";
import { beginJoin, endJoins, resumeJoins } from "./joins/by-hand.ts";
import { createRefusalNotices, type RefusalNotices } from "./push/refusal-notices.ts";
import { push, type CollidedWork, type PushedWork, type PushServices } from "./push/push.ts";
import {
  noticeConflicts,
  resolveLimit,
  resolveTurn,
  type AgentServices,
  type Turns,
  type TurnsTaken,
} from "./take-turns.ts";
import { undelivered } from "./commit/undelivered.ts";

/** The work of an attempt after it was exported and pushed. */
export interface PublishedWork {
  /** All of it, changed or not. */
  readonly works: readonly ClonedWork[];
  /** The work on the remote now; null if there was nothing to push. */
  readonly pushed: readonly PushedWork[] | null;
  /** The refused work of some repositories, if the rest was pushed. */
  readonly refused: readonly RefusedRepository[];
}

/** Services of the worker for publishing. */
export type PublishServices = AgentServices & PushServices;

/** The conflicts that the agent is to resolve before its work can be pushed. */
interface Open {
  /** Merges under way that the agent was to finish. */
  readonly conflicts: readonly Conflict[];
  /** Work that the push collided with. */
  readonly collided: readonly CollidedWork[];
  readonly left: readonly LeftConflict[];
}

/** The obstacles to a push. */
interface Unresolved extends Open {
  readonly clones: readonly Clone[];
  /** The other repositories' work of the last push; null if they are held back as well. */
  readonly others: PublishedWork | null;
}

/**
 * Exports the work and pushes it. If it collides with others' commits, or the agent left that unresolved, the agent
 * gets a further turn to resolve it, twice at most. Each attempt that follows a crash does the same from the start: the
 * merge under way is in the folders and in the checkpoint, and the record says that it is not done. Work of one
 * repository that is unresolved, or may not be pushed, does not hold back the others, unless the session opens its pull
 * requests together: they are pushed before the agent's further turn.
 * @throws SessionError branch_diverged if the conflict is still there; those of the export, the push and a turn
 */
export async function publish(
  attempt: Attempt,
  services: PublishServices,
  step: RunStep,
  turns: Turns,
  taken: TurnsTaken,
): Promise<PublishedWork> {
  const { repositories, pullRequestsTogether } = attempt.session;
  const hasOthers = repositories.length > 1 && !pullRequestsTogether;
  const notices = createRefusalNotices(attempt);
  let { clones, conflicts, harness } = taken;
  for (let turnsLeft = resolveLimit; ; turnsLeft -= 1) {
    const end: PublishedWork | Unresolved =
      conflicts.length > 0 && !hasOthers
        ? { clones, conflicts, collided: [], left: [], others: null }
        : await exportAndPush(attempt, services, step, turns, { clones, conflicts, notices });
    if ("works" in end) return end;
    if (turnsLeft === 0) return withoutUnresolved(attempt, step, end);
    const last = harness;
    const resolved = await step("agent", () => resolve(attempt, services, turns, last, end));
    if (resolved === null) return withoutUnresolved(attempt, step, end);
    ({ clones, conflicts, harness } = resolved);
  }
}

/** One pass of exporting and pushing. */
interface PublishPass extends Pick<TurnsTaken, "clones" | "conflicts"> {
  readonly notices: RefusalNotices;
}

async function exportAndPush(
  attempt: Attempt,
  services: PublishServices,
  step: RunStep,
  turns: Turns,
  { clones: taken, conflicts, notices }: PublishPass,
): Promise<PublishedWork | Unresolved> {
  const { works, clones, changes, left, refused } = await step("commit", () =>
    exportAll(attempt, services, turns, { clones: taken, conflicts, notices }),
  );
  const open = { clones, conflicts, left };
  const isMore = conflicts.length + left.length > 0;
  if (isMore && attempt.session.pullRequestsTogether) return { ...open, collided: [], others: null };
  if (changes.length === 0 && isMore) return { ...open, collided: [], others: { works, pushed: null, refused } };
  if (changes.length === 0) return { works, pushed: null, refused: [] };
  return step("push", async () => {
    const { pushed, collided, ...pushes } = await push(attempt, services, changes, { refused, isMore, notices });
    const published = { works, pushed, refused: pushes.refused };
    if (isMore || collided.length > 0) return { ...open, collided, others: published };
    await followPush(attempt, services, turns, clones, pushed);
    return published;
  });
}

/**
 * Returns the other repositories' pushed work, unless the unresolved one holds it back.
 * @throws SessionError branch_diverged, as the failure of a push, if there is nothing, or the session opens its pull requests together
 */
async function withoutUnresolved(
  attempt: Pick<Attempt, "session">,
  step: RunStep,
  end: Unresolved,
): Promise<PublishedWork> {
  const kept = publishedOrFailure(attempt, end);
  return kept instanceof SessionError ? step("push", () => Promise.reject(kept)) : kept;
}

function publishedOrFailure(attempt: Pick<Attempt, "session">, end: Unresolved): PublishedWork | SessionError {
  const { session } = attempt;
  const { others } = end;
  if (others === null || session.pullRequestsTogether) return unresolved(end);
  const open = session.repositories.flatMap(({ directory, name }) => {
    const own = others.refused.some((each) => each.name === name) ? null : unresolvedIn(end, directory);
    return own === null ? [] : [{ name, error: unresolved(own) }];
  });
  const refused = [...others.refused, ...open];
  if ((others.pushed ?? []).length === 0) {
    return refused.length === 1 ? unresolved(end) : undelivered(attempt, refused, { pushed: [], delivered: [] });
  }
  return { ...others, refused };
}

/** The unresolved conflicts of one repository; null if none. */
function unresolvedIn({ conflicts, collided, left }: Unresolved, directory: string): Open | null {
  const own = {
    conflicts: conflicts.filter((each) => each.directory === directory),
    collided: collided.filter(({ work }) => work.clone.remote.directory === directory),
    left: left.filter((each) => each.directory === directory),
  };
  return Object.values(own).every(({ length }) => length === 0) ? null : own;
}

/**
 * Exports everything, reports what may not be pushed, and takes a checkpoint, so that a worker that takes over pushes
 * the same commits.
 * @param pass.conflicts merges that the agent is to finish
 * @returns the clones' work, the clones as they are recorded now, what is to be pushed, what else is left that keeps work from that,
 *   and what may not be pushed
 * @throws SessionError if nothing may be pushed and nothing is left to resolve
 */
async function exportAll(
  attempt: Attempt,
  services: PublishServices,
  { checkpointer }: Pick<Turns, "checkpointer">,
  { clones: taken, conflicts, notices }: PublishPass,
) {
  const unfinished = new Set(conflicts.map(({ directory }) => directory));
  const works = await exportWork(attempt, services, taken, unfinished);
  const clones = await endJoins(attempt, services, works);
  const changed = works.filter(({ isChanged }) => isChanged);
  const all = [...leftUnderWay(works), ...(await leftMarkers(attempt, changed))];
  const left = all.filter(({ directory }) => !unfinished.has(directory));
  const held = new Set([...unfinished, ...left.map(({ directory }) => directory)]);
  const changes = changed.filter(({ clone }) => !held.has(clone.remote.directory));
  const refused = works.flatMap((work) => work.refused ?? []);
  await notices.notPushed(refused);
  checkpointer.start(clones);
  await checkpointer.take();
  if (changes.length + held.size === 0 && refused.length > 0)
    throw undelivered(attempt, refused, { pushed: [], delivered: [] });
  return { works, clones, changes, left, refused };
}

/**
 * A further turn of the agent, in which it resolves what keeps its work from being pushed.
 * @returns null if there is nothing to ask it for: no clone could be brought into the merge
 */
async function resolve(
  attempt: Attempt,
  services: PublishServices,
  turns: Turns,
  last: TurnsTaken["harness"],
  open: Unresolved,
): Promise<TurnsTaken | null> {
  const begun = await beginMerges(attempt, services, open);
  turns.checkpointer.start(begun.clones);
  const conflicts = [...open.conflicts, ...begun.conflicts];
  await noticeConflicts(attempt, conflicts);
  if (conflicts.length + open.left.length === 0) return null;
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

function unresolved({ conflicts, collided, left }: Open): SessionError {
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
