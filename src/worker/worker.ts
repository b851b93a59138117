import type { Database } from "../database/database.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Logger } from "../observability.ts";
import { claimJob, recoverJobs, type ClaimedJob } from "../store/automations/jobs.ts";
import { wakeWaiting } from "../store/queue/budgets.ts";
import { claimSession, type ClaimedSession } from "../store/queue/claims.ts";
import { recoverSessions, renewClaim } from "../store/queue/lease.ts";
import { ClaimLost, RunCancelled, WorkerDraining } from "./attempt/cancellation.ts";
import { runLogger } from "./attempt/run.ts";
import { createLook } from "./look.ts";

export interface RunSignals {
  /** Ends the run; its reason says what is to be written afterwards. */
  readonly signal: AbortSignal;
  /** The worker is to end: the run does so at its next safe point, before `signal` ends it anywhere. */
  readonly draining: AbortSignal;
}

export interface WorkerOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Stable over restarts: what the same worker held in its previous life is its to take up at once. */
  readonly id: string;
  readonly concurrency: number;
  readonly leaseMs: number;
  /** How long runs have to come to a safe point or to their end when the worker stops. */
  readonly drainMs?: number;
  readonly maxRunningPerOrganization: number;
  readonly maxRunningPerRepository?: number | null;
  /** Whether this machine's disk has room for another session. */
  readonly hasRoom?: () => Promise<boolean>;
  /** Must end every process that it started before it settles; never rejects for a reason of the session's own. */
  readonly runSession: (session: ClaimedSession, signals: RunSignals) => Promise<void>;
  readonly runJob: (job: ClaimedJob) => Promise<void>;
}

export interface Worker {
  /** Stops taking, hands back what runs, and settles when nothing runs. Safe to call twice. */
  stop(): Promise<void>;
}

/** Looks by itself this often where no notification came: the net under LISTEN, not the way work is found. */
const pollMs = 2_000;

interface Running {
  readonly session: ClaimedSession;
  readonly controller: AbortController;
  readonly settled: Promise<void>;
  heldUntil: number;
}

/** Takes queued sessions and triggered jobs, as many at once as `concurrency` says, and keeps their leases. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { database, logger, leaseMs, metrics } = options;
  const running = new Set<Running>();
  const draining = new AbortController();
  const stopping = new AbortController();
  let full = false;

  const recovered = await recoverSessions(database, { worker: options.id });
  metrics.sessionsRecovered(recovered);
  if (recovered > 0) logger.info({ sessions: recovered }, "took up what this worker held when it was killed");
  await recoverJobs(database, { worker: options.id });

  const untilStopped = {
    stopping: stopping.signal,
    onFailure: (error: unknown) => logger.error({ err: error }, "could not look for work; will look again"),
  };
  const jobs = createLook(takeJobs, untilStopped);
  const sessions = createLook(takeSessions, untilStopped);

  /** Neither waits for the other: many jobs hold no session up. */
  function look(): void {
    jobs.look();
    sessions.look();
  }

  async function takeJobs(): Promise<void> {
    while (!stopping.signal.aborted) {
      const job = await claimJob(database, { worker: options.id, leaseMs });
      if (job === null) return;
      await options.runJob(job);
    }
  }

  async function takeSessions(): Promise<void> {
    while (!stopping.signal.aborted && running.size < options.concurrency) {
      const isFull = (await options.hasRoom?.()) === false;
      if (isFull && !full) {
        logger.warn("the disk is nearly full: no session is taken until there is room (OFFSTAGE_MIN_FREE_MB)");
      }
      full = isFull;
      if (full) return;
      const session = await claimSession(database, {
        worker: options.id,
        leaseMs,
        maxRunningPerOrganization: options.maxRunningPerOrganization,
        maxRunningPerRepository: options.maxRunningPerRepository ?? null,
      });
      if (session === null) return;
      if (session.queuedSeconds != null) metrics.sessionClaimed(session.queuedSeconds);
      carryOut(session);
    }
  }

  function carryOut(session: ClaimedSession): void {
    const controller = new AbortController();
    // One of its runs may still be at its end here, which another worker's claim has cut off: both would work in one folder.
    const before = [...running].find((run) => run.session.sessionId === session.sessionId)?.settled;
    const settled = Promise.resolve(before)
      .then(() => options.runSession(session, { signal: controller.signal, draining: draining.signal }))
      .catch((error: unknown) => runLogger(logger, session).error({ err: error }, "a run broke off"))
      .finally(() => {
        running.delete(run);
        sessions.look();
      });
    const run: Running = { session, controller, settled, heldUntil: Date.now() + leaseMs };
    running.add(run);
  }

  async function renew(run: Running): Promise<void> {
    // What is ended is not kept from others, however long it takes to end.
    if (run.controller.signal.aborted && run.controller.signal.reason instanceof ClaimLost) return;
    const askedAt = Date.now();
    try {
      const renewed = await renewClaim(database, run.session, leaseMs);
      if (renewed === null) run.controller.abort(new ClaimLost());
      else if (renewed.cancelRequested) run.controller.abort(new RunCancelled());
      else run.heldUntil = askedAt + leaseMs;
    } catch (error) {
      runLogger(logger, run.session).warn({ err: error }, "could not renew a lease; will try again");
    }
  }

  /** Where the database can't tell us, or says nothing at all, the clock does: from then on another worker may hold it. */
  function letGo(): void {
    for (const run of running) if (Date.now() >= run.heldUntil) run.controller.abort(new ClaimLost());
  }

  const work = await database.listen("offstage_work", (what) => {
    // Else words were lost, or an older node says only that there is something.
    if (what === "job") jobs.look();
    else if (what === "session") sessions.look();
    else look();
  });
  const cancels = await database.listen("offstage_cancel", (sessionId) => {
    for (const run of running) if (sessionId === "" || run.session.sessionId === sessionId) void renew(run);
  });
  const poll = setInterval(look, pollMs);
  const renewal = setInterval(() => {
    letGo();
    for (const run of running) void renew(run);
  }, leaseMs / 3);
  let recovering = false;
  const recovery = setInterval(() => {
    if (recovering) return;
    recovering = true;
    void Promise.all([recoverSessions(database, {}), recoverJobs(database, {}), wakeWaiting(database)])
      .then(
        (counts) => {
          metrics.sessionsRecovered(counts[0]);
          if (counts.some((count) => count > 0)) look();
        },
        (error: unknown) => logger.warn({ err: error }, "could not recover expired leases; will try again"),
      )
      .finally(() => {
        recovering = false;
      });
  }, leaseMs / 2);
  look();

  let stopped: Promise<void> | null = null;
  async function stop(): Promise<void> {
    stopping.abort();
    clearInterval(poll);
    clearInterval(recovery);
    await Promise.all([work.close(), cancels.close(), jobs.settled(), sessions.settled()]);
    draining.abort();
    const grace = setTimeout(() => {
      for (const run of running) run.controller.abort(new WorkerDraining());
    }, options.drainMs ?? 0);
    await Promise.all([...running].map((run) => run.settled));
    clearTimeout(grace);
    clearInterval(renewal);
  }
  return { stop: () => (stopped ??= stop()) };
}
