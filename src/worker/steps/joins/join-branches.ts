import { SessionError } from "../../../domain/errors/errors.ts";
import { recordedWork, saveRepository, type RecordedWork } from "../../../store/queue/recorded-work.ts";
import type { Attempt } from "../../attempt/attempt.ts";
import type { Clone } from "../../clones/clone.ts";
import { completeClones, withClone } from "../../clones/clones.ts";
import { exportedHead, exportedRef, theirsRef } from "../../clones/exported-refs.ts";
import { git } from "../../git/git.ts";
import { areUnrelated, isWithin, joinCommits, type Join } from "../../git/join.ts";
import { askRemote } from "../../git/mirrors/ask-remote.ts";
import { fetchBranch } from "../../git/mirrors/fetch-commits.ts";
import { remoteOptions, type Mirror } from "../../git/mirrors/mirror.ts";
import type { Conflict, TakenIn } from "../agent/conflict-prompt.ts";
import { bringIn, fetchTheirFiles, noticeLeftOut, type JoinServices } from "./bring-in.ts";
import { exportClones, recordCommits, recordedOf } from "../commit/export-work.ts";
import { beginJoin, recordJoin } from "./by-hand.ts";
import { followSubmodules, wantSubmodules } from "./follow-submodules.ts";
import { isPushMerged } from "../pull-requests/known.ts";
import { whereBranchIs } from "../push/where-to-push.ts";

/** The clones with others' commits. */
export interface JoinedClones {
  readonly clones: readonly Clone[];
  /** Commits that came into a clone without a conflict, for the agent's prompt. */
  readonly takenIn: readonly TakenIn[];
  /** Joins that the agent has to do by hand: they are under way in the clones. */
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
  /** Null: it does not exist, or has only what was merged. */
  readonly branch: string | null;
  readonly target: string | null;
  /** The commit of the last push, if the target has all of that by a merged pull request: the work then begins at the target. */
  readonly merged: string | null;
}

/**
 * Brings others' commits to the session's pushed branches into its clones: as they are, merged with work that is not
 * pushed yet, or as a conflict that the agent is to resolve. If all that was pushed is merged into the target branch,
 * the clone begins there, and what was not pushed yet is put on top. Can be repeated after a crash at any point.
 * @param options.withTarget whether to merge the target branches too; false if omitted
 * @param options.unfinished conflicts that are being resolved: nothing is joined in their clones
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
  const isLeftAlone = ({ remote }: Clone): boolean =>
    unfinished.some(({ directory }) => directory === remote.directory);
  // An attempt that ended before had not come as far as that.
  let begun = clones;
  for (const clone of clones) {
    if (!isLeftAlone(clone))
      ({ clones: begun } = await followSubmodules(attempt, services, { clones: begun, clone }, clone.remote.branch));
  }
  let joined: JoinedClones = {
    clones: begun,
    takenIn: [],
    conflicts: unfinished,
    isUnfinished: withTarget && unfinished.some(({ isTarget }) => !isTarget),
  };
  for (const clone of begun) {
    const recorded = recordedOf(works, clone);
    if (recorded.pushedSha === null || isLeftAlone(clone)) continue;
    const { mirrors } = services;
    joined = await mirrors.use.whileUsed(clone.mirror.path, async () => {
      const tips = await lookAt(attempt, services, clone, recorded);
      const seen = { ...clone, remoteSha: tips.merged === null ? tips.branch : tips.target };
      const looked = { ...joined, clones: withClone(joined.clones, seen) };
      const takesTarget = withTarget || tips.merged !== null;
      if (await hasAll(attempt, clone, recorded, tips, takesTarget)) return looked;
      return joinClone(attempt, services, looked, { seen, recorded, tips, withTarget: takesTarget, published });
    });
  }
  return joined;
}

async function lookAt(
  attempt: Attempt,
  services: JoinServices,
  clone: Clone,
  recorded: RecordedWork,
): Promise<BranchTips> {
  const { signal } = attempt;
  const { remote, targetBranch } = clone;
  const { mirror, fork } = await whereBranchIs(attempt, services, clone);
  const [branch, target] = [`refs/heads/${remote.branch}`, `refs/heads/${targetBranch}`];
  const tipsIn = async (place: Mirror, refs: string[]) => askRemote(place, refs, await remoteOptions(place, signal));
  const asked = await tipsIn(mirror, fork === undefined ? [branch, target] : [branch]);
  const upstream = fork === undefined ? asked : await tipsIn(clone.mirror, [target]);
  const tips = { mirror, branch: asked.shaOf(branch), target: upstream.shaOf(target), merged: null };
  // Others may have committed to the branch after the merge.
  const isLeft = tips.target !== null && [null, recorded.pushedSha].includes(tips.branch);
  if (!isLeft || !(await isPushMerged(attempt, services, clone, recorded))) return tips;
  return { ...tips, branch: null, merged: recorded.pushedSha };
}

/** Whether the clone needs nothing: the last export has all commits, and the branch was not rewritten. */
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

