import type { Database } from "../database/database.ts";
import type { ListenerHandle } from "../database/notifications.ts";
import { createClaimLoop } from "../lifecycle/claim-loop.ts";
import { createPeriodic } from "../lifecycle/periodic.ts";
import { createService, type Service } from "../lifecycle/service.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Logger } from "../observability.ts";
import { claimJob, keepJob, recoverJobs, type ClaimedJob } from "../store/automations/jobs.ts";
import { wakeWaiting } from "../store/queue/budgets.ts";
import { claimSession, type ClaimedSession } from "../store/queue/claims.ts";
import { LeaseLostError, recoverSessions, renewClaim } from "../store/queue/lease.ts";
import { retakeClaim } from "../store/queue/retake.ts";
import { wakeRetries } from "../store/queue/retry.ts";
import { attemptLogger } from "./attempt/attempt.ts";
import { ClaimLost, SessionCancelled, WorkerDraining } from "./attempt/stop-reasons.ts";
import { createContact } from "./contact.ts";

/**
 * The signals between a worker and an attempt: the two ways in which the worker ends it, and that its agent is at work.
 */
export interface AttemptSignals {
  /** Ends the attempt at once; the reason, a class of `stop-reasons.ts`, decides what is recorded afterwards. */
  readonly signal: AbortSignal;
  /** Aborts when the worker shuts down: the attempt ends at its next safe point, before `signal` ends it anywhere. */
  readonly draining: AbortSignal;
  /** To be called when the agent is at work. What starts it wants the processor more than its work does. */
  readonly atWork: () => void;
}

/** Dependencies of a worker: its limits, and the functions that run what it claims. */
export interface WorkerOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Stable over restarts: on start the worker requeues at once what it held before. */
  readonly id: string;
  /** Most sessions that run at once. */
  readonly concurrency: number;
  /** Length of a lease, in ms: renewed every third of it; after it another worker may claim the session. */
  readonly leaseMs: number;
  /**
   * How long, in ms, attempts have to reach a safe point or their end after the worker was asked to stop; 0 if omitted.
   */
  readonly drainMs?: number;
  readonly maxRunningPerOrganization: number;
  readonly maxRunningPerRepository?: number | null;
  /** Whether this machine's disk has room for another session; if not, no session is claimed. */
  readonly hasRoom?: () => Promise<boolean>;
  /** Called when it has no room any more: what can be made again may make way. */
  readonly onFull?: () => void;
  /**
   * Whether there is memory for another session in addition to those that run; if not, none is claimed until one has ended, or memory is free.
   * @param young how many of them began a moment ago, and do not hold yet what they will
   */
  readonly hasMemory?: (young: number) => boolean;
  /** Most sessions whose agents are starting at once; any number if omitted. Others stay in the queue, for another worker to take. */
  readonly startsAtOnce?: number;
  /** Must have ended every process that it started before it settles, and must not reject because a session failed. */
  readonly runSession: (session: ClaimedSession, signals: AttemptSignals) => Promise<void>;
  /** Several at once. */
  readonly runJob: (job: ClaimedJob) => Promise<void>;
}

/** Interval, in ms, of the poll that finds work if a notification was lost; usually LISTEN/NOTIFY wakes the worker. */
const pollMs = 2_000;
/** Interval, in ms, at which sessions are polled whose retry is due. */
const retryPollMs = 1_000;

/**
 * Jobs that a worker does at once; of them those of one organization, and those of one automation of it. One may wait for a slow forge, which
 * holds up nobody else. Not more of an organization than may wait for templates at once.
 */
const jobsAtOnce = { all: 32, ofOrganization: 4, ofAutomation: 2 };

/** How long, in ms, a session counts as one that will take more memory than it has. */
const youngMs = 30_000;

/** How long, in ms, an attempt whose agent is not at work yet is starting: a longer one waits for a fetch, a setup or a forge. */
const startingMs = 10_000;

interface Running {
  readonly session: ClaimedSession;
  readonly controller: AbortController;
  readonly settled: Promise<void>;
  /** When it began, as `performance.now()`. */
  readonly startedAt: number;
  /** Time, as `performance.now()`, at which the lease has expired if no renewal succeeds. */
  heldUntil: number;
  isAtWork: boolean;
}

/** A worker, and what other parts may ask of it. */
export interface WorkerService extends Service {
  /**
   * Waits until no attempt at a session runs here. A cancelled one may still be saving its diff, long after the session has ended.
   */
  untilOver(sessionId: string): Promise<void>;
  /** Whether another session could run: if not, some may be waiting. */
  hasPlace(): boolean;
}

/**
 * Makes a worker, which claims queued sessions, up to `concurrency` at once, and triggered jobs, a few of each organization at once, and
 * renews the leases of its sessions.
 * `start` first requeues what the worker of this id held before it restarted; it throws if the database can't be reached.
 * `stop` claims nothing more, returns running sessions to the queue, and settles when nothing runs.
 */
