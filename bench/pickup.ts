import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openDatabase } from "../src/database/database.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { createLogger } from "../src/observability.ts";
import { bootstrap } from "../src/store/people/organizations.ts";
import { machine, quantile, table } from "./measure.ts";
import { bareLoop, graphileWorker, offstage, pgBoss, type Queue } from "./pickup-queues.ts";

/**
 * From the commit to the handler: Offstage's sessions and jobs beside a bare loop of SKIP LOCKED and NOTIFY, pg-boss and
 * graphile-worker, all in one PostgreSQL and one process, interleaved.
 *
 *   npm run bench:pickup -- --rounds 5 --loads 'idle,50 a second,50 at once'
 */
const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, loads: { type: "string" } },
});
const rounds = Number(options.rounds);
const idleEach = 60;
const pacedEach = 100;
const pacedPerSecond = 50;
const saturatedLanes = 50;
const saturatedEach = 600;

const waiting = new Map<string, (at: number) => void>();
/** A handler can run before the commit's answer was read. */
const early = new Map<string, number>();

function picked(id: string): void {
  const now = performance.now();
  const resolve = waiting.get(id);
  if (resolve === undefined) early.set(id, now);
  else resolve(now);
  waiting.delete(id);
}

/** Adds one, and waits for its handler. @returns milliseconds from the commit's answer */
async function addOne(queue: Queue): Promise<number> {
  const id = crypto.randomUUID();
  await queue.add(id);
  const committed = performance.now();
  const before = early.get(id);
  early.delete(id);
  if (before !== undefined) return 0;
  const at = await new Promise<number>((resolve) => waiting.set(id, resolve));
  return at - committed;
}

type Load = (queue: Queue) => Promise<number[]>;

async function idle(queue: Queue): Promise<number[]> {
  const took: number[] = [];
  for (let count = 0; count < idleEach; count += 1) {
    took.push(await addOne(queue));
    // Until what ends the work has been written too.
    await pause(20);
  }
  return took;
}

async function paced(queue: Queue): Promise<number[]> {
  const under: Promise<number>[] = [];
  const started = performance.now();
  for (let count = 0; count < pacedEach; count += 1) {
    await pause(Math.max(0, started + (count * 1_000) / pacedPerSecond - performance.now()));
    under.push(addOne(queue));
  }
  return Promise.all(under);
}

async function saturated(queue: Queue): Promise<number[]> {
  const took: number[] = [];
  let left = saturatedEach;
  const lane = async (): Promise<void> => {
    while ((left -= 1) >= 0) took.push(await addOne(queue));
  };
  await Promise.all(Array.from({ length: saturatedLanes }, lane));
  return took;
}

const loads: Readonly<Record<string, Load>> = {
  idle,
  [`${pacedPerSecond} a second`]: paced,
  [`${saturatedLanes} at once`]: saturated,
};

async function compare(queues: Readonly<Record<string, Queue>>): Promise<string[][]> {
  const lines: string[][] = [];
  const asked = options.loads?.split(",") ?? Object.keys(loads);
  for (const [load, make] of Object.entries(loads).filter(([name]) => asked.includes(name))) {
    const took: Record<string, { all: number[]; ms: number }> = {};
    for (let round = -1; round < rounds; round += 1) {
      for (const [name, queue] of Object.entries(queues)) {
        const before = performance.now();
        const all = await make(queue);
        const one = (took[name] ??= { all: [], ms: 0 });
        await pause(200);
        // The first round warms up.
        if (round < 0) continue;
        one.all.push(...all);
        one.ms += performance.now() - before - 200;
      }
    }
    const bare = quantile(sorted(took["bare loop"]?.all ?? []), 0.5);
    for (const [name, { all, ms }] of Object.entries(took)) {
      const p50 = quantile(sorted(all), 0.5);
      const perSecond = load === "idle" ? "" : ((all.length / ms) * 1_000).toFixed(0);
      const p99 = quantile(sorted(all), 0.99).toFixed(2);
      lines.push([name, load, p50.toFixed(2), (p50 / bare).toFixed(2), p99, perSecond]);
    }
  }
  return lines;
}

const sorted = (all: readonly number[]): number[] => all.toSorted((a, b) => a - b);

const logger = createLogger("error");
const folder = await mkdtemp(join(tmpdir(), "offstage-pickup-"));
// The unprivileged user that the database runs as under root must be able to pass.
await chmod(folder, 0o755);
const server = await startEmbeddedServer({ directory: join(folder, "postgres"), logger });
try {
  const database = await openDatabase({ url: server.url, directory: "", logger });
  const { organizationId } = await bootstrap(database, { adminKey: null });
  const place = { url: server.url, database, organizationId, logger, picked };
  const own = await offstage(place);
  const queues: Record<string, Queue> = {
    "bare loop": await bareLoop(place),
    "Offstage, sessions": own.sessions,
    "Offstage, jobs": own.jobs,
    "pg-boss": await pgBoss(place),
    "graphile-worker": await graphileWorker(place),
  };
  const lines = await compare(queues);
  for (const queue of Object.values(queues)) await queue.stop();
  await database.close();
  const head = ["", "load", "p50 ms", "of bare", "p99 ms", "per second"];
  process.stdout.write(`${machine()}\n\n${table(head, lines)}`);
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
