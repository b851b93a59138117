import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { addAutomations, addSchedule, tickRepository, type Ticking } from "./automations.ts";
import { startChaosFleet, type ChaosFleet } from "./fleet.ts";
import { killDuringTurns, lostDuringTurns } from "./loop-kills.ts";
import { runLoop, type Loop } from "./loop.ts";
import { descendantsOf } from "./processes.ts";
import { post, send, type Accepted, type Senders } from "./requests.ts";
import { createSchedule, type Mishap } from "./schedule.ts";
import { describeRecovery, recoveries, watchPlaces, type Kill, type Recovery } from "./recoveries.ts";
import { unforeseen } from "./unforeseen.ts";
import { findUnrest } from "./verify-loop.ts";
import { brokenPromises } from "./verify.ts";

export interface ChaosOptions {
  readonly seed: number;
  readonly sessions: number;
  readonly apis: number;
  readonly workers: number;
  /** Whether the network between workers and database is one that the kernel cuts; else a proxy stalls. */
  readonly namespaces?: boolean;
  /** Sessions that each worker runs at once; 4 if omitted. */
  readonly places?: number;
  /** By how much the pauses between mishaps are longer than the schedule says; 1 if omitted. */
  readonly pauseFactor?: number;
  /**
   * After so many nothing more goes wrong, so that a slow machine comes to the end as well, the last of them when the feedback loop has
   * begun; by default there is no end.
   */
  readonly mishaps?: { readonly before: number; readonly inLoop: number };
  /** After so long without everything being over the run is given up. */
  readonly limitMs: number;
  readonly tell: (line: string) => void;
}

export interface ChaosReport {
  /** What was promised and not kept; empty where all is well. */
  readonly broken: readonly string[];
  /** How often each kind of mishap happened: one that found nothing to hurt is not counted. */
  readonly mishaps: Readonly<Record<string, number>>;
  /** From each worker's SIGKILL to its sessions' next attempts, in rising order of the time. */
  readonly recoveries: readonly Recovery[];
  /** How often a session was tried again by itself after a passing failure, by its code. */
  readonly retried: Readonly<Record<string, number>>;
  readonly loop: LoopReport;
  readonly tookMs: number;
}

/** That the feedback loop was under fire: how much of it there was. */
export interface LoopReport {
  /** Comments, reviews and red checks. */
  readonly events: number;
  /** Deliveries of these that were answered with `duplicate`. */
  readonly duplicates: number;
  /** Sessions whose worker was killed during one of its turns. */
  readonly killed: number;
  /** Comments and replies that the forge took, and whose answer was lost, so that they had to be looked for. */
  readonly lostAnswers: number;
}

const repositories = 10;
/** For so many sessions one loses its worker on purpose during a turn of the feedback loop. */
const sessionsForKill = 20;

