import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { NotFoundError, SessionError } from "../../domain/errors/errors.ts";
import { diskUsage } from "../../sandboxes/process/disk-usage.ts";
import { hasFolder } from "./has-folder.ts";
import type { SessionPaths, StartRecord } from "../disk/session-folders.ts";
import { lacksObjects, markDamaged, mendIfDamaged } from "../git/mirrors/mend.ts";
import { breakLocks, ensureMirror } from "../git/mirrors/make-mirror.ts";
import type { Mirror } from "../git/mirrors/mirror.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";
import { removeUnpinned } from "../git/mirrors/remove-mirror.ts";
import { OtherFormatError } from "../git/remote-error.ts";
import { knownOf, type CheckpointWork, type CloneStart, type Submodule } from "../git/remote-repository.ts";
import { makeAllClones, type CloneOrder, type MadeClone } from "./check-out.ts";
import { openCheckpointRepository, type PendingRestore } from "./checkpoint-repository.ts";
import { startOf, type Clone, type CloneServices, type CloneSource } from "./clone.ts";
import { theirsRef } from "./exported-refs.ts";
import { bringKnown } from "./held-commits.ts";
import { fetchHeads, goesOnFrom, hasStart, trustedSince, unpin, type Room } from "./create-clone.ts";

// Finds the clones that a session has on this disk, or makes them: as the remotes are, at the start of a checkpoint, at the commits
// of another session, or of one commit for a setup. They borrow their objects from mirrors (git alternates), and so are made
// quickly. Nothing here runs git in a folder that an agent could write to.

/** Which clones to make or to find. */
export interface CloneRequest {
  readonly sessionId: string;
  /** The session's repositories, in its order. */
  readonly sources: readonly CloneSource[];
  /** Receives git's progress; fraction is from 0 to 1. */
  readonly progress: (progress: { text: string; fraction?: number }) => void;
  /** The session's folders, with an empty workspace; default: fresh ones. */
  readonly place?: SessionPaths;
  readonly signal: AbortSignal;
}

/** A checkpoint whose packs are on this disk. */
export interface CheckpointContent {
  /** The work of each repository, by its folder in the workspace. */
  readonly work: ReadonlyMap<string, CheckpointWork>;
  /** Folders in which the checkpoint was made; null if its harness need not find them at the same paths. */
  readonly originalPaths: SessionPaths | null;
}

/**
 * Finds a session's clones as an earlier attempt left them. If a mirror that they borrow from was removed, it is fetched again.
 * @returns null if there are none, they were not completed, one was removed, or the remote no longer has their commits
 * @throws SessionError repository_*
 */
export async function openClones(services: CloneServices, request: CloneRequest): Promise<Clone[] | null> {
  const { sessionId, sources, signal } = request;
  for (const { remote } of sources) {
    const mirror = services.mirrors.of(remote);
    await breakLocks(mirror.path, sessionId, signal);
    await mendIfDamaged(mirror, signal);
  }
  const clones = await recordedClones(services, request);
  if (clones === null || !(await hasObjects(services, request, clones))) return null;
  if (!(await services.folders.openWorkspace(sessionId))) return null;
  // What the agent removed, or moved away, is made again from the last checkpoint.
  for (const clone of clones) if (!(await hasFolder(clone))) return null;
  await giveToAgent(services, services.folders.pathsOf(sessionId));
  return clones;
}

/** The clones that a session has on this disk, ready for use; null if there are none, they were not completed, or they are lost. */
export async function readClones(
  services: Pick<CloneServices, "folders" | "mirrors">,
  request: Pick<CloneRequest, "sessionId" | "sources">,
): Promise<Clone[] | null> {
  const clones = await recordedClones(services, request);
  return clones !== null && (await services.folders.openWorkspace(request.sessionId)) ? clones : null;
}

/** Reads which clones a session has on this disk, and changes nothing. */
async function recordedClones(
  { folders, mirrors }: Pick<CloneServices, "folders" | "mirrors">,
  { sessionId, sources }: Pick<CloneRequest, "sessionId" | "sources">,
): Promise<Clone[] | null> {
  const starts = await folders.started(sessionId);
  if (starts === null) return null;
  const { workspace } = folders.pathsOf(sessionId);
  const clones = sources.map((source, index) => {
    const start = startIn(starts, source, index);
    return start === undefined ? null : cloneOf(mirrors, workspace, source, start);
  });
  // A record that lacks a repository is of folders that were not completed.
  return clones.every((clone) => clone !== null) ? clones : null;
}

/** The record of a repository's start. Earlier versions wrote no folders' names, in the order of the repositories. */
function startIn(starts: readonly StartRecord[], { repository }: CloneSource, index: number): StartRecord | undefined {
  const named = starts.find(({ directory }) => directory === repository.directory);
  return named ?? starts.filter(({ directory }) => directory === undefined)[index];
}

function cloneOf(mirrors: Mirrors, workspace: string, source: CloneSource, start: CloneStart): Clone {
  const folder = join(workspace, source.remote.directory);
  return { ...source, ...startOf(start), mirror: mirrors.of(source.remote), folder };
}

