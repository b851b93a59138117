import { SessionError } from "../../domain/errors/errors.ts";
import { recordedWork, saveRepository, type RecordedWork } from "../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { commandFoldersOf } from "../attempt/session-repositories.ts";
import type { Clone } from "../clones/clone.ts";
import { completeClones } from "../clones/clones.ts";
import { exportedHead, exportedRef } from "../clones/export-repository.ts";
import { readJoinState, type JoinState } from "../clones/merge-state.ts";
import { takeIn } from "../clones/take-in.ts";
import { git, mustGit } from "../git/git.ts";
import { fetchForFolder } from "../git/lfs.ts";
import { isWithin, joinCommits, type Collision, type Join } from "../git/join.ts";
import { askRemote, fetchBranch, remoteOptions, type Mirror } from "../git/mirror.ts";
import type { Joining } from "../git/remote-repository.ts";
import type { Conflict, TakenIn } from "./conflict-prompt.ts";
import { exportClones, recordCommits, type Exporting } from "./export-work.ts";
import { whereBranchIs } from "./where-to-push.ts";

/** What joining branches needs of the worker. */
export type JoinServices = Exporting & Pick<AttemptServices, "folders" | "forgeOf" | "forks">;

/** Most files of a collision in a clone's record. */
const recordedPaths = 1_000;

/** The clones with what others committed in them. */
export interface JoinedClones {
  readonly clones: readonly Clone[];
  /** What came into a clone without a conflict, for the agent's prompt. */
  readonly takenIn: readonly TakenIn[];
  /** What the agent has to join by hand: the clones are in the middle of that. */
  readonly conflicts: readonly Conflict[];
  /** Whether a clone's target branch waits until a conflict of its work branch is resolved. */
  readonly isUnfinished: boolean;
}

interface JoinOptions {
  readonly withTarget?: boolean;
  readonly published?: ReadonlyMap<string, string>;
  readonly unfinished?: readonly Conflict[];
}

interface BranchTips {
  /** With the remote that has the work branch: the repository, or a fork. */
  readonly mirror: Mirror;
  readonly branch: string | null;
  readonly target: string | null;
}

/**
 * Brings what others committed to the work branches that the session pushed into its clones: as it is, merged with work that is
 * not pushed yet, or as a conflict that the agent is to resolve. Can be repeated after a crash at any point.
 * @param options.withTarget whether to merge the target branches too; false if omitted
 * @param options.unfinished conflicts of which clones are in the middle: nothing is joined in those
 * @param options.published exported commits, each with the commit that the branch was pushed at for it
 * @throws SessionError branch_diverged, workspace_broken, resources_exhausted, sandbox_unavailable, repository_*; LeaseLostError
 */
export async function joinBranches(
  attempt: Attempt,
  services: JoinServices,
  clones: readonly Clone[],
  { withTarget = false, published = new Map(), unfinished = [] }: JoinOptions = {},
): Promise<JoinedClones> {
  const works = clones.length === 0 ? [] : await recordedWork(services.database, attempt.session);
  const joined: { clones: Clone[]; takenIn: TakenIn[]; conflicts: Conflict[]; isUnfinished: boolean } = {
    clones: [...clones],
    takenIn: [],
    conflicts: [...unfinished],
    isUnfinished: withTarget && unfinished.some(({ isTarget }) => !isTarget),
  };
  for (const [index, clone] of clones.entries()) {
    const recorded = works.find(({ position }) => position === clone.repository.position);
    if (recorded === undefined || recorded.pushedSha === null) continue;
    if (unfinished.some(({ directory }) => directory === clone.remote.directory)) continue;
    const { mirrors } = services;
    await mirrors.use.whileUsed(clone.mirror.path, async () => {
      const tips = await lookAt(attempt, services, clone);
      joined.clones[index] = { ...clone, remoteSha: tips.branch };
      if (await hasAll(attempt, clone, recorded, tips, withTarget)) return;
      await joinClone(attempt, services, joined, { index, recorded, tips, withTarget, published });
    });
  }
  return joined;
}