/** Sends work to a fleet while everything around it breaks, until all is over; then looks whether every promise was kept. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const startedAt = performance.now();
  const fleet = await startChaosFleet(options);
  try {
    const names = Array.from({ length: repositories }, (_, index) => `chaos-${index}`);
    for (const name of [...names, tickRepository]) {
      await fleet.forge.createRepository("acme", name, { "README.md": `# ${name}\n` });
      fleet.forge.describe("acme", name, { people: { ann: "write" } });
    }
    const senders = await addAutomations(fleet, names);
    const ticking = await addSchedule(fleet);
    const over = new AbortController();
    const mishaps: Record<string, number> = {};
    const kills: Kill[] = [];
    const places = watchPlaces(fleet, over.signal);
    const sent = sendAll(fleet, senders, options.sessions, names);
    const loop = runLoop(fleet, senders, sent.accepted, options.sessions, over.signal);
    const breaking = breakThings(fleet, options, { mishaps, kills, signal: over.signal, loopBegun: loop.begun });
    const pausedAt = await untilAllOver(fleet, options, { ...sent, ticking, loop });
    over.abort();
    await breaking;
    const codes = await Promise.all(
      [...fleet.workers, ...fleet.apis].map(async (node) => [node.name, await node.stop()]),
    );
    const recovered = await recoveries(fleet, kills, places);
    const broken = [
      ...(await brokenPromises(fleet, sent.accepted, { ...ticking, pausedAt }, loop.events)),
      ...loop.broken,
      ...(await unforeseen(fleet.folder, [...fleet.workers, ...fleet.apis])),
      ...recovered
        .filter(({ overtaken }) => overtaken > 0)
        .map((recovery) => `out of turn: ${describeRecovery(recovery)}`),
    ];
    for (const [name, code] of codes) {
      // One that has only just been started knows nothing of signals yet, and has nothing to end.
      if (code !== null && code !== 0 && code !== "SIGTERM")
        broken.push(`${name} ended with ${code} when it was asked to stop`);
    }
    return {
      broken,
      mishaps,
      retried: await retries(fleet),
      loop: await reportLoop(fleet, loop),
      recoveries: recovered,
      tookMs: performance.now() - startedAt,
    };
  } finally {
    await Promise.all([...fleet.workers, ...fleet.apis].map((node) => node.stop()));
    await fleet.close();
  }
}

/** A few at a time, so that there is work from the first mishap to the last. */
function sendAll(fleet: ChaosFleet, senders: Senders, count: number, names: readonly string[]) {
  const accepted: Accepted[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const number = next;
      next += 1;
      accepted.push(await send(fleet, senders, number, names[number % names.length] ?? ""));
      await pause(20);
    }
  };
  return { accepted, done: Promise.all(Array.from({ length: 8 }, lane)) };
}

/** @returns when the schedule was paused; null: the time was up before */
async function untilAllOver(
  fleet: ChaosFleet,
  { sessions, limitMs, tell }: ChaosOptions,
  {
    accepted,
    done,
    ticking,
    loop,
  }: {
    readonly accepted: readonly Accepted[];
    readonly done: Promise<unknown>;
    readonly ticking: Ticking;
    readonly loop: Loop;
  },
): Promise<string | null> {
  const until = performance.now() + limitMs;
  let allSent = false;
  let pausedAt: string | null = null;
  void Promise.all([done, loop.done]).then(() => (allSent = true));
  let lastLine = "";
  for (;;) {
    await pause(250);
    const rows = await statuses(fleet);
    const count = (status: string): number => rows.filter((row) => row.status === status).length;
    const line = `${accepted.length} accepted, ${count("completed")} completed, ${count("running")} running, ${count("queued")} queued, ${count("failed")} failed`;
    if (line !== lastLine) tell(line);
    lastLine = line;
    // No failure is retried by hand: it passes by itself, or a promise is broken.
    const left = allSent && accepted.length === sessions ? await countLeft(fleet, ticking) : null;
    if (left?.all === 0 && pausedAt !== null && (await isAtRest(fleet))) break;
    // Then the last tick's run comes to its end; a run in which no minute began has shown nothing of ticks. Ticks are not waited for: on a
    // slow machine the next is there before the last is over.
    if (left?.withoutTicks === 0 && pausedAt === null && (await hasTicked(fleet, ticking))) {
      const path = `/automation/${ticking.automationId}/update`;
      const { updatedAt } = await post<{ readonly updatedAt: string }>(fleet, path, { paused: true }, "pause-ticks");
      pausedAt = updatedAt;
    }
    if (performance.now() > until) {
      tell(`given up after ${Math.round(limitMs / 1_000)} s`);
      break;
    }
  }
  return pausedAt;
}

/** How many sessions and jobs are not over; null: the database is down just now. */
async function countLeft(
  fleet: ChaosFleet,
  { triggerId }: Ticking,
): Promise<{ readonly all: number; readonly withoutTicks: number } | null> {
  const { rows } = await fleet.store
    .query<{ all: number; withoutTicks: number }>(
      `with work as (
         select job.trigger_id from session left join job on job.id = job_id
           where session.status not in ('completed', 'failed', 'cancelled')
         union all select trigger_id from job where status in ('pending', 'running'))
       select count(*)::integer as all, count(*) filter (where trigger_id is distinct from $1)::integer as "withoutTicks" from work`,
      [triggerId],
    )
    .catch(() => ({ rows: [] }));
  return rows[0] ?? null;
}

