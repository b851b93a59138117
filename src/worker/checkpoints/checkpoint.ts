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

/** So often at least, while an agent is at work. */
const everyMs = 30_000;
/** How long one may take, and how many may fail in a row before no more are tried in this run. */
const limitMs = 20_000;
const failureLimit = 3;
/** A store that failed is left alone so long: what it costs to try must not hold up each step of a session. */
const storePauseMs = 30_000;
/** How much longer sending it to an object store may take. */
const sendLimitMs = 40_000;
/** A worker that is told to end does so. */
const lastLimitMs = 10_000;
const stateLimitMs = 5_000;
/** Packs on top of each other before all is packed anew. */
const longestChain = 16;

/** What keeps a session's work and its harness's memory in the store, so that any worker can go on from there. */
export interface Checkpointer {
  /** Whose memory is kept from here on. */
  follow(harness: Harness): void;
  /** Hears what the agent does: a tool call that is over may have changed files. */
  hear(event: NewEvent): void;
  /**
   * Takes one now. Rejects only where the lease was lost, or the database.
   * @returns whether everything is stored now
   */
  take(): Promise<boolean>;
  /**
   * Stops, and takes one more of a run that `error` broke off, for whichever worker takes it up. For when nothing of the run's
   * is at work any more; never rejects.
   */
  takeLast(error: unknown): Promise<void>;
  /** Takes no more by itself, and waits for the one that is under way. */
  stop(): Promise<void>;
}

/** An agent's program as far as its memory goes. */
type Harness = Pick<Provider, "id" | "state">;

/** Kinds of tool calls that change nothing. */
const harmless: ReadonlySet<string> = new Set(["read", "search", "think", "fetch"]);

/** What was stored last, to send only what is new. */
interface Last {
  repositories: readonly CheckpointRepository[];
  files: { readonly piece: string; readonly digest: string } | null;
  state: { readonly provider: string; readonly piece: string; readonly digest: string } | null;
}

/** @param prepared what the session started from */
export function createCheckpointer(run: Run, prepared: readonly PreparedRepository[]): Checkpointer {
  const { logger, providers } = run.dependencies;
  // That of the turns before, until another works.
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

  /** One at a time; what comes in the meantime is in the next. */
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
        // In the same moment as the last look at `again`: who calls later begins anew.
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
      // What an agent left there (a filter of git's that never ends) would hold up every one. A store comes back.
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
      // A cancel has no time.
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

/** @param sending ends what is sent to an object store; the run's signal ends the rest */
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

/** A checkpoint that is being taken. */
interface Draft {
  readonly last: Last;
  /** Where its pieces are written. */
  readonly folder: string;
  /** Files of those that are not stored yet, by id. */
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
  // A database that its harness holds locked must not hold the files up.
  const bounded = { ...run, signal: AbortSignal.any([run.signal, AbortSignal.timeout(stateLimitMs)]) };
  try {
    digest = await archiveState(bounded, placeOf(run, "."), state, file);
  } catch (error) {
    run.signal.throwIfAborted();
    // The files are worth more than the memory, without which the agent is told what was said.
    run.dependencies.logger.warn({ err: error }, "could not keep a harness's memory");
    return provider === last.state?.provider ? last.state : null;
  }
  if (provider === last.state?.provider && digest === last.state.digest) return last.state;
  fresh.set(id, file);
  return { provider, piece: id, digest };
}
