import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { machine, quantile, table } from "./measure.ts";

/**
 * What a user waits for when the service starts as a process of its own, until `/readyz` answers 200: on a new data folder,
 * and again after it was stopped. And the memory of the idle server, with its own processes and without
 * PostgreSQL's. Each program named is measured in turn.
 *
 *   npm run bench:start -- --program src/main.ts --program bin/offstage.cjs
 */
const { values: options } = parseArgs({
  options: {
    /** A file that Node starts: the source, or the built program. */
    program: { type: "string", multiple: true, default: ["src/main.ts"] },
    rounds: { type: "string", default: "5" },
    /** How long it is left idle before its memory is read; 0: it is not. */
    "idle-seconds": { type: "string", default: "20" },
  },
});
const rounds = Number(options.rounds);
const idleMs = Number(options["idle-seconds"]) * 1_000;

interface Started {
  readonly child: ChildProcess;
  readonly ms: number;
}

interface Times {
  readonly first: number[];
  readonly again: number[];
  readonly residentMiB: number[];
  readonly ownMiB: number[];
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function start(program: string, data: string): Promise<Started> {
  const port = await freePort();
  const before = performance.now();
  const child = spawn(process.execPath, [program, "start", "--data", data, "--port", String(port)], {
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], OFFSTAGE_LOG_LEVEL: "error" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
    await answer?.text();
    if (answer?.status === 200) return { child, ms: performance.now() - before };
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
    await pause(5);
  }
}

async function end({ child }: Started, signal: NodeJS.Signals): Promise<void> {
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

/** Resident memory, in MiB, of a process and of all below it that are not PostgreSQL; of the processes alone, what they share counts once. */
async function memoryOf(pid: number): Promise<{ readonly all: number; readonly own: number }> {
  const children = new Map<number, number[]>();
  for (const entry of (await readdir("/proc")).map(Number).filter((id) => id > 0)) {
    const stat = await readFile(`/proc/${entry}/stat`, "utf8").catch(() => "");
    const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    children.set(Number(parent), [...(children.get(Number(parent)) ?? []), entry]);
  }
  const residentOf = async (id: number): Promise<number> => {
    const status = await readFile(`/proc/${id}/status`, "utf8").catch(() => "");
    if (/^Name:\s+postgres$/mu.test(status)) return 0;
    const below = await Promise.all((children.get(id) ?? []).map(residentOf));
    return Number(/^VmRSS:\s+(\d+)/mu.exec(status)?.[1] ?? 0) / 1_024 + below.reduce((sum, each) => sum + each, 0);
  };
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return { all: await residentOf(pid), own: Number(/^VmRSS:\s+(\d+)/mu.exec(status)?.[1] ?? 0) / 1_024 };
}

async function measure(program: string, times: Times): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-start-"));
  // The unprivileged user that the database runs as under root must be able to pass.
  await chmod(folder, 0o755);
  const data = join(folder, "data");
  try {
    const first = await start(program, data);
    times.first.push(first.ms);
    await end(first, "SIGTERM");
    const again = await start(program, data);
    times.again.push(again.ms);
    if (idleMs > 0) {
      await pause(idleMs);
      const { all, own } = await memoryOf(again.child.pid ?? 0);
      times.residentMiB.push(all);
      times.ownMiB.push(own);
    }
    await end(again, "SIGTERM");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const programs = new Map(
  options.program.map((program): [string, Times] => [program, { first: [], again: [], residentMiB: [], ownMiB: [] }]),
);
for (let round = 0; round < rounds; round += 1) {
  for (const [program, times] of programs) await measure(program, times);
}
const median = (values: readonly number[]): string =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  ).toFixed(0);
const lines = [...programs].map(([program, times]) => [program, ...Object.values(times).map(median)]);
const head = ["program", "first ms", "again ms", "idle MiB", "of its main process"];
process.stdout.write(`${machine()}\nmedians of ${rounds}\n\n${table(head, lines)}`);
