import { createHash, randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Provider } from "../../agents/harness.ts";
import { messageOf, ObjectStoreError } from "../../domain/errors/errors.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { createOneAtATime } from "../../lifecycle/one-at-a-time.ts";
import { saveCheckpoint, type Checkpoint, type CheckpointRepository } from "../../store/checkpoints/checkpoints.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { endOf, isFailure } from "../attempt/end.ts";
import { commandFoldersOf } from "../attempt/session-repositories.ts";
import { openCheckpointRepository } from "../clones/checkpoint-repository.ts";
import { startOf, type Clone } from "../clones/clone.ts";
import { lfsStore } from "../git/lfs.ts";
import { knownOf } from "../git/remote-repository.ts";
import { listed, newLfsFiles, type LfsFile } from "../lfs/pointers.ts";
import { packLfs, type LfsPiece } from "./lfs-pieces.ts";
import { commitsToHold, packHeld } from "../clones/held-commits.ts";
import { measured, sizeOf } from "./measure.ts";
import type { CheckpointedClones } from "./restore.ts";
import { archiveFiles, archiveState, packWork } from "./pieces.ts";

/** Longest time between two checkpoints while an agent works. */
const everyMs = 30_000;
/** How long one checkpoint may take, and how many may fail in a row before no more are taken in this attempt. */
const limitMs = 20_000;
const failureLimit = 3;
/** Pause after an object-store failure: the time that a try takes must not delay every step of a session. */
const storePauseMs = 30_000;
/** Additional time for sending a checkpoint to an object store. */
const sendLimitMs = 40_000;
/** Bound on the last checkpoint, so that a worker that is shutting down ends in time. */
const lastLimitMs = 10_000;
/** Bound on copying a harness's memory, in ms. */
const stateLimitMs = 5_000;
/** How often an attempt says that files in LFS are too large. */
const mostNotices = 5;
/** Packs of one repository that build on each other before everything is packed again. */
const longestChain = 16;

/** Stores a session's work and its harness's memory while an attempt runs, so that any worker can continue from there. */
export interface Checkpointer {
  /**
   * Begins to take checkpoints of these clones. Before, every call below does nothing. Called again when others' commits were
   * taken into the clones.
   */
  start(clones: readonly Clone[]): void;
  /** Sets the harness whose memory is stored from here on. */
  follow(harness: Harness): void;
  /** Receives the agent's events: a checkpoint is taken after each tool call that may have changed files. */
  observe(event: NewEvent): void;
  /**
   * Takes a checkpoint now, or after the one under way.
   * @returns whether everything is stored now
   * @throws LeaseLostError if another worker holds the session; a connection error of the database, or the reason of the
   *   attempt's signal if it has aborted. Other failures are logged, and noticed on the session once
   */
  take(): Promise<boolean>;
  /**
   * Stops, then takes one more checkpoint of an attempt that `error` ended, for the worker that continues. None is taken if the
   * lease was lost or the session cancelled. To be called when no process of the attempt runs any longer; never rejects.
   */
  takeLast(error: unknown): Promise<void>;
  /** Ends the timer, and waits for the checkpoint under way. */
  stop(): Promise<void>;
}

/** The parts of a harness that its memory needs: its id, and the patterns of its files. */
type Harness = Pick<Provider, "id" | "statePaths">;

/** Kinds of tool calls that change no files. */
const harmless: ReadonlySet<string> = new Set(["read", "search", "think", "fetch"]);

/** What the last checkpoint stored, so that only changes are sent. */
interface Last {
  repositories: readonly PackedRepository[];
  files: { readonly piece: string; readonly digest: string } | null;
  state: { readonly provider: string; readonly piece: string; readonly digest: string } | null;
}

/** A repository in a checkpoint, with what the next one needs to know of it. */
interface PackedRepository {
  readonly packed: CheckpointRepository;
  readonly lfsPieces: readonly LfsPiece[];
  /** Files in LFS whose contents are too large for the checkpoint. */
  readonly tooLarge: readonly LfsFile[];
}

type Services = CheckpointedClones & Pick<AttemptServices, "providers" | "checkpointBytes">;