/**
 * A session's clones with one of them changed.
 * @throws Error if they have no clone of its repository
 */
export function withClone(clones: readonly Clone[], changed: Clone): Clone[] {
  const { position, name } = changed.repository;
  const index = clones.findIndex(({ repository }) => repository.position === position);
  if (index === -1) throw new Error(`the session has no clone of ${name}`);
  return clones.with(index, changed);
}

/** Records that a session's clones are complete: to be called last, since clones without this record are made again. */
export function completeClones(
  { folders }: Pick<CloneServices, "folders">,
  sessionId: string,
  clones: readonly Clone[],
): Promise<void> {
  const starts = clones.map((clone) => ({ directory: clone.repository.directory, ...startOf(clone) }));
  return folders.markStarted(sessionId, starts);
}

/**
 * Makes a session's clones, as the remotes have them or at the start of a checkpoint. Clones with a checkpoint are complete only
 * when it is restored: the caller then calls `completeClones`.
 * @param checkpoint null: there is none
 * @returns the clones, and the parts of the checkpoint that are to be restored into them
 * @throws SessionError target_branch_not_found, branch_protected, resources_exhausted, repository_*, workspace_broken
 */
export async function makeClones(
  services: CloneServices,
  request: CloneRequest,
  checkpoint: CheckpointContent | null,
): Promise<{ readonly clones: Clone[]; readonly pending: PendingRestore[] }> {
  const { folders, mirrors } = services;
  const { sessionId, sources, progress, signal } = request;
  const place = request.place ?? (await folders.begin(sessionId));
  const room = await roomOf(services, sessionId);
  const starts: Started[] = [];
  let made: readonly MadeClone[];
  try {
    for (const source of sources) {
      const mirror = mirrors.of(source.remote);
      const work = checkpoint?.work.get(source.repository.directory) ?? null;
      const find = () =>
        mirrors.use.whileUsed(mirror.path, () => findStart(services, request, { source, mirror, work }));
      // From its pins on, the session itself keeps the mirror.
      starts.push(
        await find().catch(async (error: unknown) => {
          const isMadeAnew = error instanceof OtherFormatError;
          if (!isMadeAnew || !(await removeUnpinned(services, mirror.path, signal))) throw error;
          return find();
        }),
      );
    }
    const orders = starts.map(({ clone }) => ({ ...orderOf(clone), sessionId }));
    made = await makeAllClones({ services, place, room, progress, signal }, orders);
  } catch (error) {
    // Files over the limit do not stay on the disk until the next attempt.
    if (error instanceof SessionError && error.code === "resources_exhausted") await folders.remove(sessionId);
    throw error;
  }
  const completed = starts.map(({ clone, work }) => ({ clone: madeAs(clone, madeOf(made, clone)), work }));
  const clones = completed.map(({ clone }) => clone);
  const pending: PendingRestore[] = [];
  for (const { clone, work } of completed) {
    if (work !== null) pending.push(await toRestore(services, request, clone, work));
  }
  if (checkpoint === null) await completeClones(services, sessionId, clones);
  else if (checkpoint.originalPaths !== null) await folders.markMoved(sessionId, checkpoint.originalPaths);
  return { clones, pending };
}

/** A clone that was made at its start, from which others' commits may have brought submodules on (`Submodule.renewing`). */
function madeAs(clone: Clone, made: MadeClone): Clone {
  const shaOf = new Map(made.submodules.map(({ path, sha }) => [path, sha]));
  const later: Submodule[] = [];
  for (const one of clone.submodules ?? []) {
    const isInner = later.some(({ path }) => one.path.startsWith(`${path}/`));
    if (isInner || one.url === null || one.problem !== null || shaOf.get(one.path) === one.sha) continue;
    later.push({ ...one, renewing: { written: one.url } });
  }
  const isLater = ({ path }: Submodule): boolean => later.some((one) => one.path === path);
  return { ...clone, ...made, submodules: [...made.submodules.filter((one) => !isLater(one)), ...later] };
}

function madeOf(made: readonly MadeClone[], { repository, folder }: Clone): MadeClone {
  const found = made.find((each) => each.folder === folder);
  if (found === undefined) throw new Error(`the clone of ${repository.name} was not made`);
  return found;
}

/** A clone that is to be made, and the checkpoint's work that is to be restored into it; null if there is none. */
interface Started {
  readonly clone: Clone;
  readonly work: CheckpointWork | null;
}

/**
 * Finds what a clone starts from: what the remote has, or the start of a checkpoint. The mirror has the session's pins when it ends.
 */
async function findStart(
  { folders, mirrors }: CloneServices,
  { sessionId, progress, signal }: CloneRequest,
  parts: { readonly source: CloneSource; readonly mirror: Mirror; readonly work: CheckpointWork | null },
): Promise<Started> {
  const { source, mirror, work } = parts;
  const { remote } = source;
  await ensureMirror(mirror, signal);
  // Pins of an earlier attempt on this machine, since which another worker had the session.
  await unpin(mirror.path, sessionId);
  const heads = await fetchHeads(mirror, sessionId, remote, progress, signal);
  const continues = work !== null && goesOnFrom(work, remote, heads);
  if (continues) await bringKnown(mirror, work, theirsRef(sessionId, remote.directory), signal);
  const start = continues ? { ...work.start, trusted: await trustedSince(mirror, work.start, heads, signal) } : heads;
  const clone = cloneOf(mirrors, folders.pathsOf(sessionId).workspace, source, start);
  return { clone, work: continues ? work : null };
}

