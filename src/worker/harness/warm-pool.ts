import { createPeriodic } from "../../lifecycle/periodic.ts";
import { createService, type Service } from "../../lifecycle/service.ts";
import type { Claim } from "../../store/queue/lease.ts";
import {
  addWarmSandbox,
  removeWarmSandbox,
  removeWarmSandboxesOf,
  takeWarmSandbox,
} from "../../store/queue/warm-sandboxes.ts";
import type { AttemptServices } from "../attempt/attempt.ts";
import { startWarm, type EarlyHarness, type EarlyServices } from "./early-harness.ts";
import { launchKey, type Launch } from "./launch.ts";

const roundMs = 2_000;
/** How many sessions in a row, for each place of the pool, have to ask for others before a launch makes way for theirs. */
const asksForAPlace = 3;
/** How long a launch is kept ready without a request for it. */
const keptForMs = 60 * 60_000;
/** An older one is replaced: its certificates and what its harness has read from the disk may have changed. */
const renewedAfterMs = 30 * 60_000;
/** Pause after a session's agent has begun. */
const pauseMs = 3_000;
/** How long it may take to be ready. */
const warmUpLimitMs = 10 * 60_000;
/** After a launch has failed, it is left alone for so long. */
const failedForMs = 5 * 60_000;
/** The memory that one is assumed to take before it is measured, and the reserve in addition. */
const usualBytes = 1024 ** 3;
const leastFreeBytes = 1024 ** 3;

/** The problem until the trial has ended. */
const untried = "it is not known yet whether a running sandbox can be given folders";

/** Services of the worker for keeping sandboxes ready. */
export type PoolServices = EarlyServices & Pick<AttemptServices, "workerId" | "database" | "logger">;

/** Sandboxes that are ready before there are sessions for them. */
export interface WarmPool extends Service {
  /** Why a harness can't be started before its session's folders are there; null if it can. */
  readonly problem: string | null;
  /** Whether that is known by now. */
  readonly isTried: boolean;
  /** Whether some are kept ready here. */
  readonly isOn: boolean;
  /** Records a request for such a launch: one is kept ready from then on. */
  want(launch: Launch): void;
  /** Makes none while a session's own start is under way. @returns what is called when it is over; may be called again */
  pause(): () => void;
  /**
   * Takes one that was started in just this way, for the session of a claim and for no other, ever.
   * @returns null if none is ready, or the claim was lost. The caller stops it
   */
  take(claim: Claim, launch: Launch): Promise<EarlyHarness | null>;
}

/** How many are kept, and when. */
export interface PoolOptions {
  readonly most: number;
  /** Why harnesses can't be started early here, if that is known without a trial. */
  readonly problem?: string | null;
  /** Whether the worker has a free place: if not, sessions may be waiting for one, and come first. */
  readonly hasPlace: () => boolean;
  /** Bytes of memory that can be used on this machine. */
  readonly availableBytes?: () => number;
}

interface Wanted {
  readonly launch: Launch;
  readonly key: string;
  askedAt: number;
  /** When it failed last; null if the last one was made. */
  failedAt: number | null;
}

interface Warm {
  readonly early: EarlyHarness;
  readonly readyAt: number;
}