async function hasTicked(fleet: ChaosFleet, { triggerId }: Ticking): Promise<boolean> {
  const found = await fleet.store
    .query("select 1 from job where trigger_id = $1 limit 1", [triggerId])
    .catch(() => ({ rowCount: 0 }));
  return found.rowCount === 1;
}

/** Whether the feedback loop has nothing more to do. */
async function isAtRest(fleet: ChaosFleet): Promise<boolean> {
  const unrest = await findUnrest(fleet).catch(() => ["the database is down just now"]);
  return unrest.length === 0;
}

async function statuses(fleet: ChaosFleet): Promise<{ readonly status: string }[]> {
  try {
    return (await fleet.store.query<{ status: string }>("select status from session")).rows;
  } catch {
    // The database is down just now: nothing is known, so nothing is over.
    return [{ status: "running" }];
  }
}

async function retries(fleet: ChaosFleet): Promise<Record<string, number>> {
  const { rows } = await fleet.store.query<{ code: string; count: number }>(
    `select data #>> '{retry,code}' as code, count(*)::integer as count from event
     where type = 'session.status' and data ? 'retry' group by 1 order by 2 desc`,
  );
  return Object.fromEntries(rows.map(({ code, count }) => [code, count]));
}

async function reportLoop(fleet: ChaosFleet, { events, duplicates }: Loop): Promise<LoopReport> {
  const killed = await lostDuringTurns(fleet);
  const lostAnswers = fleet.forge.lostComments();
  return { events: events.length, duplicates, killed: killed.length, lostAnswers };
}

interface Breaking {
  readonly mishaps: Record<string, number>;
  readonly kills: Kill[];
  readonly signal: AbortSignal;
  /** Settles when the feedback loop's first delivery is sent. */
  readonly loopBegun: Promise<void>;
}

async function breakThings(fleet: ChaosFleet, options: ChaosOptions, breaking: Breaking): Promise<void> {
  const atStep = watchSteps(fleet, breaking);
  const kill = async (index: number): Promise<void> => {
    options.tell(`· a turn of the loop loses its worker ${index}`);
    await killWorker(fleet, index, 0, breaking);
    happened(breaking, "killInLoop");
  };
  const wanted = Math.ceil(options.sessions / sessionsForKill);
  const killing = killDuringTurns(fleet, wanted, kill, breaking.signal);
  // The worker that wrote that comment has to search for it before it writes again.
  const losing = breaking.loopBegun.then(() => fleet.forge.failNext({ kind: "loseAnswer", at: "comment" }));
  await failOnSchedule(fleet, options, breaking, atStep);
  await Promise.all([killing, losing]);
  for (const { link } of fleet.workers) link.repair();
}

async function failOnSchedule(
  fleet: ChaosFleet,
  options: ChaosOptions,
  breaking: Breaking,
  atStep: (wanted: StepKill) => void,
): Promise<void> {
  const { before = Infinity, inLoop = 0 } = options.mishaps ?? {};
  let count = 0;
  for (const { afterMs, mishap } of createSchedule(options.seed, options)) {
    await pause(afterMs * (options.pauseFactor ?? 1));
    if (count === before) await Promise.race([breaking.loopBegun, once(breaking.signal, "abort")]);
    if (breaking.signal.aborted || count === before + inLoop) break;
    count += 1;
    options.tell(`· ${JSON.stringify(mishap)}`);
    try {
      if (await happen(fleet, mishap, breaking, atStep)) happened(breaking, mishap.kind);
    } catch (error) {
      options.tell(`· it could not: ${String(error)}`);
    }
  }
}

function happened({ mishaps }: Breaking, kind: Mishap["kind"] | "killInLoop"): void {
  mishaps[kind] = (mishaps[kind] ?? 0) + 1;
}

