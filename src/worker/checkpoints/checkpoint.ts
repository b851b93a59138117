import { createHash, randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Provider } from "../../agents/harness.ts";
import { isConnectionError } from "../../database/connection-errors.ts";
import { ObjectStoreError } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import { saveCheckpoint, type Checkpoint, type CheckpointRepository } from "../../store/checkpoints/checkpoints.ts";
import { LeaseLostError } from "../../store/queue/lease.ts";
import { ClaimLost, RunCancelled } from "../attempt/cancellation.ts";
import type { Run } from "../attempt/run.ts";
import { placeOf, workspaceRepository } from "../attempt/session-repositories.ts";
import { knownOf, type PreparedRepository } from "../git/workspace-repository.ts";
import { measured, sizeOf } from "./measure.ts";
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
/** Packs of one repository that build on each other before everything is packed anew. */
const longestChain = 16;

/** Stores a session's work and its harness's memory while an attempt runs, so that any worker can continue from there. */
export interface Checkpointer {
  /** Sets the harness whose memory is stored from here on. */
  follow(harness: Harness): void;
  /** Receives the agent's events: a checkpoint is taken after each tool call that may have changed files. */
  hear(event: NewEvent): void;
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
type Harness = Pick<Provider, "id" | "state">;

/** Kinds of tool calls that change no files. */
const harmless: ReadonlySet<string> = new Set(["read", "search", "think", "fetch"]);

/** What the last checkpoint stored, so that only changes are sent. */
interface Last {
  repositories: readonly CheckpointRepository[];
  files: { readonly piece: string; readonly digest: string } | null;
  state: { readonly provider: string; readonly piece: string; readonly digest: string } | null;
}

/**
 * Makes the checkpointer of one attempt, and starts its timer.
 * @param prepared what each repository started from, in the session's order
 */
export function createCheckpointer(run: Run, prepared: readonly PreparedRepository[]): Checkpointer {
  const { logger, providers } = run.dependencies;
  // The harness of earlier turns, until `follow` names another.
  let harness: Harness | null = providers.find(({ id }) => id === run.session.harness?.provider) ?? null;
  const isOff = run.dependencies.checkpointBytes === 0;
  let last: Last = { repositories: [], files: null, state: null };
  let underWay: Promise<boolean> | null = null;
  let again = false;
  let told = false;
  let failures = 0;
  let storeFailedAt = Number.NEGATIVE_INFINITY;

  function takeSoon(): void {
    take().catch((error: unknown) => logger.debug({ err: error }, "a checkpoint was not taken: the lease is lost"));
  }

  /** Checkpoints are taken one at a time; calls during one are served by a single next one. */
  function take(): Promise<boolean> {
    if (isOff) return Promise.resolve(false);
    again = true;
    underWay ??= (async () => {
      try {
        let stored = false;
        while (again) {
          again = false;
          stored = await attempt();
        }
        return stored;
      } finally {
        // In the same tick as the last test of `again`: a later call starts a new one.
        underWay = null;
      }
    })();
    return underWay;
  }

  async function attempt(): Promise<boolean> {
    if (failures >= failureLimit || performance.now() - storeFailedAt < storePauseMs) return false;
    const overtime = AbortSignal.timeout(limitMs);
    const bounded = { ...run, signal: AbortSignal.any([run.signal, overtime]) };
    const sending = AbortSignal.any([run.signal, AbortSignal.timeout(limitMs + sendLimitMs)]);
    try {
      const taken = { prepared, harness, last, sending };
      last = await measured(bounded, last, () => takeCheckpoint(bounded, taken));
      failures = 0;
      return true;
    } catch (error) {
      if (error instanceof LeaseLostError || run.signal.aborted || isConnectionError(error)) throw error;
      logger.warn({ err: error }, "could not take a checkpoint of a session");
      const isStore = error instanceof ObjectStoreError;
      // What an agent left there (a git filter that never ends) would delay every checkpoint. An object store recovers.
      if (isStore) storeFailedAt = performance.now();
      else failures = overtime.aborted ? failureLimit : failures + 1;
      if (told) return false;
      told = true;
      const isOvertime = overtime.aborted && !isStore;
      const reason = isOvertime
        ? `it took longer than ${limitMs / 1_000} s`
        : error instanceof Error
          ? error.message
          : String(error);
      const text = `The work so far could not be stored outside this worker (${reason}): if the worker dies, another starts this turn again.`;
      await run.emit({ type: "notice", data: { level: "warning", text } });
      return false;
    }
  }

  const timer = setInterval(takeSoon, everyMs);
  timer.unref();

  async function stop(): Promise<void> {
    clearInterval(timer);
    again = false;
    await underWay?.catch((error: unknown) => logger.debug({ err: error }, "the last checkpoint was not taken"));
  }

  return {
    follow(next) {
      harness = next;
    },
    hear(event) {
      if (event.type !== "agent.tool" || harmless.has(event.data.kind)) return;
      if (event.data.status === "completed" || event.data.status === "failed") takeSoon();
    },
    take,
    async takeLast(error) {
      await stop();
      const { reason } = run.signal as { reason: unknown };
      // A cancel must not be delayed.
      const isOver = error instanceof LeaseLostError || reason instanceof ClaimLost || reason instanceof RunCancelled;
      if (isOff || isOver) return;
      try {
        const late = { ...run, signal: AbortSignal.timeout(lastLimitMs) };
        const taken = { prepared, harness, last, sending: late.signal };
        last = await measured(late, last, () => takeCheckpoint(late, taken));
      } catch (problem) {
        logger.warn({ err: problem }, "could not keep the work of a run that was stopped");
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
  run: Run,
  {
    prepared,
    harness,
    last,
    sending,
  }: {
    readonly prepared: readonly PreparedRepository[];
    readonly harness: Harness | null;
    readonly last: Last;
    readonly sending: AbortSignal;
  },
): Promise<Last> {
  const { workspaces } = run.dependencies;
  const folder = await workspaces.piecesFolder(run.session.sessionId);
  const fresh = new Map<string, string>();
  const draft: Draft = { last, folder, fresh };
  try {
    const repositories = await packRepositories(run, prepared, draft);
    const files = prepared.length > 0 ? null : await keepFiles(run, draft);
    const state = harness === null ? last.state : await keepState(run, harness, draft);
    if (fresh.size === 0) return last;
    const { workspace, home } = await workspaces.seenAt(run.session.sessionId);
    const trees = repositories.map(({ directory, head, tree }) => [directory, head, tree]);
    const checkpoint: Checkpoint = {
      madeAt: { workspace, home },
      repositories,
      files: files?.piece ?? null,
      state: createHash("sha256")
        .update(JSON.stringify([trees, files?.digest]))
        .digest("hex"),
      harness: state === null ? null : { provider: state.provider, piece: state.piece },
    };
    const bytes = await sizeOf(fresh.values());
    await saveCheckpoint(run.dependencies, run.session, { checkpoint, fresh }, sending);
    run.dependencies.metrics.checkpointStored(bytes);
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
}

function newPiece({ folder }: Draft): { readonly id: string; readonly file: string } {
  const id = randomUUID();
  return { id, file: join(folder, id) };
}

async function packRepositories(
  run: Run,
  prepared: readonly PreparedRepository[],
  draft: Draft,
): Promise<readonly CheckpointRepository[]> {
  const { workspaces } = run.dependencies;
  const packed: CheckpointRepository[] = [];
  for (const [index, repository] of run.session.repositories.entries()) {
    const start = prepared[index];
    if (start === undefined) continue;
    const { directory } = repository;
    const before = draft.last.repositories.find((candidate) => candidate.directory === directory) ?? null;
    const chain = before !== null && before.packs.length < longestChain ? before : null;
    const kept = await workspaces.keptWork(run.session.sessionId, workspaceRepository(run, repository), {
      anew: chain === null,
      signal: run.signal,
    });
    const place = placeOf(run, directory);
    const { id, file } = newPiece(draft);
    const work = await packWork(
      run,
      { ...place, home: kept.home, readOnly: [...place.readOnly, kept.path] },
      {
        mirror: kept.mirrorObjects,
        kept: kept.objects,
        known: [...knownOf(start), ...(chain === null ? [] : [chain.commit])],
        baseSha: start.baseSha,
        headSha: start.headSha,
        last: before,
      },
      file,
    );
    if (work === null) {
      if (before !== null) packed.push(before);
      continue;
    }
    await kept.take(file, work.commit, knownOf(start));
    draft.fresh.set(id, file);
    packed.push({ directory, start, ...work, packs: [...(chain?.packs ?? []), { piece: id, commit: work.commit }] });
  }
  return packed;
}

async function keepFiles(run: Run, draft: Draft) {
  const { last, fresh } = draft;
  const { id, file } = newPiece(draft);
  const digest = await archiveFiles(run, placeOf(run, "."), file);
  if (digest === last.files?.digest) return last.files;
  fresh.set(id, file);
  return { piece: id, digest };
}

async function keepState(run: Run, { id: provider, state }: Harness, draft: Draft) {
  const { last, fresh } = draft;
  if (state.length === 0) return null;
  const { id, file } = newPiece(draft);
  let digest: string;
  // A database that its harness holds locked must not delay the files.
  const bounded = { ...run, signal: AbortSignal.any([run.signal, AbortSignal.timeout(stateLimitMs)]) };
  try {
    digest = await archiveState(bounded, placeOf(run, "."), state, file);
  } catch (error) {
    run.signal.throwIfAborted();
    // The files matter more than the memory: without it the agent gets a transcript of the conversation.
    run.dependencies.logger.warn({ err: error }, "could not keep a harness's memory");
    return provider === last.state?.provider ? last.state : null;
  }
  if (provider === last.state?.provider && digest === last.state.digest) return last.state;
  fresh.set(id, file);
  return { provider, piece: id, digest };
}