async function lookAt(attempt: Attempt, services: JoinServices, clone: Clone): Promise<BranchTips> {
  const { signal } = attempt;
  const { remote, targetBranch } = clone;
  const { mirror, fork } = await whereBranchIs(attempt, services, clone);
  const [branch, target] = [`refs/heads/${remote.branch}`, `refs/heads/${targetBranch}`];
  const tipsIn = async (place: Mirror, refs: string[]) => askRemote(place, refs, await remoteOptions(place, signal));
  const asked = await tipsIn(mirror, fork === undefined ? [branch, target] : [branch]);
  const upstream = fork === undefined ? asked : await tipsIn(clone.mirror, [target]);
  return { mirror, branch: asked.shaOf(branch), target: upstream.shaOf(target) };
}

/** Whether the clone needs nothing: what was last exported has all, and nobody rewrote the branch. */
async function hasAll(
  { session, signal }: Pick<Attempt, "session" | "signal">,
  { mirror, remote }: Clone,
  { pushedSha }: RecordedWork,
  { branch, target }: BranchTips,
  withTarget: boolean,
): Promise<boolean> {
  const options = { cwd: mirror.path, signal };
  const head = await exportedHead(options, exportedRef(session.sessionId, remote.directory));
  if (head === null) return branch === null && !withTarget;
  if (withTarget && target !== null && !(await isWithin(target, head, options))) return false;
  if (branch === null || branch === head) return true;
  // A branch at an older commit than was pushed was rewritten.
  const isRewritten = pushedSha !== null && !(await isWithin(pushedSha, branch, options));
  return !isRewritten && (await isWithin(branch, head, options));
}

async function joinClone(
  attempt: Attempt,
  services: JoinServices,
  joined: { clones: Clone[]; takenIn: TakenIn[]; conflicts: Conflict[]; isUnfinished: boolean },
  {
    index,
    recorded,
    tips,
    withTarget,
    published,
  }: {
    readonly index: number;
    readonly recorded: RecordedWork;
    readonly tips: BranchTips;
    readonly withTarget: boolean;
    readonly published: ReadonlyMap<string, string>;
  },
): Promise<void> {
  let clone = joined.clones[index] as Clone;
  const { branch } = clone.remote;
  const isKnown = joined.conflicts.length;
  const sides = [
    { name: branch, sha: tips.branch, pushed: recorded.pushedSha, isTarget: false },
    ...(withTarget ? [{ name: clone.targetBranch, sha: tips.target, pushed: null, isTarget: true }] : []),
  ];
  for (const side of sides) {
    if (side.sha === null) continue;
    if (joined.conflicts.length > isKnown) {
      joined.isUnfinished = true;
      break;
    }
    clone = await withTheirs(attempt, services, joined.clones, index, { ...tips, branch: side.sha, name: side.name });
    const ours = await exportHead(attempt, services, clone);
    if (ours === null) {
      await noticeLeftOut(attempt, clone, side.name);
      continue;
    }
    if (clone.joining != null) await recordJoin(attempt, services, joined.clones, index, null);
    clone = joined.clones[index] as Clone;
    const theirs = { branch: side.name, theirs: side.sha, pushed: side.pushed, own: recorded.commits };
    const join = (await isPublishedIn(attempt, clone, published.get(ours), side.sha))
      ? ({ kind: "joined", sha: side.sha } as const)
      : await joinIn(attempt, services, clone, { ...theirs, ours });
    if (join.kind === "ours") continue;
    const said = { directory: clone.remote.directory, branch: side.name, isTarget: side.isTarget };
    if (join.kind === "joined") {
      const hasPointers = !(await fetchTheirFiles(attempt, clone, { branch: side.name, sha: side.sha }));
      if (!(await bringIn(attempt, services, clone, { from: ours, to: join.sha, theirs: side.name }))) continue;
      joined.takenIn.push({ ...said, hasPointers, from: ours, to: join.sha });
      continue;
    }
    const conflict = await beginJoin(attempt, services, joined.clones, index, { ...said, ...join, ours });
    clone = joined.clones[index] as Clone;
    if (conflict !== null) joined.conflicts.push(conflict);
  }
}

