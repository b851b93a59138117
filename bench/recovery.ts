import { chmod, mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openDatabase, type Database } from "../src/database/database.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { newSession } from "../src/domain/sessions/new-session.ts";
import { createMetrics } from "../src/metrics/metrics.ts";
import { createLogger } from "../src/observability.ts";
import { createAutomation } from "../src/store/automations/automations.ts";
import { finishSession } from "../src/store/queue/claims.ts";
import { recordSurvival } from "../src/store/queue/lease.ts";
import { completeMessage, nextMessage } from "../src/store/queue/progress.ts";
import { removeWorker, reportWorker } from "../src/store/queue/worker-nodes.ts";
import { bootstrap } from "../src/store/people/organizations.ts";
import { createSession } from "../src/store/sessions/new-session.ts";
import { createWorker, type WorkerService } from "../src/worker/worker.ts";
import { createRandom } from "../test/chaos/schedule.ts";
import { quantile } from "./measure.ts";

/**
 * How long sessions wait after their worker died, if the machine's speed is not what they wait for: the real workers, queue and
 * database, and attempts that only pass time. Workers are cut off from the database as by a SIGKILL, and come back, or freeze. An
 * attempt that is interrupted begins anew. `npm run chaos` measures the same with everything real, on a machine that can bear it.
 *
 *   npm run bench:recovery -- --sessions 80 --seed 1
 */
const { values } = parseArgs({
  options: {
    sessions: { type: "string", default: "80" },
    seed: { type: "string", default: "1" },
    workers: { type: "string", default: "4" },
    places: { type: "string", default: "4" },
    pause: { type: "string", default: "1" },
  },
});
const seed = Number(values.seed);
const random = createRandom(seed);
const between = (low: number, high: number): number => low + random() * (high - low);
const count = Number(values.sessions);
const concurrency = Number(values.places);
/** As in the chaos run. */
const leaseMs = 3_000;
const automations = 10;

const folder = await mkdtemp(join(tmpdir(), "offstage-recovery-"));
await chmod(folder, 0o755);
const logger = createLogger("silent");
const server = await startEmbeddedServer({ directory: join(folder, "postgres"), logger });
const connect = (): Promise<Database> => openDatabase({ url: server.url, directory: folder, logger });
const store = await connect();
const organizationId = (await bootstrap(store, { adminKey: null })).organizationId;

/** Nothing of a dead or frozen worker reaches the database; what a frozen one asked goes through when it thaws. */
function severable(database: Database) {
  let open = Promise.resolve();
  let thaw = (): void => undefined;
  let isDead = false;
  const gate = async (): Promise<void> => {
    await open;
    if (isDead) await new Promise(() => undefined);
  };
  const pool = new Proxy(database.pool, {
    get: (target, name) =>
      name === "query"
        ? async (...query: unknown[]) => {
            await gate();
            const result: unknown = await (target.query as (...given: unknown[]) => Promise<unknown>)(...query);
            await gate();
            return result;
          }
        : (Reflect.get(target, name) as unknown),
  });
  const link: Database = {
    ...database,
    pool,
    async transaction(work) {
      await gate();
      return database.transaction(work);
    },
    listen: (channel, heard) => database.listen(channel, (payload) => void (isDead || heard(payload))),
  };
  return {
    link,
    kill: () => (isDead = true),
    freeze() {
      open = new Promise((resolve) => (thaw = resolve));
    },
    thaw: () => thaw(),
  };
}

/** Work left of each session, in ms: each needs some seconds without an interruption. */
const needs = new Map<string, number>();

async function startWorker(id: string) {
  const database = await connect();
  const own = severable(database);
  let dead = false;
  const worker: WorkerService = createWorker({
    database: own.link,
    logger,
    metrics: createMetrics(),
    id,
    concurrency,
    leaseMs,
    maxRunningPerOrganization: 1_000,
    async runSession(session, { signal }) {
      await pause(needs.get(session.sessionId) ?? 1_000, undefined, { signal }).catch(() => undefined);
      if (dead) return;
      if (signal.aborted) return recordSurvival(own.link, session);
      const message = await nextMessage(own.link, session).catch(() => null);
      if (message === null) return;
      await completeMessage(own.link, session, message.id, { answer: "Done.", isKept: true });
      await finishSession(own.link, session, { status: "completed", summary: null, failure: null }).catch(
        () => undefined,
      );
    },
    runJob: () => Promise.resolve(),
  });
  await worker.start();
  await reportWorker(own.link, { id, agents: [], defaultAgent: null, concurrency });
  const beats = setInterval(
    () => void reportWorker(own.link, { id, agents: [], defaultAgent: null, concurrency }),
    15_000,
  );
  return {
    ...own,
    kill() {
      dead = true;
      clearInterval(beats);
      own.kill();
    },
    async stop() {
      clearInterval(beats);
      await worker.stop();
      await removeWorker(database, id);
    },
  };
}

