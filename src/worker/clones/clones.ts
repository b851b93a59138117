import { existsSync } from "node:fs";
import { join } from "node:path";
import { NotFoundError, SessionError } from "../../domain/errors/errors.ts";
import { diskUsage } from "../../sandboxes/process/disk-usage.ts";
import type { ResourceLimits, Sandbox } from "../../sandboxes/sandbox.ts";
import { namesIn, type MadeAt, type SessionFolders, type StartRecord } from "../disk/session-folders.ts";
import { mustGit } from "../git/git.ts";
import { breakLocks, ensureMirror } from "../git/make-mirror.ts";
import type { Mirror } from "../git/mirror.ts";
import type { Mirrors } from "../git/mirrors.ts";
import { knownOf, type CheckpointWork, type CloneStart } from "../git/remote-repository.ts";
import { openCheckpointRepository, type PendingRestore } from "./checkpoint-repository.ts";
import { startOf, type Clone, type CloneSource } from "./clone.ts";
import { theirsRef } from "./exported-refs.ts";
import { bringKnown } from "./held-commits.ts";
import { addPullRequest } from "./pull-request-refs.ts";
import { refreshIndexes } from "./refresh-index.ts";
import { addSubmodules } from "./submodules.ts";
import { createClone, fetchHeads, goesOnFrom, hasStart, trustedSince, unpin, type Room } from "./create-clone.ts";

// A session's clones borrow their objects from mirrors (git alternates), and so are made quickly. Nothing here runs git in a
// folder that an agent could write to.

/** Where clones are made, and within which bounds. */
export interface CloneServices {
  readonly folders: SessionFolders;
  readonly mirrors: Mirrors;
  readonly sandbox: Pick<Sandbox, "makeWritable">;
  readonly limits: ResourceLimits;
}

/** Which clones to make or to find. */
export interface CloneRequest {
  readonly sessionId: string;
  /** The session's repositories, in its order. */
  readonly sources: readonly CloneSource[];
  /** Receives git's progress; fraction is from 0 to 1. */
  readonly progress: (progress: { text: string; fraction?: number }) => void;
  /** Makes the session's folders, with an empty workspace; default: fresh ones. */
  readonly begin?: (() => Promise<MadeAt>) | undefined;
  readonly signal: AbortSignal;
}

/** A checkpoint whose packs are on this disk. */
export interface CheckpointContent {
  /** The work of each repository, by its folder in the workspace. */
  readonly work: ReadonlyMap<string, CheckpointWork>;
  /** Folders in which the checkpoint was made; null if its harness need not find them at the same paths. */
  readonly madeAt: MadeAt | null;
}

/**
 * Finds a session's clones as an earlier attempt left them. If a mirror that they borrow from was removed, it is fetched again.
 * @returns null if there are none, they were not completed, or the remote no longer has their commits
 * @throws SessionError repository_*
 */
export async function openClones(services: CloneServices, request: CloneRequest): Promise<Clone[] | null> {
  const { sessionId, sources, signal } = request;
  for (const { remote } of sources) await breakLocks(services.mirrors.of(remote).path, sessionId, signal);
  const clones = await readClones(services, request);
  if (clones === null || !(await hasObjects(services, request, clones))) return null;
  await giveToAgent(services, services.folders.pathsOf(sessionId));
  return clones;
}

/** Reads which clones a session has on this disk, and changes nothing; null if there are none or they were not completed. */
export async function readClones(
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
  const { sessionId, sources } = request;
  const place = await (request.begin ?? (() => folders.begin(sessionId)))();
  const room = await roomOf(services, sessionId);
  const clones: Clone[] = [];
  const pending: PendingRestore[] = [];
  try {
    for (const source of sources) {
      const mirror = mirrors.of(source.remote);
      const work = checkpoint?.work.get(source.repository.directory) ?? null;
      const made = await mirrors.use.whileUsed(mirror.path, () =>
        makeClone(services, request, { source, mirror, room, work }),
      );
      clones.push(made.clone);
      if (made.pending !== null) pending.push(made.pending);
    }
  } catch (error) {
    // Files over the limit do not stay on the disk until the next attempt.
    if (error instanceof SessionError && error.code === "resources_exhausted") await folders.remove(sessionId);
    throw error;
  }
  await giveFresh(services, place, clones, request.signal);
  if (checkpoint === null) await completeClones(services, sessionId, clones);
  else if (checkpoint.madeAt !== null) await folders.markMoved(sessionId, checkpoint.madeAt);
  return { clones, pending };
}

/**
 * Makes one clone: as the remote has it, or at the start of a checkpoint, which is then to be restored. The mirror has the
 * session's pins when it ends.
 */
async function makeClone(
  { folders, mirrors }: CloneServices,
  { sessionId, progress, signal }: CloneRequest,
  parts: {
    readonly source: CloneSource;
    readonly mirror: Mirror;
    readonly room: Room;
    readonly work: CheckpointWork | null;
  },
): Promise<{ readonly clone: Clone; readonly pending: PendingRestore | null }> {
  const { source, mirror, room, work } = parts;
  const { remote } = source;
  await ensureMirror(mirror, signal);
  // Pins of an earlier attempt on this machine, since which another worker had the session.
  await unpin(mirror.path, sessionId);
  const heads = await fetchHeads(mirror, sessionId, remote, progress, signal);
  const continues = work !== null && goesOnFrom(work, remote, heads);
  const pin = theirsRef(sessionId, remote.directory);
  if (continues) await bringKnown(mirror, work, pin, signal);
  const start = continues ? { ...work.start, trusted: await trustedSince(mirror, work.start, heads, signal) } : heads;
  const made = cloneOf(mirrors, folders.pathsOf(sessionId).workspace, source, start);
  const lfsProblem = await createClone(mirror, made.folder, remote, start, room, signal, progress);
  await addPullRequest(mirror, made.folder, sessionId, remote, made.targetBranch, signal);
  const submodules = await addSubmodules({ ...made, mirrors, room, progress, signal });
  const clone = { ...made, submodules, lfsProblem };
  if (!continues) return { clone, pending: null };
  const path = folders.checkpointPath(sessionId, remote.directory);
  const repository = await openCheckpointRepository(path, mirror.path, { fresh: true, signal });
  for (const pack of work.packs) await repository.take(pack.file, [pack.commit], knownOf(start));
  const { head, commit, merge = null } = work;
  return { clone, pending: { clone, path: repository.path, head, commit, merge } };
}