/** Brings a checkpoint's packs into a repository from which they are restored. */
async function toRestore(
  { folders }: Pick<CloneServices, "folders">,
  { sessionId, signal }: CloneRequest,
  clone: Clone,
  { packs, head, commit, merge = null }: CheckpointWork,
): Promise<PendingRestore> {
  const { mirror, remote } = clone;
  const path = folders.checkpointPath(sessionId, remote.directory);
  const repository = await openCheckpointRepository(path, mirror.path, { fresh: true, signal });
  for (const pack of packs) await repository.take(pack.file, [pack.commit], knownOf(clone));
  return { clone, path: repository.path, head, commit, merge };
}

function orderOf({ mirror, remote, folder, ...clone }: Clone): CloneOrder {
  return { mirror, remote, folder, start: startOf(clone) };
}

/** Whether all objects that the clones borrow are there: a mirror that was removed, or has lost some, is fetched again. */
async function hasObjects(
  { mirrors }: CloneServices,
  { sessionId, progress, signal }: CloneRequest,
  clones: readonly Clone[],
): Promise<boolean> {
  for (const clone of clones) {
    const { mirror, remote } = clone;
    // One that lacks objects was mended already.
    if (existsSync(mirror.path) && !lacksObjects(mirror.path)) {
      if (await hasStart(mirror, clone, signal)) continue;
      await markDamaged(mirror.path);
    }
    await mirrors.use.whileUsed(mirror.path, async () => {
      await ensureMirror(mirror, signal);
      await fetchHeads(mirror, sessionId, remote, progress, signal);
    });
    if (!(await hasStart(mirror, clone, signal))) return false;
  }
  return true;
}

/**
 * Makes clones at the commits that another session started from, from the mirrors alone: no remote is asked.
 * @throws NotFoundError if the other session's folders are gone
 */
export async function makeClonesAgain(
  services: CloneServices,
  originalId: string,
  { sessionId, sources, signal }: Pick<CloneRequest, "sessionId" | "sources" | "signal">,
): Promise<Clone[]> {
  const { folders, mirrors } = services;
  const originals = await recordedClones(services, { sessionId: originalId, sources });
  if (originals === null)
    throw new NotFoundError(`the commits that session ${originalId} started from are no longer on this server`);
  const place = await folders.begin(sessionId);
  const room = await roomOf(services, sessionId);
  const clones = originals.map((original) => cloneOf(mirrors, place.workspace, original, original));
  await makeAllClones({ services, place, room, progress: () => undefined, signal }, clones.map(orderOf));
  await completeClones(services, sessionId, clones);
  return clones;
}

/** Folders in which one setup runs, separate from the session's own. */
export interface SetupClone extends SessionPaths {
  /** Holds the workspace and the home; only the server may access it. To be removed when the result is archived. */
  readonly folder: string;
  /** For the setup's result; only the server may access it. */
  readonly results: string;
  /** The session's folder, whose disk bounds include this setup. */
  readonly disk: string;
  /** The mirror that the clone borrows from. */
  readonly readOnly: readonly string[];
}

/** Makes a fresh clone of a commit and an empty home for one setup. The workspace has only this repository. */
export async function makeSetupClone(
  services: CloneServices,
  sessionId: string,
  { mirror, remote, sparse = [] }: Pick<Clone, "mirror" | "remote" | "sparse">,
  { sha, branch }: { readonly sha: string; readonly branch: string },
  signal: AbortSignal,
): Promise<SetupClone> {
  const { folders } = services;
  const folder = await folders.setupFolder(sessionId);
  const place = { workspace: join(folder, "workspace"), home: join(folder, "home") };
  const start = { baseSha: sha, headSha: sha, targetBranch: branch, sparse };
  const room = await roomOf(services, sessionId);
  await mkdir(place.workspace);
  const order = { mirror, remote: { ...remote, branch }, start, folder: join(place.workspace, remote.directory) };
  await makeAllClones({ services, place, room, progress: () => undefined, signal }, [order]);
  const results = await folders.resultFolder(sessionId);
  return { folder, results, ...place, disk: folders.diskOf(sessionId), readOnly: [mirror.path] };
}

async function giveToAgent(
  { sandbox }: Pick<CloneServices, "sandbox">,
  { workspace, home }: SessionPaths,
): Promise<void> {
  await sandbox.makeWritable(workspace);
  await sandbox.makeWritable(home);
}

/** The disk bounds of a session, with what it uses already. */
export async function roomOf(
  { folders, limits }: Pick<CloneServices, "folders" | "limits">,
  sessionId: string,
): Promise<Room> {
  const disk = folders.diskOf(sessionId);
  const { bytes, files } = (await diskUsage([disk], null)) ?? { bytes: 0, files: 0 };
  return { disk, bounds: limits, written: { bytes, files } };
}