/** Makes the checkpointer of one attempt; `start` starts its timer. */
export function createCheckpointer(attempt: Attempt, services: Services): Checkpointer {
  const { logger, emit, signal } = attempt;
  const { metrics, providers } = services;
  // The harness of earlier turns, until `follow` names another.
  let harness: Harness | null = providers.find(({ id }) => id === attempt.session.harness?.provider) ?? null;
  /** Null until it starts, or if no checkpoints are taken. */
  let clones: readonly Clone[] | null = null;
  let timer: NodeJS.Timeout | undefined;
  let last: Last = { repositories: [], files: null, state: null };
  const unheld = new Set<string>();
  let noticed = false;
  /** Names of contents in LFS of which the session was told that they are too large. */
  const told = new Set<string>();
  let noticesOfLfs = 0;
  let failures = 0;
  let storeFailedAt = Number.NEGATIVE_INFINITY;

  function takeSoon(): void {
    take().catch((error: unknown) => logger.debug({ err: error }, "a checkpoint was not taken: the lease is lost"));
  }

  const taking = createOneAtATime(() => (clones === null ? Promise.resolve(false) : takeOne(clones)));

  async function take(): Promise<boolean> {
    return (await taking.run()) ?? false;
  }

  async function takeOne(started: readonly Clone[]): Promise<boolean> {
    if (failures >= failureLimit || performance.now() - storeFailedAt < storePauseMs) return false;
    const overtime = AbortSignal.timeout(limitMs);
    const bounded = { ...attempt, signal: AbortSignal.any([signal, overtime]) };
    const sending = AbortSignal.any([signal, AbortSignal.timeout(limitMs + sendLimitMs)]);
    try {
      const taken = { clones: started, harness, last, unheld, sending };
      last = await measured(metrics, bounded.signal, last, () => takeCheckpoint(bounded, services, taken));
      failures = 0;
      return await isWhole(last);
    } catch (error) {
      if (!isFailure(error, signal)) throw error;
      logger.warn({ err: error }, "could not take a checkpoint of a session");
      const isStore = error instanceof ObjectStoreError;
      // What an agent left there (a git filter that never ends) would delay every checkpoint. An object store recovers.
      if (isStore) storeFailedAt = performance.now();
      else failures = overtime.aborted ? failureLimit : failures + 1;
      await noticeOnce(error, overtime.aborted && !isStore);
      return false;
    }
  }

  /** Whether a checkpoint has everything; says what it does not, at once: when the worker is dead, it is too late. */
  async function isWhole({ repositories }: Last): Promise<boolean> {
    const missing = repositories.flatMap(({ tooLarge }) => tooLarge);
    const news = missing.filter(({ oid }) => !told.has(oid));
    const noticesLeft = mostNotices - noticesOfLfs;
    for (const { oid } of news) told.add(oid);
    if (news.length > 0 && noticesLeft > 0) {
      noticesOfLfs += 1;
      const bytes = news.reduce((sum, { size }) => sum + size, 0);
      const text = `New files in LFS are too large to be stored outside this worker (${Math.ceil(bytes / 1024 ** 2)} MB; OFFSTAGE_CHECKPOINT_MB allows ${Math.floor(services.checkpointBytes / 1024 ** 2)}): ${listed(news.map(({ path }) => path))}. If the worker dies before they are pushed, they have to be made again.`;
      await emit({ type: "notice", data: { level: "warning", text } });
    }
    return missing.length === 0;
  }

  async function noticeOnce(error: unknown, isOvertime: boolean): Promise<void> {
    if (noticed) return;
    noticed = true;
    const reason = isOvertime ? `it took longer than ${limitMs / 1_000} s` : messageOf(error);
    const text = `The work so far could not be stored outside this worker (${reason}): if the worker dies, another starts this turn again.`;
    await emit({ type: "notice", data: { level: "warning", text } });
  }

  async function stop(): Promise<void> {
    clearInterval(timer);
    await taking.stop();
  }

  return {
    start(started) {
      if (services.checkpointBytes === 0) return;
      clones = started;
      timer ??= setInterval(takeSoon, everyMs).unref();
    },
    follow(next) {
      harness = next;
    },
    observe(event) {
      if (event.type !== "agent.tool" || harmless.has(event.data.kind)) return;
      if (event.data.status === "completed" || event.data.status === "failed") takeSoon();
    },
    take,
    async takeLast(error) {
      await stop();
      const { why } = endOf(error, signal);
      // A cancel must not be delayed.
      if (clones === null || why === "lost" || why === "cancelled") return;
      try {
        const late = { ...attempt, signal: AbortSignal.timeout(lastLimitMs) };
        const taken = { clones, harness, last, unheld, sending: late.signal };
        last = await measured(metrics, late.signal, last, () => takeCheckpoint(late, services, taken));
      } catch (problem) {
        logger.warn({ err: problem }, "could not store the work of an attempt that was stopped");
      }
    },
    stop,
  };
}