export function createWorker(options: WorkerOptions): WorkerService {
  const { database, logger, leaseMs, metrics } = options;
  const running = new Set<Running>();
  /** Sessions whose lease ran out here and whose attempt has ended: each keeps its place until it is known who has it. */
  const lost = new Set<ClaimedSession>();
  const contact = createContact(database, leaseMs);
  const draining = new AbortController();
  let full = false;

  const polling = {
    everyMs: pollMs,
    onFailure: (error: unknown) => logger.error({ err: error }, "could not claim work; will retry"),
  };
  const jobs = createClaimLoop<ClaimedJob>({
    atOnce: jobsAtOnce.all,
    everyMs: pollMs,
    claim: async (underWay) => {
      const job = await claimJob(database, { worker: options.id, leaseMs, busy: busyOf(underWay) });
      return job === null ? [] : [job];
    },
    work: (job) => whileKept(job, () => options.runJob(job)),
    onClaimFailure: polling.onFailure,
    onWorkFailure: (error, { id: jobId }) => logger.error({ err: error, jobId }, "could not do a job; will retry"),
  });
  const sessions = createPeriodic({ ...polling, pass: takeSessions });
  const recovery = createPeriodic({
    pass: recoverExpired,
    everyMs: leaseMs / 6,
    firstAfterMs: leaseMs / 6,
    onFailure: (error) => logger.warn({ err: error }, "could not recover expired leases; will retry"),
  });
  const retaking = createPeriodic({
    pass: retakeLost,
    everyMs: leaseMs / 6,
    onFailure: (error) => logger.warn({ err: error }, "could not take sessions again whose lease ran out; will retry"),
  });
  const budgets = createPeriodic({
    pass: wakeForBudgets,
    everyMs: leaseMs / 2,
    firstAfterMs: leaseMs / 2,
    onFailure: (error) => logger.warn({ err: error }, "could not look for raised budgets; will retry"),
  });
  const retries = createPeriodic({
    pass: wakeForRetries,
    everyMs: retryPollMs,
    onFailure: (error) => logger.warn({ err: error }, "could not look for sessions to try again; will retry"),
  });

  /** The two polls are independent: many jobs delay no session. */
  function poll(): void {
    jobs.now();
    sessions.now();
  }

  /** A forge that is slow to answer what a job asks may take longer than its lease. */
  async function whileKept(job: ClaimedJob, work: () => Promise<void>): Promise<void> {
    const timer = setInterval(() => {
      keepJob(database, job, leaseMs).catch((error: unknown) =>
        logger.warn({ err: error, jobId: job.id }, "could not keep a job that is done"),
      );
    }, leaseMs / 3);
    try {
      await work();
    } finally {
      clearInterval(timer);
    }
  }

  async function takeSessions(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted && running.size + lost.size < options.concurrency) {
      const isFull = (await options.hasRoom?.()) === false;
      if (isFull && !full) {
        logger.warn("the disk is nearly full: no session is claimed until space is free (OFFSTAGE_MIN_FREE_MB)");
        options.onFull?.();
      }
      full = isFull;
      if (full) return;
      const askedAt = performance.now();
      const young = [...running].filter(({ startedAt }) => askedAt - startedAt < youngMs).length;
      // One always runs: what it takes, its own limit says.
      if (running.size > 0 && options.hasMemory?.(young) === false) return;
      const starting = [...running].filter((held) => !held.isAtWork && askedAt - held.startedAt < startingMs).length;
      if (starting >= (options.startsAtOnce ?? Infinity)) return;
      const session = await claimSession(database, {
        worker: options.id,
        leaseMs,
        maxRunningPerOrganization: options.maxRunningPerOrganization,
        maxRunningPerRepository: options.maxRunningPerRepository ?? null,
      });
      if (session === null) return;
      if (session.queuedSeconds != null) metrics.sessionClaimed(session.queuedSeconds);
      startSession(session, askedAt);
    }
  }

  /** @param askedAt when the claim was sent, as `performance.now()`: the lease began later */
  function startSession(session: ClaimedSession, askedAt: number): void {
    const controller = new AbortController();
    // Earlier attempts at this session, whose claims were lost, may still be ending here: two attempts must not share one
    // folder. The last of them waits for those before it.
    const before = [...running].findLast((held) => held.session.sessionId === session.sessionId)?.settled;
    const settled = Promise.resolve(before)
      .then(() => options.runSession(session, { signal: controller.signal, draining: draining.signal, atWork }))
      .catch((error: unknown) => {
        const attempt = attemptLogger(logger, session);
        if (error instanceof LeaseLostError)
          attempt.warn({ err: error }, "the lease was lost before the attempt's end was recorded");
        else attempt.error({ err: error }, "an attempt ended with an unexpected error");
      })
      .finally(() => {
        running.delete(held);
        if (performance.now() >= held.heldUntil) lost.add(session);
        retaking.now();
        sessions.now();
      });
    const held: Running = {
      session,
      controller,
      settled,
      startedAt: askedAt,
      heldUntil: askedAt + leaseMs,
      isAtWork: false,
    };
    running.add(held);
    function atWork(): void {
      if (held.isAtWork) return;
      held.isAtWork = true;
      sessions.now();
    }
  }

  async function renew(held: Running): Promise<void> {
    // The lease of an attempt that is being ended is not renewed, so that another worker can claim the session meanwhile.
    if (held.controller.signal.aborted && held.controller.signal.reason instanceof ClaimLost) return;
    const askedAt = performance.now();
    try {
      const renewed = await renewClaim(database, held.session, leaseMs);
      if (renewed === null) held.controller.abort(new ClaimLost());
      else if (renewed.cancelRequested) held.controller.abort(new SessionCancelled());
      else held.heldUntil = askedAt + leaseMs;
    } catch (error) {
      attemptLogger(logger, held.session).warn({ err: error }, "could not renew a lease; will retry");
    }
  }

  /**
   * If the database does not answer, how long ago it last did decides: from `heldUntil` on another worker may hold the session.
   * The machine's clock, which may be set, decides nothing; the database's refuses what is written too late all the same.
   */
  function letGo(): void {
    for (const held of running) if (performance.now() >= held.heldUntil) held.controller.abort(new ClaimLost());
  }

  async function recoverOwn(): Promise<void> {
    const recovered = await recoverSessions(database, { worker: options.id });
    metrics.sessionsRecovered(recovered);
    if (recovered > 0)
      logger.info({ sessions: recovered }, "requeued sessions that this worker held before it restarted");
    await recoverJobs(database, { worker: options.id });
  }

  /** Takes sessions again whose lease ran out while the database was away, if no other worker has: it would know less of them. */
  async function retakeLost(stopping: AbortSignal): Promise<void> {
    for (const session of lost) {
      if (stopping.aborted) return;
      const askedAt = performance.now();
      const again = await retakeClaim(database, session, { worker: options.id, leaseMs });
      lost.delete(session);
      if (again !== null) startSession(again, askedAt);
    }
  }

  async function recoverExpired(): Promise<void> {
    const mayRecover = await contact.lasts();
    const counts = await Promise.all([mayRecover ? recoverSessions(database, {}) : 0, recoverJobs(database, {})]);
    metrics.sessionsRecovered(counts[0]);
    if (counts.some((count) => count > 0)) poll();
  }

  async function wakeForBudgets(): Promise<void> {
    if ((await wakeWaiting(database)) > 0) sessions.now();
  }

  async function wakeForRetries(): Promise<void> {
    if ((await wakeRetries(database)) > 0) sessions.now();
  }

  const subscriptions: ListenerHandle[] = [];
  async function listen(): Promise<void> {
    const work = await database.listen("offstage_work", (what) => {
      // Any other payload: notifications were lost, or an older node sent one without a kind.
      if (what === "job") jobs.now();
      else if (what === "session") sessions.now();
      else poll();
    });
    subscriptions.push(work);
    const cancels = await database.listen("offstage_cancel", (sessionId) => {
      for (const held of running) if (sessionId === "" || held.session.sessionId === sessionId) void renew(held);
    });
    subscriptions.push(cancels);
  }

  async function untilOver(sessionId: string): Promise<void> {
    const own = (): Running | undefined => [...running].find((held) => held.session.sessionId === sessionId);
    for (let held = own(); held !== undefined; held = own()) await held.settled;
  }

  let renewal: NodeJS.Timeout | undefined;
  const worker = createService({
    async start() {
      await recoverOwn();
      await listen();
      renewal = setInterval(() => {
        letGo();
        for (const held of running) void renew(held);
      }, leaseMs / 3);
      await Promise.all([recovery, retaking, budgets, retries, jobs, sessions].map((service) => service.start()));
    },
    async stop() {
      // A job may wait for a slow forge meanwhile: no session loses time by that.
      const jobsOver = jobs.stop();
      const claiming = [recovery, retaking, budgets, retries, sessions].map((service) => service.stop());
      await Promise.all([...claiming, ...subscriptions.map((subscription) => subscription.close())]);
      draining.abort();
      const grace = setTimeout(() => {
        for (const held of running) held.controller.abort(new WorkerDraining());
      }, options.drainMs ?? 0);
      await Promise.all([jobsOver, ...[...running].map((held) => held.settled)]);
      clearTimeout(grace);
      clearInterval(renewal);
    },
  });
  return { ...worker, untilOver, hasPlace: () => running.size + lost.size < options.concurrency };
}

/** The organizations and automations of which no more jobs are begun in addition to those under way. */
function busyOf(underWay: readonly ClaimedJob[]): string[] {
  const full = (keyOf: (job: ClaimedJob) => string, most: number): string[] =>
    [...Map.groupBy(underWay, keyOf)].filter(([, of]) => of.length >= most).map(([key]) => key);
  return [
    ...full(({ organizationId }) => organizationId, jobsAtOnce.ofOrganization),
    ...full(({ automation }) => automation.id, jobsAtOnce.ofAutomation),
  ];
}