const lanes = await Promise.all(
  Array.from({ length: automations }, async (_, index) => {
    const macro = `lane-${index}`;
    const automation = {
      id: crypto.randomUUID(),
      name: macro,
      macro,
      instructions: "Work",
      agent: null,
      repositoryIds: [],
    };
    const rest = { targetBranch: null, priority: 5, paused: false, budgetUsd: null, title: null };
    await createAutomation(store, organizationId, { ...automation, ...rest });
    return automation.id;
  }),
);
for (let index = 0; index < count; index += 1) {
  const automationId = index % 3 === 2 ? (lanes[index % automations] ?? null) : null;
  const request = { prompt: "Work", repositories: [], sandboxed: true, ...(automationId !== null && { automationId }) };
  const { id } = await createSession(store, organizationId, newSession(request));
  needs.set(id, between(4_000, 12_000));
}

interface Fleet {
  worker: Awaited<ReturnType<typeof startWorker>>;
  busyUntil: number;
}
const ids = Array.from({ length: Number(values.workers) }, (_, index) => `worker-${index}`);
const fleet: Fleet[] = await Promise.all(ids.map(async (id) => ({ worker: await startWorker(id), busyUntil: 0 })));
const kills: { readonly at: number; readonly sessions: readonly string[] }[] = [];
const comingBack = new Set<Promise<void>>();
const startedAt = performance.now();
let freezes = 0;

const open = async (): Promise<number> =>
  (
    await store.pool.query<{ open: number }>(
      "select count(*)::integer as open from session where status not in ('completed', 'failed')",
    )
  ).rows[0]?.open ?? 0;

while ((await open()) > 0 && performance.now() - startedAt < 600_000) {
  await pause(between(2_000, 6_000) * Number(values.pause));
  const index = Math.floor(random() * fleet.length);
  const hit = fleet[index] as Fleet;
  const isKill = random() < 0.7;
  const forMs = isKill ? between(2_500, 6_000) : between(500, 9_000);
  if (performance.now() < hit.busyUntil) continue;
  hit.busyUntil = performance.now() + forMs + 1_000;
  const id = ids[index] ?? "";
  if (isKill) {
    const { rows } = await store.pool.query<{ id: string }>(
      "select id from session where worker = $1 and status = 'running'",
      [id],
    );
    hit.worker.kill();
    kills.push({ at: Date.now(), sessions: rows.map((row) => row.id) });
    comingBack.add(
      pause(forMs).then(async () => {
        hit.worker = await startWorker(id);
      }),
    );
  } else {
    freezes += 1;
    hit.worker.freeze();
    setTimeout(() => hit.worker.thaw(), forMs);
  }
}

await Promise.all(comingBack);

const took: number[] = [];
for (const { at, sessions } of kills) {
  const { rows } = await store.pool.query<{ at: Date }>(
    `select min(created_at) as at from event where session_id = any($1::uuid[]) and type = 'session.status'
       and data ->> 'to' = 'running' and created_at > $2 group by session_id`,
    [sessions, new Date(at)],
  );
  took.push(...rows.map((row) => row.at.getTime() - at));
}
took.sort((a, b) => a - b);
const { rows: ends } = await store.pool.query("select status, count(*)::integer from session group by 1");
const inSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
process.stdout.write(
  `${count} sessions, seed ${seed}: ${JSON.stringify(ends)} after ${inSeconds(performance.now() - startedAt)}, ${kills.length} kills, ${freezes} freezes\n` +
    `recovery of ${took.length}: p50 ${inSeconds(quantile(took, 0.5))}, p90 ${inSeconds(quantile(took, 0.9))}, p99 ${inSeconds(quantile(took, 0.99))}, most ${inSeconds(took.at(-1) ?? 0)} (load ${loadavg()[0]?.toFixed(1)})\n`,
);
await server.stop();
await rm(folder, { recursive: true, force: true });
process.exit(0);