/**
 * Brings a clone into the middle of a join that the agent is to do by hand, and records that before: until it is done, nothing of
 * the clone counts as both sides' work, whatever ends the turn.
 * @param clones of the session; the one at `index` is replaced
 * @param join.at the commit that the clone is at, if that is not the session's
 * @returns the conflict; null if the clone could not be brought there, which a notice says
 */
export async function beginJoin(
  attempt: Attempt,
  services: JoinServices,
  clones: Clone[],
  index: number,
  { at, theirs, onto, paths, ours, branch, isTarget }: Joining & { readonly at?: string },
): Promise<Conflict | null> {
  const joining = { ours, theirs, onto, paths: paths.slice(0, recordedPaths), branch, isTarget };
  await recordJoin(attempt, services, clones, index, joining);
  const clone = clones[index] as Clone;
  const conflict = await conflictOf(attempt, clone, joining);
  if (await bringIn(attempt, services, clone, { from: ours, at, to: { theirs, onto, paths }, theirs: branch }))
    return conflict;
  await recordJoin(attempt, services, clones, index, null);
  return null;
}

/** Records the join that the agent is to do by hand in a clone; null: there is none any more. */
async function recordJoin(
  { session }: Attempt,
  services: JoinServices,
  clones: Clone[],
  index: number,
  joining: Joining | null,
): Promise<void> {
  clones[index] = { ...(clones[index] as Clone), joining };
  await completeClones(services, session.sessionId, clones);
}

/** What the agent is told of a join, once the contents of the other side's files in LFS are there. */
async function conflictOf(
  attempt: Attempt,
  clone: Clone,
  { theirs, onto, paths, branch, isTarget }: Joining,
): Promise<Conflict> {
  const hasPointers = !(await fetchTheirFiles(attempt, clone, { branch, sha: theirs }));
  return { directory: clone.remote.directory, theirs, onto, paths, branch, isTarget, hasPointers };
}

/**
 * Looks what became of joins that the agent was to do by hand. One that is done, or that it threw away, is taken off the record:
 * then the push joins the two again. One that is under way is the agent's to go on with.
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
  const current = [...clones];
  const conflicts: Conflict[] = [];
  for (const [index, clone] of clones.entries()) {
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
    const again = { ...joining, at: joining.theirs };
    if (!isEmptied) {
      await recordJoin(attempt, services, current, index, null);
      continue;
    }
    const conflict = await beginJoin(attempt, services, current, index, again);
    if (conflict === null) {
      await recordJoin(attempt, services, current, index, joining);
      throw emptied(clone, joining);
    }
    conflicts.push(conflict);
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

/** Takes joins by hand off the record of clones that were exported, so that what they joined is one commit now. */
export async function endJoins(
  attempt: Attempt,
  services: JoinServices,
  clones: readonly Clone[],
  exported: readonly { readonly clone: Clone; readonly unfinished: readonly string[] | null }[],
): Promise<readonly Clone[]> {
  const current = [...clones];
  for (const [index, { joining = null, remote }] of clones.entries()) {
    const work = exported.find(({ clone }) => clone.remote.directory === remote.directory);
    if (joining !== null && work?.unfinished === null) await recordJoin(attempt, services, current, index, null);
  }
  return current;
}

/** What became of a join by hand; `undone` if the agent left the clone in a state in which git can't tell. */
async function stateOf(attempt: Attempt, services: JoinServices, clone: Clone, joining: Joining): Promise<JoinState> {
  const { session, signal } = attempt;
  const folders = commandFoldersOf(session, services, clone.remote.directory);
  try {
    return await readJoinState({ ...services, signal }, folders, joining);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SessionError) throw error;
    attempt.logger.warn({ err: error }, "could not look at a merge in a session's clone");
    return { kind: "undone", isEmptied: false };
  }
}

/**
 * Fetches what others committed, and records that it is the remote's: before anything of it is in the clone, so that it never
 * counts as the session's work. The diff's base follows the part of the target branch that is in it.
 */
