import { once } from "node:events";
import { readFileSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { Agent, get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openDatabase, type Database } from "../src/database/database.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { createLogger } from "../src/observability.ts";
import { gatewayPids } from "../test/gateway/gateway-pids.ts";
import { startServerProcess, type ServerProcess } from "../test/server-process.ts";
import { createWorld } from "../test/world.ts";
import { machine, quantile, table } from "./measure.ts";
import { attacks } from "./stall-attacks.ts";

/**
 * What one hostile agent, and four at once, do to everybody else: how long `/healthz` takes meanwhile, how late the lease of
 * another session is renewed, the longest work of its event loop, and how much memory the server and its gateways take
 * beyond what agents that mean well do, beside the bytes of the attack. A real server with its sandbox and a session that means well; the agents are in `stall-agent.ts`, their attacks in `stall-attacks.ts`.
 *
 *   npm run bench:stall -- --only line-,flood- --seconds 5
 */
const { values: options } = parseArgs({
  options: {
    /** Beginnings of the names of attacks. */
    only: { type: "string", default: "" },
    seconds: { type: "string", default: "5" },
    at: { type: "string", default: "1,4" },
  },
});
/** Of less than this, what a turn's thread takes by itself is a multiple. */
const largeMebibytes = 16;
const goals = { p99Ms: 50, worstMs: 200, timesBody: 4 };
/** Shorter than by default, for more renewals. */
const leaseMs = 6_000;
const renewedEveryMs = leaseMs / 3;
const lookMs = 10;

/** Of the server and of its sessions' gateways. */
function residentBytes(server: number): number {
  return [server, ...gatewayPids(server)]
    .map((pid) => Number(/^VmRSS:\s+(\d+) kB/mu.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) * 1024)
    .reduce((sum, bytes) => sum + bytes, 0);
}

/** Empty if its process is gone. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** Sends requests on one connection until it is stopped. @returns how long each took, in ms */
function watchHealth(url: string): () => Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const took: number[] = [];
  let isOver = false;
  const asked = (async () => {
    while (!isOver) {
      const before = performance.now();
      const [response] = (await once(get(`${url}/healthz`, { agent }), "response")) as [NodeJS.ReadableStream];
      await once(response.resume(), "end");
      took.push(performance.now() - before);
      await pause(lookMs);
    }
    agent.destroy();
  })();
  return async () => {
    isOver = true;
    await asked;
    return took;
  };
}

/** By the database's clock: the end of a lease says when it was renewed. @returns how late each was, in ms */
function watchLease(database: Database, sessionId: string): () => Promise<number[]> {
  const renewedAt: number[] = [];
  let isOver = false;
  let lost = false;
  const watched = (async () => {
    while (!isOver) {
      const { rows } = await database.pool.query<{ until: Date | null }>(
        "select lease_until as until from session where id = $1",
        [sessionId],
      );
      const at = rows[0]?.until?.getTime();
      // Lost: later than any goal.
      if (at === undefined) lost = true;
      else if (at !== renewedAt.at(-1)) renewedAt.push(at);
      await pause(renewedEveryMs / 4);
    }
  })();
  return async () => {
    isOver = true;
    await watched;
    if (lost) return [Number.POSITIVE_INFINITY];
    return renewedAt.slice(2).map((at, index) => Math.abs(at - (renewedAt[index + 1] ?? at) - renewedEveryMs));
  };
}

function watchMemory(pid: number): () => number {
  const before = residentBytes(pid);
  let most = before;
  const looking = setInterval(() => (most = Math.max(most, residentBytes(pid))), 50);
  return () => {
    clearInterval(looking);
    return most - before;
  };
}

/** What the server's event loop held others up for since the last time. @returns ms of processor time */
async function longestWork(pid: number): Promise<number> {
  await rm(probeFile, { force: true });
  process.kill(pid, "SIGUSR2");
  for (;;) {
    const written = await readFile(probeFile, "utf8").catch(() => "");
    if (written !== "") return Number(written);
    await pause(20);
  }
}

interface Place {
  readonly server: ServerProcess;
  readonly database: Database;
  readonly repository: string;
  /** The session that means well. */
  readonly other: string;
}

/** What the server and the gateways grow by for so many agents that mean well. */
const wellMebibytes = new Map<number, number>();

const isOver = (status: string): boolean => ["completed", "failed", "cancelled"].includes(status);

/** Runs so many sessions with one attack, and cancels what is not over well after its time. @returns how they ended */
async function attack({ server, repository }: Place, name: string, count: number): Promise<string> {
  const order = { prompt: `attack ${name}`, repositories: [repository], agent: "hostile:m" };
  const ids: string[] = [];
  for (let made = 0; made < count; made += 1) ids.push((await server.client.session.create(order)).id);
  const until = performance.now() + Number(options.seconds) * 1_000 * 4 + 15_000;
  const ends = new Set<string>();
  for (const id of ids) {
    for (;;) {
      const session = await server.client.session.get(id);
      if (isOver(session.status)) {
        ends.add(session.failure?.code ?? session.status);
        break;
      }
      if (performance.now() > until) {
        await server.client.session.cancel(id).catch(() => undefined);
        ends.add("had to be cancelled");
        break;
      }
      await pause(250);
    }
  }
  return [...ends].join(", ");
}