type StepKill = Extract<Mishap, { kind: "killAtStep" }>;

/** @returns whether it hurt something; a kill at a step is counted once the step is there */
async function happen(
  fleet: ChaosFleet,
  mishap: Mishap,
  breaking: Breaking,
  atStep: (wanted: StepKill) => void,
): Promise<boolean> {
  switch (mishap.kind) {
    case "killWorker":
      await killWorker(fleet, mishap.node, mishap.downMs, breaking);
      return true;
    case "killApi":
      fleet.apis[mishap.node]?.kill(mishap.downMs);
      return true;
    case "freezeWorker":
      fleet.workers[mishap.node]?.freeze(mishap.forMs);
      return true;
    case "freezeApi":
      fleet.apis[mishap.node]?.freeze(mishap.forMs);
      return true;
    case "killAtStep":
      atStep(mishap);
      return false;
    case "killHarness":
      return killHarness(fleet, mishap.which);
    case "restartDatabase":
      await fleet.signalDatabase(mishap.signal);
      return true;
    case "cutDatabase": {
      const link = fleet.workers[mishap.node]?.link;
      link?.cut();
      setTimeout(() => link?.repair(), mishap.forMs);
      return true;
    }
    case "fillDisk":
      return (await fleet.workers[mishap.node]?.fillDisk(mishap.forMs)) === true;
    case "failForge":
      await failForge(fleet, mishap.failure);
      return true;
  }
}

async function killWorker(fleet: ChaosFleet, index: number, downMs: number, { kills }: Breaking): Promise<void> {
  const worker = fleet.workers[index];
  if (worker === undefined) return;
  const id = await worker.workerId();
  const held = await fleet.store
    .query<{ id: string }>("select id from session where worker = $1 and status = 'running'", [id])
    .catch(() => ({ rows: [] }));
  worker.kill(downMs);
  kills.push({ at: Date.now(), sessions: held.rows.map((row) => row.id) });
}

function killHarness(fleet: ChaosFleet, which: number): boolean {
  const harnesses = fleet.workers.flatMap((worker) => {
    const pid = worker.pid();
    return pid === null ? [] : descendantsOf(pid).filter(({ command }) => command.includes("basic/main"));
  });
  const chosen = harnesses[which % Math.max(1, harnesses.length)];
  return chosen !== undefined && process.kill(chosen.pid, "SIGKILL");
}

function failForge(fleet: ChaosFleet, failure: "500" | "429" | "loseAnswer" | "hang"): Promise<void> {
  switch (failure) {
    case "500":
    case "429":
      return fleet.forge.failNext({ kind: "status", status: Number(failure) });
    case "loseAnswer":
      return fleet.forge.failNext({ kind: "loseAnswer" });
    case "hang":
      return fleet.forge.failNext({ kind: "hang", at: "api" });
  }
}

/** Kills the worker of the next session that comes to the edge of a step that is waited for. */
function watchSteps(fleet: ChaosFleet, breaking: Breaking): (wanted: StepKill) => void {
  const wanted: StepKill[] = [];
  void (async () => {
    let since = new Date();
    while (!breaking.signal.aborted) {
      await pause(10);
      const [first] = wanted;
      if (first === undefined) continue;
      const { rows } = await fleet.store
        .query<{ worker: string; at: Date }>(
          `select worker, event.created_at as at from event join session on session.id = session_id
           where session.status = 'running' and event.created_at > $1 and type = $2 and event.data ->> 'step' = $3
           order by event.created_at limit 1`,
          [since, first.edge, first.step],
        )
        .catch(() => ({ rows: [] }));
      const [found] = rows;
      if (found === undefined) continue;
      since = found.at;
      wanted.shift();
      for (const [index, worker] of fleet.workers.entries()) {
        if ((await worker.workerId()) !== found.worker) continue;
        await killWorker(fleet, index, first.downMs, breaking);
        happened(breaking, first.kind);
      }
    }
  })();
  return (kill) => void wanted.push(kill);
}