/**
 * Takes one checkpoint, and stores it if anything changed.
 * @param sending ends the upload to the object store; the attempt's signal ends the rest
 * @returns what is stored now; `last` itself if nothing changed
 */
async function takeCheckpoint(
  attempt: Attempt,
  services: Services,
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
    const repositories: PackedRepository[] = [];
    for (const clone of clones) {
      const packed = await packClone(attempt, services, clone, { ...draft, repositories });
      if (packed !== null) repositories.push(packed);
    }
    const files = clones.length > 0 ? null : await archiveChangedFiles(attempt, services, draft);
    const state = harness === null ? last.state : await archiveMemory(attempt, services, harness, draft);
    // A join by hand that has begun or is done may have changed no file.
    if (fresh.size === 0 && isDeepStrictEqual(repositories, last.repositories)) return last;
    const { workspace, home } = await folders.seenAt(session.sessionId);
    const trees = repositories.map(({ packed: { directory, head, tree } }) => [directory, head, tree]);
    const checkpoint: Checkpoint = {
      madeAt: { workspace, home },
      repositories: repositories.map(({ packed, lfsPieces }) => ({
        ...packed,
        ...(lfsPieces.length > 0 && { lfs: lfsPieces.map(({ piece }) => piece) }),
      })),
      files: files?.piece ?? null,
      state: createHash("sha256")
        .update(JSON.stringify([trees, files?.digest]))
        .digest("hex"),
      harness: state === null ? null : { provider: state.provider, piece: state.piece },
    };
    const bytes = await sizeOf(fresh.values());
    await saveCheckpoint(services, session, { checkpoint, fresh }, sending);
    metrics.checkpointStored(bytes);
    return { repositories, files, state };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
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
  const id = randomUUID();
  return { id, file: join(folder, id) };
}

/** Packs a clone's changes since the last checkpoint. @returns null if it has none, and no checkpoint before */
async function packClone(
  { session, signal }: Attempt,
  services: Services,
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
      ours: clone.joining?.ours ?? null,
      last: before?.packed ?? null,
    },
    file,
  );
  if (work === null && before === null) return null;
  const held = await holdCommits(clone, draft, before?.packed.held ?? null, signal);
  if (work === null)
    return before === null ? null : { ...before, packed: { ...before.packed, start: startOf(clone), held } };
  await repository.take(file, work.merge === null ? [work.commit] : [work.commit, work.merge], knownOf(clone));
  draft.fresh.set(id, file);
  const packs = [...(chain?.packs ?? []), { piece: id, commit: work.commit }];
  const { files } = await newLfsFiles(work.commit, knownOf(clone), { cwd: repository.path, signal });
  const used = draft.repositories.flatMap(({ lfsPieces }) => lfsPieces.flatMap(({ contents }) => contents));
  const lfs = await packLfs(
    { ...services, signal },
    {
      files,
      store: lfsStore(clone.mirror.path),
      before: before?.lfsPieces ?? [],
      room: used.reduce((left, { size }) => left - size, services.checkpointBytes),
      folders: { ...paths, readOnly: [clone.mirror.path] },
      newPiece: () => newPiece(draft),
    },
  );
  if (lfs.fresh !== null) draft.fresh.set(lfs.fresh.id, lfs.fresh.file);
  const { pieces: lfsPieces, tooLarge } = lfs;
  const packed = { directory, start: startOf(clone), exported: clone.repository.headSha, ...work, held, packs };
  return { packed, lfsPieces, tooLarge };
}

type Held = NonNullable<CheckpointRepository["held"]>;

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

async function archiveChangedFiles({ session, signal }: Attempt, services: Services, draft: Draft) {
  const { last, fresh } = draft;
  const { id, file } = newPiece(draft);
  const digest = await archiveFiles({ ...services, signal }, commandFoldersOf(session, services, "."), file);
  if (digest === last.files?.digest) return last.files;
  fresh.set(id, file);
  return { piece: id, digest };
}

async function archiveMemory(
  { session, signal, logger }: Attempt,
  services: Services,
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