async function withTheirs(
  { session, signal }: Attempt,
  services: JoinServices,
  clones: Clone[],
  index: number,
  {
    mirror: branchMirror,
    branch,
    target,
    name,
  }: Pick<BranchTips, "mirror" | "target"> & { readonly branch: string; readonly name: string },
): Promise<Clone> {
  const clone = clones[index] as Clone;
  const { mirror, remote, targetBranch } = clone;
  const pin = `refs/offstage/${session.sessionId}/${remote.directory}/theirs`;
  const place = name === targetBranch ? mirror : branchMirror;
  const tips = [
    { place, branch: name, sha: branch },
    ...(target === null ? [] : [{ place: mirror, branch: targetBranch, sha: target }]),
  ];
  for (const { place: from, ...tip } of tips)
    await fetchBranch(from, { ...tip, into: `${pin}/${tip.sha}` }, () => undefined, signal);
  const options = { cwd: mirror.path, signal };
  const base = target === null ? "" : (await git(["merge-base", branch, target], options)).stdout.trim();
  const baseSha = base !== "" && (await isWithin(clone.baseSha, base, options)) ? base : clone.baseSha;
  const theirs = [...new Set([...(clone.theirs ?? []), ...tips.map(({ sha }) => sha)])];
  const taken = { ...clone, baseSha, theirs };
  clones[index] = taken;
  await completeClones(services, session.sessionId, clones);
  if (baseSha !== clone.baseSha)
    await saveRepository(services.database, session, clone.repository.position, { baseSha });
  return taken;
}

/** Whether a branch has the commit that was pushed for a clone's own one: it then has all of the clone's work. */
async function isPublishedIn(
  { signal }: Pick<Attempt, "signal">,
  { mirror }: Clone,
  pushed: string | undefined,
  tip: string,
): Promise<boolean> {
  return pushed !== undefined && isWithin(pushed, tip, { cwd: mirror.path, signal });
}

/**
 * Takes everything out of the clone, as after a turn.
 * @returns the exported commit; null if the agent left the clone in a state from which nothing can be taken, which the coming turn
 *   may mend
 */
async function exportHead(attempt: Attempt, services: JoinServices, clone: Clone): Promise<string | null> {
  try {
    const exported = await exportClones(attempt, services, [clone]);
    await recordCommits(attempt, services, exported);
    const [one] = exported;
    // A merge of the agent's own, of which files are not resolved.
    if (one !== undefined && one.work.unfinished !== null) return null;
    return one?.work.headSha ?? clone.headSha;
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== "workspace_broken") throw error;
    attempt.logger.warn({ err: error }, "could not take a session's work out before a turn");
    return null;
  }
}

function noticeLeftOut({ emit }: Pick<Attempt, "emit">, { remote }: Clone, branch: string): Promise<void> {
  const text = `What others committed to ${branch} could not be brought into ${remote.directory}: it is joined with the work when that is pushed.`;
  return emit({ type: "notice", data: { level: "warning", text } });
}

function joinIn(
  { session, mask, signal }: Attempt,
  { author, committer, signer }: JoinServices,
  { mirror }: Clone,
  sides: {
    readonly branch: string;
    readonly ours: string;
    readonly theirs: string;
    readonly pushed: string | null;
    readonly own: ReadonlySet<string>;
  },
): Promise<Join> {
  const message = mask.text(session.title);
  return joinCommits({ ...sides, author, committer, signer, message }, { cwd: mirror.path, signal });
}

/**
 * Fetches the contents of others' files in LFS, so that the clone gets these and no pointers.
 * @returns whether all are there; if not, a notice says why
 * @throws SessionError repository_* that passes by itself
 */
async function fetchTheirFiles(
  { emit, signal }: Pick<Attempt, "emit" | "signal">,
  { mirror, remote, sparse = [] }: Clone,
  { branch, sha }: { readonly branch: string; readonly sha: string },
): Promise<boolean> {
  const problem = await fetchForFolder(mirror, sha, signal, { sparse });
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
async function bringIn(
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
    logger.warn({ err: error }, "could not bring what others committed into a session's clone");
    await noticeLeftOut(attempt, clone, join.theirs);
    return false;
  }
  if (typeof join.to === "string") {
    const ref = exportedRef(session.sessionId, remote.directory);
    await mustGit(["update-ref", ref, join.to], { cwd: mirror.path, signal });
  }
  return true;
}