/** Whether all objects that the clones borrow are there: a mirror that was removed is fetched again. */
async function hasObjects(
  { mirrors }: CloneServices,
  { sessionId, progress, signal }: CloneRequest,
  clones: readonly Clone[],
): Promise<boolean> {
  for (const clone of clones) {
    const { mirror, remote } = clone;
    if (existsSync(mirror.path)) continue;
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
  const originals = await readClones(services, { sessionId: originalId, sources });
  if (originals === null)
    throw new NotFoundError(`the commits that session ${originalId} started from are no longer on this server`);
  const place = await folders.begin(sessionId);
  const room = await roomOf(services, sessionId);
  const clones = originals.map((original) => cloneOf(mirrors, place.workspace, original, original));
  const made: Pick<Clone, "folder" | "submodules">[] = [];
  for (const { remote, mirror, folder, ...start } of clones) {
    // Pins keep the mirror while this session works, whatever happens to the other session.
    const pinned = { target: start.baseSha, start: start.headSha, trusted: start.trusted?.sha ?? start.baseSha };
    for (const [name, sha] of Object.entries(pinned)) {
      const pin = `refs/offstage/${sessionId}/${remote.directory}/${name}`;
      await mustGit(["update-ref", pin, sha], { cwd: mirror.path, signal });
    }
    await createClone(mirror, folder, remote, start, room, signal);
    const { headSha } = start;
    const submodules = await addSubmodules({ folder, headSha, remote, mirrors, room, signal });
    made.push({ folder, submodules });
  }
  await giveFresh(services, place, made, signal);
  await completeClones(services, sessionId, clones);
  return clones;
}

/** Folders in which one setup runs, separate from the session's own. */
export interface SetupFolders extends MadeAt {
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
): Promise<SetupFolders> {
  const { folders } = services;
  const folder = await folders.setupFolder(sessionId);
  const place = { workspace: join(folder, "workspace"), home: join(folder, "home") };
  const start = { baseSha: sha, headSha: sha, targetBranch: branch, sparse };
  const room = await roomOf(services, sessionId);
  const cloned = join(place.workspace, remote.directory);
  await createClone(mirror, cloned, { ...remote, branch }, start, room, signal);
  const { mirrors } = services;
  const submodules = await addSubmodules({ folder: cloned, headSha: sha, remote, mirrors, room, signal });
  await giveFresh(services, place, [{ folder: cloned, submodules }], signal);
  const results = await folders.resultFolder(sessionId);
  return { folder, results, ...place, disk: folders.diskOf(sessionId), readOnly: [mirror.path] };
}

/** Removes a session's folders, forgotten or not, and its pins in the mirrors. */
export async function removeSession(
  { folders, mirrors }: Pick<CloneServices, "folders" | "mirrors">,
  sessionId: string,
): Promise<void> {
  await folders.remove(sessionId);
  for (const mirror of await mirrorsIn(mirrors)) await mirrors.use.whileUsed(mirror, () => unpin(mirror, sessionId));
}

/**
 * Removes what was forgotten of a session, and its pins in mirrors that nobody uses, unless it has folders again. Pins that stay are
 * removed with the maintenance of their mirrors.
 */
export async function removeForgotten(
  { folders, mirrors }: Pick<CloneServices, "folders" | "mirrors">,
  sessionId: string,
): Promise<void> {
  await folders.removeForgotten(sessionId);
  for (const mirror of await mirrorsIn(mirrors))
    await mirrors.use.whileUnused(mirror, async () => {
      // A session makes its folder before it pins.
      if (!folders.isKept(sessionId)) await unpin(mirror, sessionId);
    });
}

async function mirrorsIn({ directory }: Pick<Mirrors, "directory">): Promise<string[]> {
  return (await namesIn(directory)).filter((name) => name.endsWith(".git")).map((name) => join(directory, name));
}

/** Gives clones to the agent that were made just now, and that it has not seen yet. */
async function giveFresh(
  services: Pick<CloneServices, "sandbox">,
  place: MadeAt,
  made: readonly Pick<Clone, "folder" | "submodules">[],
  signal: AbortSignal,
): Promise<void> {
  await giveToAgent(services, place);
  for (const clone of made) await refreshIndexes(clone, signal);
}

async function giveToAgent({ sandbox }: Pick<CloneServices, "sandbox">, { workspace, home }: MadeAt): Promise<void> {
  await sandbox.makeWritable(workspace);
  await sandbox.makeWritable(home);
}

/** The disk bounds of a session, with what it uses already. */
async function roomOf({ folders, limits }: CloneServices, sessionId: string): Promise<Room> {
  const disk = folders.diskOf(sessionId);
  const { bytes, files } = (await diskUsage([disk], null)) ?? { bytes: 0, files: 0 };
  return { disk, bounds: limits, written: { bytes, files } };
}