/** Makes the pool of a worker. Nothing is kept ready before something was wanted. */
export function createWarmPool(services: PoolServices, options: PoolOptions): WarmPool {
  const { database, logger, workerId, sandbox } = services;
  const { most, hasPlace, availableBytes = () => process.availableMemory() } = options;
  const wanted = new Map<string, Wanted>();
  const ready = new Set<Warm>();
  /** Keys of the launches that were asked for last. */
  let lastAsked: string[] = [];
  let problem: string | null = untried;
  /** Sessions whose agents are not at work yet. */
  const starting = new Set<symbol>();
  let restUntil = 0;
  let isStopped = false;
  let trial: Promise<void> = Promise.resolve();

  async function discard(warm: Warm): Promise<void> {
    ready.delete(warm);
    await warm.early.stop();
    await services.folders.removeEarly(warm.early.folders);
    await removeWarmSandbox(database, warm.early.id);
  }

  /** Which of the ready ones are to be removed: they can't be taken any more meanwhile. */
  function useless({ early, readyAt }: Warm, now: number): boolean {
    const asked = wanted.get(early.key)?.askedAt ?? Number.NEGATIVE_INFINITY;
    return early.hasEnded() || now - readyAt > renewedAfterMs || now - asked > keptForMs || makesWay(early.key, now);
  }

  /** Whether the pool is full, and only others were asked for lately, of which one can be made. A team may have another agent by now. */
  function makesWay(key: string, now: number): boolean {
    if (ready.size < most || lastAsked.length < most * asksForAPlace || lastAsked.includes(key)) return false;
    return mostWanted(now).some((other) => readyOf(other.key) === 0);
  }

  const readyOf = (key: string): number => [...ready].filter(({ early }) => early.key === key).length;

  /** The launches that were asked for last, as many as there are places. */
  function mostWanted(now: number): Wanted[] {
    return [...wanted.values()]
      .filter(({ failedAt }) => failedAt === null || now - failedAt > failedForMs)
      .toSorted((a, b) => b.askedAt - a.askedAt)
      .slice(0, most);
  }

  /** The launch of which the next one is made: the one asked for last of which there are fewest. */
  function nextWanted(now: number): Wanted | null {
    if (ready.size >= most) return null;
    const [first] = mostWanted(now).toSorted((a, b) => readyOf(a.key) - readyOf(b.key));
    return first ?? null;
  }

  async function make(next: Wanted, stopping: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(warmUpLimitMs)]);
    const early = await startWarm(services, next.launch, signal);
    try {
      await addWarmSandbox(database, { id: early.id, worker: workerId, key: early.key });
      ready.add({ early, readyAt: performance.now() });
    } catch (error) {
      await early.stop();
      await services.folders.removeEarly(early.folders);
      throw error;
    }
  }

  async function pass(stopping: AbortSignal): Promise<void> {
    const now = performance.now();
    for (const [key, { askedAt }] of wanted) if (now - askedAt > keptForMs) wanted.delete(key);
    const isShort = availableBytes() < leastFreeBytes;
    for (const warm of ready) if (isShort || useless(warm, now)) await discard(warm);
    const next = nextWanted(now);
    if (
      next === null ||
      starting.size > 0 ||
      now < restUntil ||
      !hasPlace() ||
      availableBytes() < leastFreeBytes + usualBytes
    )
      return;
    try {
      await make(next, stopping);
      next.failedAt = null;
      logger.debug({ agent: next.launch.provider.id }, "a sandbox is ready for the next session");
    } catch (error) {
      if (stopping.aborted) return;
      next.failedAt = performance.now();
      logger.warn({ err: error, agent: next.launch.provider.id }, "could not make a sandbox ready; will retry");
    }
  }

  /** Whether folders can be attached takes a trial, for which the worker's start does not wait. */
  async function tryOut(): Promise<void> {
    problem = options.problem ?? (await sandbox.attachProblem());
    if (problem !== null) logger.debug({ reason: problem }, "agents' programs are not started early");
    else if (most > 0 && !isStopped) await passes.start();
  }

  const passes = createPeriodic({
    pass,
    everyMs: roundMs,
    onFailure: (error) => logger.warn({ err: error }, "could not look after the sandboxes that are ready; will retry"),
  });
  const service = createService({
    async start() {
      await removeWarmSandboxesOf(database, workerId);
      trial = tryOut().catch((error: unknown) => logger.warn({ err: error }, "could not try to start harnesses early"));
    },
    async stop() {
      isStopped = true;
      await trial;
      await passes.stop();
      await Promise.all([...ready].map(discard));
    },
  });

  return {
    ...service,
    get problem() {
      return problem;
    },
    get isTried() {
      return problem !== untried;
    },
    isOn: most > 0,
    want(launch) {
      const key = launchKey(launch, services);
      const known = wanted.get(key);
      if (known === undefined) wanted.set(key, { launch, key, askedAt: performance.now(), failedAt: null });
      else known.askedAt = performance.now();
      lastAsked = [...lastAsked, key].slice(-most * asksForAPlace);
    },
    pause() {
      const start = Symbol("start");
      starting.add(start);
      return () => {
        if (starting.delete(start)) restUntil = performance.now() + pauseMs;
      };
    },
    async take(claim, launch) {
      const key = launchKey(launch, services);
      for (const warm of ready) {
        if (warm.early.key !== key || warm.early.hasEnded()) continue;
        // No other session of this worker takes it meanwhile; the row is for anything that an attempt may outlive.
        ready.delete(warm);
        if (await takeWarmSandbox(database, claim, { id: warm.early.id, worker: workerId, key })) return warm.early;
        await discard(warm);
      }
      return null;
    },
  };
}
