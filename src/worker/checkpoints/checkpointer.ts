import { messageOf, ObjectStoreError } from "../../domain/errors/errors.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { createOneAtATime } from "../../lifecycle/one-at-a-time.ts";
import type { Attempt } from "../attempt/attempt.ts";
import { endOf, isFailure } from "../attempt/end.ts";
import type { Clone } from "../clones/clone.ts";
import { listed } from "../lfs/pointers.ts";
import { measured } from "./measure.ts";
import { takeCheckpoint, workOf, type CheckpointServices, type Harness, type Last } from "./take-checkpoint.ts";

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
/** How often an attempt says that files in LFS are too large. */
const mostNotices = 5;
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
  /** A digest of the session's files and commits in the last checkpoint; null if the last try stored none. */
  work(): string | null;
  /**
   * Stops, then takes one more checkpoint of an attempt that `error` ended, for the worker that continues. None is taken if the
   * lease was lost or the session cancelled. To be called when no process of the attempt runs any longer; never rejects.
   */
  takeLast(error: unknown): Promise<void>;
  /** Ends the timer, and waits for the checkpoint under way. */
  stop(): Promise<void>;
}

/** Kinds of tool calls that change no files. */
const harmless: ReadonlySet<string> = new Set(["read", "search", "think", "fetch"]);

/** Makes the checkpointer of one attempt; `start` starts its timer. */
export function createCheckpointer(attempt: Attempt, services: CheckpointServices): Checkpointer {
  const { logger, emit, signal } = attempt;
  const { metrics, providers } = services;
  // The harness of earlier turns, until `follow` names another.
  let harness: Harness | null = providers.find(({ id }) => id === attempt.session.harness?.provider) ?? null;
  /** Null until it starts, or if no checkpoints are taken. */
  let clones: readonly Clone[] | null = null;
  let timer: NodeJS.Timeout | undefined;
  let last: Last = { repositories: [], files: null, state: null };
  const unheld = new Set<string>();
  let isStored = false;
  let noticed = false;
  /** Names of contents in LFS for which a notice said that they are too large. */
  const reported = new Set<string>();
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
    // Also if the try throws.
    isStored = false;
    isStored = await tryOne(started);
    return isStored;
  }

  async function tryOne(started: readonly Clone[]): Promise<boolean> {
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
      // An agent's leftovers (a git filter that never ends) would delay every checkpoint. An object store recovers.
      if (isStore) storeFailedAt = performance.now();
      else failures = overtime.aborted ? failureLimit : failures + 1;
      await noticeOnce(error, overtime.aborted && !isStore);
      return false;
    }
  }

  /** Whether a checkpoint has everything; says what it does not, at once: when the worker is dead, it is too late. */
  async function isWhole({ repositories }: Last): Promise<boolean> {
    const missing = repositories.flatMap(({ tooLarge }) => tooLarge);
    const news = missing.filter(({ oid }) => !reported.has(oid));
    const noticesLeft = mostNotices - noticesOfLfs;
    for (const { oid } of news) reported.add(oid);
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
    work: () => (isStored ? workOf(last) : null),
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