async function measure(place: Place, name: string, count: number): Promise<string[]> {
  await longestWork(place.server.pid);
  const stopHealth = watchHealth(place.server.url);
  const stopLease = watchLease(place.database, place.other);
  const stopMemory = watchMemory(place.server.pid);
  const ended = await (count === 0 ? pause(5_000, "") : attack(place, name, count)).catch(String);
  const grown = stopMemory();
  const workMs = await longestWork(place.server.pid);
  const health = (await stopHealth()).toSorted((a, b) => a - b);
  const lease = (await stopLease()).toSorted((a, b) => a - b);
  const sent = (attacks[name]?.mebibytes ?? 0) * count;
  const mebibytes = grown / 1024 / 1024;
  // Each session has a thread and a process, whatever it does.
  if (name === "well") wellMebibytes.set(count, mebibytes);
  const ofAttack = mebibytes - (wellMebibytes.get(count) ?? 0);
  const [p99, worst, latest] = [quantile(health, 0.99), quantile(health, 1), quantile(lease, 1)];
  const isLarge = count > 0 && sent >= largeMebibytes * count;
  const isSmall = !isLarge || ofAttack <= goals.timesBody * sent;
  const isKept = p99 <= goals.p99Ms && Math.max(worst, latest || 0) <= goals.worstMs && isSmall;
  return [
    name,
    String(count),
    p99.toFixed(0),
    worst.toFixed(0),
    // It was over before the lease was renewed twice.
    lease.length === 0 ? "" : latest.toFixed(0),
    workMs.toFixed(0),
    sent === 0 ? "" : sent.toFixed(0),
    mebibytes.toFixed(0),
    isLarge ? Math.max(0, ofAttack / sent).toFixed(1) : "",
    isKept ? "yes" : "NO",
    ended,
  ];
}

const logger = createLogger("error");
const directory = await mkdtemp(join(tmpdir(), "offstage-stall-"));
// The database runs as an unprivileged user if we are root, and must reach its folder.
await chmod(directory, 0o711);
const probeFile = join(directory, "probe");
const embedded = await startEmbeddedServer({ directory: join(directory, "postgres"), logger });
const world = await createWorld(() => [{ say: "nothing" }], { embedded: true });
const hostile = {
  id: "hostile",
  command: process.execPath,
  arguments: [join(import.meta.dirname, "stall-agent.ts")],
  environment: { TOKEN: "{token}", MODEL_URL: "{compatibleUrl}", SECONDS: options.seconds },
  readOnly: [import.meta.dirname],
  defaultModel: "m",
  state: [],
};
const server = await startServerProcess(world, {
  DATABASE_URL: embedded.url,
  OFFSTAGE_PROVIDERS: JSON.stringify([hostile]),
  OFFSTAGE_DEFAULT_AGENT: "hostile:m",
  NODE_OPTIONS: `--import ${new URL("loop-probe.ts", import.meta.url).href}`,
  OFFSTAGE_BENCH_PROBE: probeFile,
  OFFSTAGE_CONCURRENCY: "6",
  OFFSTAGE_LEASE_SECONDS: String(leaseMs / 1_000),
  OFFSTAGE_LOG_LEVEL: "error",
});
const database = await openDatabase({ url: embedded.url, directory, logger });
try {
  const repository = await world.forge.createRepository("bench", "repository", { "README.md": "# Bench\n" });
  const other = await server.client.session.create({ prompt: "attack nothing", agent: "hostile:m" });
  for await (const event of server.client.streamEvents(other.id, {})) if (event.type === "agent.message") break;
  const place: Place = { server, database, repository: repository.url, other: other.id };
  const rows = [await measure(place, "nothing", 0)];
  const wanted = options.only.split(",");
  for (const name of Object.keys(attacks).filter(
    (found) => found === "well" || wanted.some((beginning) => found.startsWith(beginning)),
  )) {
    for (const count of options.at.split(",").map(Number)) {
      const row = await measure(place, name, count);
      process.stderr.write(`${row.join("  ")}\n`);
      rows.push(row);
    }
  }
  const head = [
    "",
    "agents",
    "p99 ms",
    "worst ms",
    "lease late ms",
    "loop ms",
    "MiB sent",
    "MiB grown",
    "times",
    "kept",
    "ended",
  ];
  process.stdout.write(`${machine()}\n\n${table(head, rows)}`);
} finally {
  await database.close();
  await server.kill("SIGTERM");
  await world.close();
  await embedded.stop();
  await rm(directory, { recursive: true, force: true });
}
