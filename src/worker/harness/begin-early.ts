import type { Claim } from "../../store/queue/lease.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import type { SessionPaths } from "../disk/session-folders.ts";
import { removeWarmSandbox } from "../../store/queue/warm-sandboxes.ts";
import { makeFolders, startEarly, type EarlyHarness, type EarlyServices } from "./early-harness.ts";
import { launchKey, type Launch } from "./launch.ts";
import type { WarmPool } from "./warm-pool.ts";

/** Services of the worker for a session's early start. */
export type EarlyStartServices = EarlyServices & Pick<AttemptServices, "database" | "metrics">;

/** The harness of an attempt's first turn, started while its folders are made. */
export interface EarlyStart {
  /** Makes the harness's folders the session's; in the place of `folders.begin`. */
  begin(): Promise<SessionPaths>;
  /**
   * The harness, if it was started as the turn wants it; to be called once. The caller takes the turn with it, or
   * reports that it failed.
   * @returns null if it was not, or has ended: it is gone then
   */
  use(launch: Launch): Promise<EarlyHarness | null>;
  /** The agent is at work, or never will be by this. To be called as soon as that is known; may be called again. */
  isThrough(): void;
  /** Counts how the turn began. */
  began(outcome: "begun" | "failed"): void;
  /** Ends what was not used. May be called twice. */
  end(): Promise<void>;
}

/**
 * Starts the harness of a session's first turn at once, or takes one that is ready, if it is known by now what the turn will start.
 * @param launch as far as it is known: without what only the repositories' files say
 * @returns null if the harness is to be started when everything is ready for it
 */
export async function beginEarly(
  attempt: Attempt,
  services: EarlyStartServices,
  pool: WarmPool,
  launch: Launch,
): Promise<EarlyStart | null> {
  const { session } = attempt;
  const { metrics } = services;
  const { isOn, problem, isTried } = pool;
  const isPlain = Object.keys(launch.variables).length === 0 && launch.registries.length === 0;
  const isFirstTurn = isFirst(attempt, services);
  // Also before it is known whether one can be kept: the first sessions after a start would be followed by none that is ready.
  if (isFirstTurn && isPlain && isOn) pool.want(launch);
  const isEarly = problem === null && isFirstTurn;
  const warm = isEarly && isPlain && isOn ? await pool.take(session, launch) : null;
  if (warm === null) {
    // Starting the gateway's process takes about as long as the steps before the agent. A warm sandbox has one.
    services.gateways.prepare();
    const isOff = !isOn || (problem !== null && isTried);
    metrics.harnessStarted(isOff ? "off" : !isFirstTurn ? "notFirst" : isPlain ? "none" : "different");
  }
  if (!isEarly) return null;
  // Its gateway must have registries' certificates from the start.
  if (launch.registries.length > 0) return null;
  const started = warm === null ? startNow(attempt, services, launch) : takeWarm(session, services, warm);
  return earlyStart(services, { ...started, isWarm: warm !== null, resume: pool.pause() });
}

/** Whether nothing of the session is on a disk yet, and its agent certainly begins. */
function isFirst({ session }: Pick<Attempt, "session">, { folders }: Pick<AttemptServices, "folders">): boolean {
  const { harness, workspaceWorker, gate, sessionId } = session;
  return harness === null && workspaceWorker === null && gate === null && !folders.isKept(sessionId);
}

/** A harness on its way, and its folders on theirs to be the session's. */
interface Starting {
  readonly begin: () => Promise<SessionPaths>;
  /** Null if it could not be started. */
  readonly harness: Promise<EarlyHarness | null>;
  /** Removes what is left of its folders, if `begin` was not called. */
  readonly discard: () => Promise<void>;
}

function takeWarm(claim: Claim, { folders, database }: EarlyStartServices, warm: EarlyHarness): Starting {
  let isAdopted = false;
  return {
    begin() {
      isAdopted = true;
      return folders.adopt(claim.sessionId, warm.folders);
    },
    harness: Promise.resolve(warm),
    async discard() {
      if (!isAdopted) await folders.removeEarly(warm.folders);
      await removeWarmSandbox(database, warm.id);
    },
  };
}

/** Starts a harness in the session's own folders, which are made before it; everything else is prepared meanwhile. */
function startNow({ session, logger, signal }: Attempt, services: EarlyStartServices, launch: Launch): Starting {
  const { folders } = services;
  const { sessionId } = session;
  let isBegun = false;
  const made = makeFolders(services, () => folders.beginWithIdle(sessionId));
  const harness = made
    .then((place) => startEarly(services, launch, place, { signal }))
    .catch((error: unknown) => {
      if (!signal.aborted) logger.warn({ err: error }, "could not start the agent's program early; it starts later");
      return null;
    });
  return {
    async begin() {
      isBegun = true;
      await made;
      return folders.pathsOf(sessionId);
    },
    harness,
    async discard() {
      if (!isBegun) await folders.remove(sessionId);
    },
  };
}

function earlyStart(
  services: EarlyStartServices,
  { begin, harness, discard, isWarm, resume }: Starting & { readonly isWarm: boolean; readonly resume: () => void },
): EarlyStart {
  const { metrics } = services;
  let isUsed = false;
  let ending: Promise<void> | null = null;
  const count = (outcome: "warm" | "different" | "failed"): void => {
    if (isWarm) metrics.harnessStarted(outcome);
  };

  async function end(): Promise<void> {
    resume();
    await (await harness)?.stop();
    await discard();
  }

  return {
    begin,
    async use(launch) {
      if (isUsed) return null;
      isUsed = true;
      const early = await harness;
      if (early === null) return null;
      const isSame = launchKey(launch, services) === early.key;
      if (isSame && !early.hasEnded()) return early;
      count(isSame ? "failed" : "different");
      await early.stop();
      return null;
    },
    isThrough: resume,
    began: (outcome) => count(outcome === "begun" ? "warm" : "failed"),
    end: () => (ending ??= end()),
  };
}