/** The state of a clone whose branches are joined. */
interface Joining {
  readonly seen: Clone;
  readonly recorded: RecordedWork;
  readonly tips: BranchTips;
  readonly withTarget: boolean;
  readonly published: ReadonlyMap<string, string>;
}

/** A branch that is joined into a clone. */
interface Side {
  readonly name: string;
  readonly sha: string;
  /** The session's last push, as far as this branch has it. */
  readonly pushed: string | null;
  readonly isTarget: boolean;
}

/** A clone after a branch was joined into it, among all clones. */
interface JoinedSide {
  readonly clones: readonly Clone[];
  readonly clone: Clone;
  readonly takenIn?: TakenIn;
  readonly conflict?: Conflict;
}

/** @param before the clones so far, and what came into those before this one. @returns the same with this one's */
async function joinClone(
  attempt: Attempt,
  services: JoinServices,
  before: JoinedClones,
  joining: Joining,
): Promise<JoinedClones> {
  const takenIn: TakenIn[] = [];
  const conflicts: Conflict[] = [];
  let isUnfinished = false;
  let { clones } = before;
  let clone = joining.seen;
  for (const side of sidesOf(joining)) {
    // One conflict at a time.
    isUnfinished = conflicts.length > 0;
    if (isUnfinished) break;
    const end = await joinSide(attempt, services, { ...joining, clones, clone }, side);
    ({ clones, clone } = end);
    if (end.takenIn !== undefined) takenIn.push(end.takenIn);
    if (end.conflict !== undefined) conflicts.push(end.conflict);
  }
  return {
    clones,
    takenIn: [...before.takenIn, ...takenIn],
    conflicts: [...before.conflicts, ...conflicts],
    isUnfinished: before.isUnfinished || isUnfinished,
  };
}

/** The branches of which there is something: the work branch, then the target if it is wanted. */
function sidesOf({ seen, recorded, tips, withTarget }: Joining): Side[] {
  const sides = [
    { name: seen.remote.branch, sha: tips.branch, pushed: recorded.pushedSha, isTarget: false },
    ...(withTarget ? [{ name: seen.targetBranch, sha: tips.target, pushed: tips.merged, isTarget: true }] : []),
  ];
  return sides.flatMap(({ sha, ...side }) => (sha === null ? [] : [{ ...side, sha }]));
}

