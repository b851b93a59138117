import { SessionError } from "../../domain/errors/errors.ts";
import type { RefusedRepository } from "../../domain/errors/refused-repositories.ts";
import type { Attempt } from "../attempt/attempt.ts";
import { isFailure } from "../attempt/end.ts";
import type { Clone } from "../clones/clone.ts";
import { filesWithMarkers } from "../clones/take-in.ts";
import { named, type Conflict, type LeftConflict } from "./agent/conflict-prompt.ts";
import { exportWork, type ClonedWork } from "./commit/export-work.ts";
import { joinBranches } from "./joins/join-branches.ts";
import { beginJoin, endJoins, resumeJoins } from "./joins/by-hand.ts";
import type { RefusalNotices } from "./push/refusal-notices.ts";
import { push, type CollidedWork, type PushedWork, type PushServices } from "./push/push.ts";
import { noticeConflicts, resolveTurn, type AgentServices, type Turns, type TurnsTaken } from "./take-turns.ts";
import { undelivered } from "./commit/undelivered.ts";

// What the steps `commit` and `push` do, and the turn in which the agent resolves what keeps its work from being pushed.
// `publish` of `run-steps.ts` calls them, again after each such turn.

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

/** What keeps work from being pushed. */
export interface Unresolved extends Open {
  readonly clones: readonly Clone[];
  /** The other repositories' work of the last push; null if they are held back as well. */
  readonly others: PublishedWork | null;
}

/** Clones whose work is to be published, and the merges in them that the agent is to finish. */
type Publishing = Pick<TurnsTaken, "clones" | "conflicts">;

/** Merges that the agent is to finish before anything is exported; null if the work can be exported. */
export function heldBack({ session }: Pick<Attempt, "session">, { clones, conflicts }: Publishing): Unresolved | null {
  const hasOthers = session.repositories.length > 1 && !session.pullRequestsTogether;
  return conflicts.length === 0 || hasOthers ? null : { clones, conflicts, collided: [], left: [], others: null };
}

/** Work that was exported. */
interface Exported extends Publishing {
  /** All of it, changed or not. */
  readonly works: readonly ClonedWork[];
  /** What is to be pushed. */
  readonly changes: readonly ClonedWork[];
  /** What the agent left, beside the merges that it was to finish, that keeps work from being pushed. */
  readonly left: readonly LeftConflict[];
  /** What may not be pushed. */
  readonly refused: readonly RefusedRepository[];
}

/** What comes of exported work of which nothing is to be pushed now; null if something is. */
export function withoutPush(
  { session }: Pick<Attempt, "session">,
  { works, clones, conflicts, changes, left, refused }: Exported,
): PublishedWork | Unresolved | null {
  const open = { clones, conflicts, left, collided: [] };
  const isMore = conflicts.length + left.length > 0;
  if (isMore && session.pullRequestsTogether) return { ...open, others: null };
  if (changes.length > 0) return null;
  return isMore ? { ...open, others: { works, pushed: null, refused } } : { works, pushed: null, refused: [] };
}

/** Pushes exported work, and has the clones follow it. */
export async function pushExported(
  attempt: Attempt,
  services: PublishServices,
  turns: Pick<Turns, "checkpointer">,
  { works, clones, conflicts, changes, left, refused }: Exported,
  notices: RefusalNotices,
): Promise<PublishedWork | Unresolved> {
  const isMore = conflicts.length + left.length > 0;
  const { pushed, collided, ...pushes } = await push(attempt, services, changes, { refused, isMore, notices });
  const published = { works, pushed, refused: pushes.refused };
  if (isMore || collided.length > 0) return { clones, conflicts, left, collided, others: published };
  await followPush(attempt, services, turns, clones, pushed);
  return published;
}

/**
 * What was pushed of the other repositories, if what is unresolved does not hold them back; otherwise, and if the session opens its pull
 * requests together, the failure: branch_diverged if the conflict is still there.
 */
export function publishedOrFailure(attempt: Pick<Attempt, "session">, end: Unresolved): PublishedWork | SessionError {
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
 * Exports everything, tells of what may not be pushed, and takes a checkpoint, with which another worker that takes over pushes the same
 * commits.
 * @param publishing.conflicts merges that the agent is to finish
 * @returns the work, with the clones as they are recorded now
 * @throws SessionError if nothing may be pushed and nothing is left to resolve
 */
export async function exportAll(
  attempt: Attempt,
  services: PublishServices,
  { checkpointer }: Pick<Turns, "checkpointer">,
  { clones: taken, conflicts }: Publishing,
  notices: RefusalNotices,
): Promise<Exported> {
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
  return { works, clones, conflicts, changes, left, refused };
}

/**
 * A further turn of the agent, in which it resolves what keeps its work from being pushed.
 * @returns null if there is nothing to ask it for: no clone could be brought into the merge
 */
export async function resolveOpen(
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

/** Merges that the agent began by itself, and in which it left files unresolved, and rebases that it did not end. */
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
      : `The agent left ${marked === undefined ? "a conflict" : leftAs(marked)}; nothing was pushed.`;
  return new SessionError({
    code: "branch_diverged",
    reason: reason.slice(0, 2_000),
    retryable: false,
    remedy: "Tell the agent in a message how to resolve the conflict, or merge by hand: the diff is on this session.",
  });
}

function leftAs({ directory, paths, isUnderWay }: LeftConflict): string {
  if (!isUnderWay) return `conflict markers in ${named(paths)}`;
  return paths.length === 0 ? `a rebase unfinished in ${directory}` : `a merge unresolved in ${named(paths)}`;
}
