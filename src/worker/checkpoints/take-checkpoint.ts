import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Provider } from "../../agents/harness.ts";
import { newId } from "../../domain/fields/new-id.ts";
import { saveCheckpoint, type Checkpoint, type CheckpointedRepository } from "../../store/checkpoints/checkpoints.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { commandFoldersOf } from "../attempt/session-repositories.ts";
import { listChanges } from "../checkouts/changes.ts";
import { openCheckpointRepository } from "../clones/checkpoint-repository.ts";
import { startOf, type Clone } from "../clones/clone.ts";
import { commitsToHold, packHeld } from "../clones/held-commits.ts";
import { lfsStore } from "../git/lfs/store.ts";
import { knownOf } from "../git/remote-repository.ts";
import type { ObjectsOptions } from "../git/pushed-objects.ts";
import { newLfsFiles, type LfsFile } from "../lfs/pointers.ts";
import { packLfs, type LfsPiece } from "./lfs-pieces.ts";
import { totalSize } from "./measure.ts";
import { archiveFiles, archiveState, packWork, type PackedWork } from "./make-pieces.ts";
import type { RestoreServices } from "./restore.ts";
import { allSettled } from "../../all-settled.ts";

/** Bound on copying a harness's memory, in ms. */
const stateLimitMs = 5_000;
/** Packs of one repository that build on each other before everything is packed again. */
const longestChain = 16;

/** The parts of a harness that its memory needs: its id, and the patterns of its files. */
export type Harness = Pick<Provider, "id" | "statePaths">;

/** The content of the last checkpoint, so that only changes are sent. */
export interface Last {
  repositories: readonly PackedRepository[];
  files: { readonly piece: string; readonly digest: string } | null;
  state: { readonly provider: string; readonly piece: string; readonly digest: string } | null;
}

/** A repository in a checkpoint, with what the next one needs to know of it. */
interface PackedRepository {
  readonly packed: CheckpointedRepository;
  readonly lfsPieces: readonly LfsPiece[];
  /** Files in LFS whose contents are too large for the checkpoint. */
  readonly tooLarge: readonly LfsFile[];
}

/** Services of the worker for taking checkpoints. */
export type CheckpointServices = RestoreServices & Pick<AttemptServices, "providers" | "checkpointBytes">;

/**
 * Takes one checkpoint, and stores it if anything changed.
 * @param sending ends the upload to the object store; the attempt's signal ends the rest
 * @returns what is stored now; `last` itself if nothing changed
 */
