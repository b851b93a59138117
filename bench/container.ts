import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { createContainerSandbox } from "../src/sandboxes/container/container.ts";
import type { SandboxRequest } from "../src/sandboxes/sandbox.ts";
import { startEngine } from "../test/sandboxes/docker.ts";
import { quantile, table } from "./measure.ts";

/**
 * What a start of a container costs: until its command's first word, and until it is removed. The engine is the test suite's
 * own, or that of OFFSTAGE_TEST_ENGINE. Needs root.
 *
 *   npm run bench:container -- --starts 50
 */
const { values: options } = parseArgs({ options: { starts: { type: "string", default: "50" } } });
const engine = await startEngine();
if (typeof engine === "string") throw new Error(engine);
const folder = await mkdtemp(join(tmpdir(), "offstage-bench-"));
try {
  const settings = { socket: engine.socket, image: engine.image, runtime: null };
  const sandbox = createContainerSandbox(settings, {
    serverId: () => Promise.resolve("bench"),
    makersFolder: join(folder, "alive"),
  });
  const [workspace, home] = [join(folder, "workspace"), join(folder, "home")];
  await sandbox.makeWritable(workspace);
  await sandbox.makeWritable(home);
  const request = (): SandboxRequest => ({
    command: "echo",
    arguments: ["up"],
    environment: {},
    workspace,
    home,
    readOnly: [dirname(process.execPath)],
    limits: { memoryBytes: 512 * 1024 ** 2, processes: 100, diskBytes: 2 ** 30, cpus: 1 },
    signal: AbortSignal.timeout(60_000),
  });
  const [first, whole]: [number[], number[]] = [[], []];
  for (let count = -3; count < Number(options.starts); count += 1) {
    const startedAt = performance.now();
    const child = sandbox.start(request());
    child.stdin.end();
    child.stderr.pipe(process.stderr);
    let firstMs = Number.NaN;
    child.stdout.once("data", () => (firstMs = performance.now() - startedAt));
    const { code } = await child.exited;
    if (code !== 0) throw new Error(`exit ${code}`);
    // The first are slower: the engine is asked what it is.
    if (count < 0) continue;
    first.push(firstMs);
    whole.push(performance.now() - startedAt);
  }
  const row = (name: string, all: number[]): string[] => {
    const sorted = all.toSorted((a, b) => a - b);
    return [name, ...[0.5, 0.9, 0.99].map((share) => quantile(sorted, share).toFixed(0))];
  };
  process.stdout.write(
    table(["ms", "p50", "p90", "p99"], [row("until the first word", first), row("until it is removed", whole)]),
  );
} finally {
  await engine.close();
  await rm(folder, { recursive: true, force: true });
}
