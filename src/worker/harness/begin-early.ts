import type { Claim } from "../../store/queue/lease.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import type { MadeAt } from "../disk/session-folders.ts";
import { removeWarmSandbox } from "../../store/queue/warm-sandboxes.ts";
import { startEarly, type EarlyHarness, type EarlyServices } from "./early-harness.ts";
import { launchKey, type Launch } from "./launch.ts";
import type { WarmPool } from "./warm-pool.ts";

/** What a session's early start needs of the worker. */
export type EarlyStartServices = EarlyServices & Pick<AttemptServices, "database" | "metrics">;

/** The harness of an attempt's first turn, started while its folders are made. */
export interface EarlyStart {
  /** Makes the harness's folders the session's; in the place of `folders.begin`. */
  begin(): Promise<MadeAt>;
  /**
   * The harness, if it was started as the turn wants it; to be called once. Whoever gets it takes the turn with it, or says that it
   * failed.
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
  const { session, logger, signal } = attempt;
  const { metrics } = services;
  const { isOn, problem } = pool;
  const isPlain = Object.keys(launch.variables).length === 0 && launch.registries.length === 0;
  if (problem !== null || !isFirst(attempt, services)) {
    metrics.harnessStarted(problem === null && isOn ? "notFirst" : "off");
    return null;
  }
  if (isPlain && isOn) pool.want(launch);
  const warm = isPlain && isOn ? await pool.take(session, launch) : null;
  if (warm === null) metrics.harnessStarted(!isOn ? "off" : isPlain ? "none" : "different");
  // Its gateway must have registries' certificates from the start.
  if (launch.registries.length > 0) return null;
  const resume = pool.pause();
  try {
    const early = warm ?? (await startEarly(services, launch, { signal }));
    return earlyStart(session, services, { early, isWarm: warm !== null, resume });
  } catch (error) {
    resume();
    signal.throwIfAborted();
    logger.warn({ err: error }, "could not start the agent's program early; it starts later");
    return null;
  }
}

/** Whether nothing of the session is on a disk yet, and its agent certainly begins. */
function isFirst({ session }: Pick<Attempt, "session">, { folders }: Pick<AttemptServices, "folders">): boolean {
  const { harness, workspaceWorker, gate, sessionId } = session;
  return harness === null && workspaceWorker === null && gate === null && !folders.isKept(sessionId);
}

function earlyStart(
  claim: Claim,
  services: EarlyStartServices,
  { early, isWarm, resume }: { readonly early: EarlyHarness; readonly isWarm: boolean; readonly resume: () => void },
): EarlyStart {
  const { folders, database, metrics } = services;
  let isAdopted = false;
  let isUsed = false;
  let ending: Promise<void> | null = null;
  const count = (outcome: "warm" | "different" | "failed"): void => {
    if (isWarm) metrics.harnessStarted(outcome);
  };

  async function end(): Promise<void> {
    resume();
    await early.stop();
    if (!isAdopted) await folders.removeEarly(early.folders);
    if (isWarm) await removeWarmSandbox(database, early.id);
  }

  return {
    begin() {
      isAdopted = true;
      return folders.adopt(claim.sessionId, early.folders);
    },
    async use(launch) {
      if (isUsed) return null;
      isUsed = true;
      const isSame = launchKey(launch, services) === early.key;
      if (isSame && isAdopted && !early.hasEnded()) return early;
      count(isSame ? "failed" : "different");
      await early.stop();
      return null;
    },
    isThrough: resume,
    began: (outcome) => count(outcome === "begun" ? "warm" : "failed"),
    end: () => (ending ??= end()),
  };
}