export async function takeCheckpoint(
  attempt: Attempt,
  services: CheckpointServices,
  taken: {
    readonly clones: readonly Clone[];
    readonly harness: Harness | null;
    readonly last: Last;
    readonly unheld: Set<string>;
    readonly sending: AbortSignal;
  },
): Promise<Last> {
  const { clones, harness, last, unheld, sending } = taken;
  const { folders, metrics } = services;
  const { session } = attempt;
  const folder = await folders.piecesFolder(session.sessionId);
  const fresh = new Map<string, string>();
  const draft: Draft = { last, folder, fresh, unheld };
  try {
    const [{ repositories, files }, state] = await allSettled([
      archiveWork(attempt, services, clones, draft),
      harness === null ? Promise.resolve(last.state) : archiveMemory(attempt, services, harness, draft),
    ]);
    // A join by hand that has begun or is done may have changed no file.
    if (fresh.size === 0 && isDeepStrictEqual(repositories, last.repositories)) return last;
    const { workspace, home } = await folders.visiblePaths(session.sessionId);
    const checkpoint: Checkpoint = {
      originalPaths: { workspace, home },
      repositories: repositories.map(({ packed, lfsPieces }) => ({
        ...packed,
        ...(lfsPieces.length > 0 && { lfs: lfsPieces.map(({ piece }) => piece) }),
      })),
      files: files?.piece ?? null,
      contentHash: workOf({ repositories, files }),
      harness: state === null ? null : { provider: state.provider, piece: state.piece },
    };
    const bytes = await totalSize(fresh.values());
    await saveCheckpoint(services, session, { checkpoint, fresh }, sending);
    metrics.checkpointStored(bytes);
    return { repositories, files, state };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Packs each clone, one after the other; without any, the workspace's files. */
async function archiveWork(
  attempt: Attempt,
  services: CheckpointServices,
  clones: readonly Clone[],
  draft: Draft,
): Promise<Pick<Last, "repositories" | "files">> {
  if (clones.length === 0) return { repositories: [], files: await archiveChangedFiles(attempt, services, draft) };
  const repositories: PackedRepository[] = [];
  for (const clone of clones) {
    const packed = await packClone(attempt, services, clone, { ...draft, repositories });
    if (packed !== null) repositories.push(packed);
  }
  return { repositories, files: null };
}

/** A digest of the files and commits that a checkpoint has: equal for those of the same. */
export function workOf({ repositories, files }: Pick<Last, "repositories" | "files">): string {
  const trees = repositories.map(({ packed: { directory, head, tree } }) => [directory, head, tree]);
  return createHash("sha256")
    .update(JSON.stringify([trees, files?.digest]))
    .digest("hex");
}

/** A checkpoint that is being taken. Its pieces are the files that it consists of: packs and archives. */
interface Draft {
  readonly last: Last;
  /** Folder in which the pieces are written. */
  readonly folder: string;
  /** Paths of the pieces that are not stored yet, by id. */
  readonly fresh: Map<string, string>;
  /** Commits of the remote that earlier checkpoints of the attempt could not hold, with their base: that is not tried again. */
  readonly unheld: Set<string>;
}

function newPiece({ folder }: Draft): { readonly id: string; readonly file: string } {
  const id = newId();
  return { id, file: join(folder, id) };
}

/** Packs a clone's changes since the last checkpoint. @returns null if it has none, and no checkpoint before */
async function packClone(
  { session, signal }: Attempt,
  services: CheckpointServices,
  clone: Clone,
  draft: Draft & { readonly repositories: readonly PackedRepository[] },
): Promise<PackedRepository | null> {
  const { folders, sandbox } = services;
  const { directory } = clone.repository;
  const before = draft.last.repositories.find(({ packed }) => packed.directory === directory) ?? null;
  const chain = before !== null && before.packed.packs.length < longestChain ? before.packed : null;
  const home = folders.checkpointHome(session.sessionId);
  await sandbox.makeWritable(home);
  const path = folders.checkpointPath(session.sessionId, directory);
  const repository = await openCheckpointRepository(path, clone.mirror.path, { fresh: chain === null, signal });
  const paths = commandFoldersOf(session, services, directory);
  const { id, file } = newPiece(draft);
  const work = await packWork(
    { ...services, signal },
    { ...paths, home, readOnly: [...paths.readOnly, repository.path] },
    {
      mirror: clone.mirror.path,
      checkpoints: repository.objects,
      known: [...knownOf(clone), ...(chain === null ? [] : [chain.commit])],
      baseSha: clone.baseSha,
      headSha: clone.headSha,
      sparse: clone.sparse ?? [],
      changes: await listChanges(services.checkouts, clone.folder),
      ours: clone.joining?.ours ?? null,
      last: before?.packed ?? null,
    },
    file,
  );
  const start = startOf(clone);
  const hold = () => holdCommits(clone, draft, before?.packed.held ?? null, signal);
  if (work === null) return before && { ...before, packed: { ...before.packed, start, held: await hold() } };
  const held = await hold();
  await repository.take(file, work.merge === null ? [work.commit] : [work.commit, work.merge], knownOf(clone));
  draft.fresh.set(id, file);
  const packs = [...(chain?.packs ?? []), { piece: id, commit: work.commit }];
  const files = await lfsFilesOf(work, knownOf(clone), { cwd: repository.path, signal });
  const used = draft.repositories.flatMap(({ lfsPieces }) => lfsPieces.flatMap(({ contents }) => contents));
  const lfs = await packLfs(
    { ...services, signal },
    {
      files,
      store: lfsStore(clone.mirror.path),
      before: before?.lfsPieces ?? [],
      room: used.reduce((left, { size }) => left - size, services.checkpointBytes),
      folders: { ...paths, readOnly: [clone.mirror.path] },
      newPiece: newPiece(draft),
    },
  );
  if (lfs.fresh !== null) draft.fresh.set(lfs.fresh.id, lfs.fresh.file);
  const { pieces: lfsPieces, tooLarge } = lfs;
  const packed = { directory, start, exported: clone.repository.headSha, ...work, held, packs };
  return { packed, lfsPieces, tooLarge };
}

/**
 * The files in LFS of packed work, each content once. A side of what collides in a merge that is under way may be in no folder
 * and in no commit of the agent's.
 */
async function lfsFilesOf(
  { commit, merge }: PackedWork,
  known: readonly string[],
  repository: ObjectsOptions,
): Promise<readonly LfsFile[]> {
  const { files } = await newLfsFiles(commit, known, repository);
  if (merge === null) return files;
  const sides = await newLfsFiles(merge, [...known, commit], repository);
  const has = new Set(files.map(({ oid }) => oid));
  // The state of the merge has each stage of the index in a folder.
  const named = sides.files.map((file) => ({
    ...file,
    path: file.commit === merge ? file.path.replace(/^[0-3]\//u, "") : file.path,
  }));
  return [...files, ...named.filter(({ oid }) => !has.has(oid))];
}

type Held = NonNullable<CheckpointedRepository["held"]>;

/** Holds what the packs build on, as far as the remote may lose it; what an earlier checkpoint holds is not packed again. */
async function holdCommits(clone: Clone, draft: Draft, before: Held | null, signal: AbortSignal): Promise<Held | null> {
  const { baseSha } = clone;
  const commits = commitsToHold(clone);
  if (before !== null && before.baseSha === baseSha && isDeepStrictEqual(before.commits, commits)) return before;
  const key = [baseSha, ...commits].join(" ");
  if (commits.length === 0 || draft.unheld.has(key)) return null;
  const { id, file } = newPiece(draft);
  if (!(await packHeld(clone.mirror, { baseSha, commits }, file, signal))) {
    draft.unheld.add(key);
    return null;
  }
  draft.fresh.set(id, file);
  return { piece: id, baseSha, commits };
}

async function archiveChangedFiles({ session, signal }: Attempt, services: CheckpointServices, draft: Draft) {
  const { last, fresh } = draft;
  const { id, file } = newPiece(draft);
  const digest = await archiveFiles({ ...services, signal }, commandFoldersOf(session, services, "."), file);
  if (digest === last.files?.digest) return last.files;
  fresh.set(id, file);
  return { piece: id, digest };
}

async function archiveMemory(
  { session, signal, logger }: Attempt,
  services: CheckpointServices,
  { id: provider, statePaths: state }: Harness,
  draft: Draft,
) {
  const { last, fresh } = draft;
  if (state.length === 0) return null;
  const { id, file } = newPiece(draft);
  let digest: string;
  // A database that its harness holds locked must not delay the files.
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(stateLimitMs)]);
  try {
    digest = await archiveState(
      { ...services, signal: bounded },
      commandFoldersOf(session, services, "."),
      state,
      file,
    );
  } catch (error) {
    signal.throwIfAborted();
    // The files matter more than the memory: without it the agent gets a transcript of the conversation.
    logger.warn({ err: error }, "could not store a harness's memory");
    return provider === last.state?.provider ? last.state : null;
  }
  if (provider === last.state?.provider && digest === last.state.digest) return last.state;
  fresh.set(id, file);
  return { provider, piece: id, digest };
}