async function joinSide(
  attempt: Attempt,
  services: JoinServices,
  { recorded, tips, published, ...before }: Joining & Pick<JoinedSide, "clones" | "clone">,
  { name, sha, pushed, isTarget }: Side,
): Promise<JoinedSide> {
  let clone = await withTheirs(attempt, services, before.clones, before.clone, { ...tips, branch: sha, name });
  let clones: readonly Clone[] = withClone(before.clones, clone);
  const ours = await exportHead(attempt, services, clone);
  if (ours === null) {
    await noticeLeftOut(attempt, clone, name);
    return { clones, clone };
  }
  if (clone.joining != null) clones = await recordJoin(attempt, services, clones, clone, null);
  clone = { ...clone, joining: null };
  const theirs = { branch: name, theirs: sha, pushed, own: recorded.commits };
  const join = (await isPublishedIn(attempt, clone, published.get(ours), sha))
    ? ({ kind: "joined", sha } as const)
    : await joinIn(attempt, services, clone, { ...theirs, ours });
  const said = { directory: clone.remote.directory, branch: name, isTarget };
  if (join.kind === "ours") return { clones, clone };
  if (join.kind === "joined") {
    const hasPointers = !(await fetchTheirFiles(attempt, clone, { branch: name, sha }));
    const taken = { from: ours, to: join.sha };
    const wanted = await wantSubmodules(attempt, services, { clones, clone }, { ...taken, theirs: sha });
    if (!(await bringIn(attempt, services, clone, { ...taken, theirs: name }))) {
      await completeClones(services, attempt.session.sessionId, clones);
      return { clones, clone };
    }
    const { submodules, ...followed } = await followSubmodules(attempt, services, wanted, name);
    return { ...followed, takenIn: { ...said, ...taken, hasPointers, submodules } };
  }
  const options = { cwd: clone.mirror.path, signal: attempt.signal };
  const common = (await git(["merge-base", ours, sha], options)).stdout.trim();
  const changes = { from: common === "" ? ours : common, to: sha, theirs: sha };
  ({ clones, clone } = await wantSubmodules(attempt, services, { clones, clone }, changes));
  const begun = await beginJoin(attempt, services, clones, clone, { ...said, ...join, ours });
  if (begun.conflict === null) return { clones: begun.clones, clone };
  const { position } = clone.repository;
  const joining = begun.clones.find(({ repository }) => repository.position === position) ?? clone;
  const current = { clones: begun.clones, clone: joining };
  const { submodules, ...followed } = await followSubmodules(attempt, services, current, name);
  return { ...followed, conflict: { ...begun.conflict, submodules } };
}

/**
 * Fetches others' commits, and records them as the remote's: before any of them is in the clone, so that they never
 * count as the session's work. The diff's base follows the part of the target branch that is in it, also if a repository's whole history
 * was written anew.
 */
async function withTheirs(
  { session, signal }: Attempt,
  services: JoinServices,
  clones: readonly Clone[],
  clone: Clone,
  {
    mirror: branchMirror,
    branch,
    target,
    name,
  }: Pick<BranchTips, "mirror" | "target"> & { readonly branch: string; readonly name: string },
): Promise<Clone> {
  const { mirror, remote, targetBranch } = clone;
  const pin = theirsRef(session.sessionId, remote.directory);
  const place = name === targetBranch ? mirror : branchMirror;
  const tips = [
    { place, branch: name, sha: branch },
    ...(target === null ? [] : [{ place: mirror, branch: targetBranch, sha: target }]),
  ];
  for (const { place: from, ...tip } of tips)
    await fetchBranch(from, { ...tip, into: `${pin}/${tip.sha}` }, () => undefined, signal);
  const options = { cwd: mirror.path, signal };
  const base = target === null ? "" : (await git(["merge-base", branch, target], options)).stdout.trim();
  const isFollowed = async () =>
    (await isWithin(clone.baseSha, base, options)) ||
    (name !== targetBranch && (await areUnrelated(clone.baseSha, branch, options)));
  const baseSha = base !== "" && (await isFollowed()) ? base : clone.baseSha;
  const theirs = [...new Set([...(clone.theirs ?? []), ...tips.map(({ sha }) => sha)])];
  const taken = { ...clone, baseSha, theirs };
  await completeClones(services, session.sessionId, withClone(clones, taken));
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
 *   may repair
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
