import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import type { Client } from "../src/client.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { createLogger } from "../src/observability.ts";
import { startFleet } from "../test/fleet.ts";
import { obey } from "../test/end-to-end/script.ts";
import { waitFor } from "../test/wait-for.ts";
import { createWorld, untilOver } from "../test/world.ts";
import { machine, quantile, table } from "./measure.ts";

/**
 * Sessions of the basic agent on a large repository whose mirror is warm: with workspaces as overlays, and with each clone checked out
 * as before, each with a sandbox that is ready, beside `git clone` of a repository on the same disk. The ways take turns; API and worker
 * are processes apart. Needs root.
 *
 *   npm run bench:workspace -- --files 30000 --rounds 7
 */
const { values: options } = parseArgs({
  options: {
    files: { type: "string", default: "30000" },
    /** Bytes of a file, on average. */
    bytes: { type: "string", default: "8000" },
    rounds: { type: "string", default: "7" },
    /** Sessions of which the disk is summed. */
    kept: { type: "string", default: "10" },
    ways: { type: "string", default: "overlay,checkout" },
  },
});
const fileCount = Number(options.files);
const averageBytes = Number(options.bytes);
const rounds = Number(options.rounds);
const kept = Number(options.kept);
const filesInFolder = 12;

/** Writes the repository by git-fast-import(1): one commit, three levels of folders. */
async function seed(path: string): Promise<void> {
  const git = spawn("git", ["-C", path, "fast-import", "--quiet", "--force"], {
    stdio: ["pipe", "inherit", "inherit"],
  });
  const write = async (content: string): Promise<void> => {
    if (!git.stdin.write(content)) await once(git.stdin, "drain");
  };
  await write("commit refs/heads/main\ncommitter A <a@example.com> 1700000000 +0000\ndata 4\nall\n\n");
  for (let index = 0; index < fileCount; index += 1) {
    const folder = Math.floor(index / filesInFolder);
    const line = `line of the file ${index} with some words\n`;
    // From a fifth of the average to nearly twice of it.
    const length = averageBytes * (0.2 + (1.6 * ((index * 7_919) % 1_000)) / 1_000);
    const text = line.repeat(Math.max(1, Math.round(length / line.length)));
    await write(`M 100644 inline src/a${folder % 20}/b${Math.floor(folder / 20) % 20}/c${folder}/file${index}.ts\n`);
    await write(`data ${text.length}\n${text}\n`);
  }
  git.stdin.end();
  const [code] = (await once(git, "exit")) as [number | null];
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
}

/** Bytes below a folder on its own file system. */
function bytesOf(folder: string): number {
  return Number(execFileSync("du", ["-sxB1", folder]).toString().split("\t")[0]);
}

/** What one session took. */
interface Taken {
  /** From the request to the model's first request, in seconds. */
  readonly toModel: number;
  readonly firstStatus: number;
  readonly secondStatus: number;
  /** Bytes of its folders when it was over. */
  readonly bytes: number;
}

/** One way of making workspaces: its own database, API, worker, forge and model. */
interface Side {
  session(): Promise<Taken>;
  /** What a checkpoint took that had something to store, on average since the last call, in seconds. */
  checkpoints(): Promise<{ readonly count: number; readonly seconds: number }>;
  /** Path of the repository on the forge's disk. */
  readonly remote: string;
  close(): Promise<void>;
}

/** Two statuses in a fresh workspace, then three changes of one file each, with a checkpoint after each. */
const commands = [
  `shell n() { date +%s%N; }; a=$(n); git status > /dev/null; b=$(n); git status > /dev/null; echo $a $b $(n) > ~/statuses`,
  ...[1, 2, 3].map((number) => `shell echo ${number} >> src/a1/b0/c1/file12.ts; sleep 1`),
].join(", then ");

async function startSide(way: string): Promise<Side> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-workspace-"));
  // The unprivileged user that the database runs as under root must be able to pass.
  await chmod(folder, 0o755);
  const logger = createLogger("error");
  const database = await startEmbeddedServer({ directory: join(folder, "postgres"), logger });
  let firstRequest: (at: number) => void = () => undefined;
  const world = await createWorld(
    (message) => {
      firstRequest(performance.now());
      return obey(message);
    },
    { embedded: true },
  );
  const variables = {
    DATABASE_URL: database.url,
    OFFSTAGE_WORKSPACES: way,
    OFFSTAGE_CHECKPOINT_MB: "128",
    OFFSTAGE_WARM: "1",
  };
  const fleet = await startFleet({ ...world, variables: { ...world.variables, ...variables } }, { apis: 1 });
  const port = String(20_000 + (process.pid % 10_000) + (way === "overlay" ? 0 : 1));
  await fleet.startWorker("worker", { OFFSTAGE_METRICS_PORT: port });
  const { url } = await world.forge.createRepository("bench", "large", {});
  const remote = world.forge.pathOf("bench", "large");
  await seed(remote);
  const client: Client = fleet.api(0);
  const store = new pg.Client({ connectionString: database.url });
  await store.connect();
  const isReady = async (): Promise<boolean> =>
    (await store.query("select from warm_sandbox where session_id is null")).rowCount === 1;
  let before = { count: 0, seconds: 0 };
  return {
    remote,
    async session() {
      const asked = new Promise<number>((resolve) => (firstRequest = resolve));
      const startedAt = performance.now();
      const { id } = await client.session.create({ prompt: commands, agent: "basic:scripted", repositories: [url] });
      const toModel = ((await asked) - startedAt) / 1_000;
      const session = await untilOver(client, id);
      // So that none is made while the next one is measured.
      await waitFor(isReady, "a sandbox is ready for the next session");
      if (session.status !== "completed") throw new Error(`a session ended as ${session.status}`);
      const place = join(world.data, "worker/sessions", id);
      const [first = 0, second = 0, third = 0] = (await readFile(join(place, "home/statuses"), "utf8"))
        .split(" ")
        .map((ns) => Number(ns) / 1e9);
      return { toModel, firstStatus: second - first, secondStatus: third - second, bytes: bytesOf(place) };
    },
    async checkpoints() {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const numberOf = (name: string): number =>
        Number(
          new RegExp(`^offstage_checkpoint_duration_seconds_${name}\\{outcome="taken"\\} (\\S+)$`, "mu").exec(
            text,
          )?.[1],
        );
      const now = { count: numberOf("count"), seconds: numberOf("sum") };
      const since = {
        count: now.count - before.count,
        seconds: (now.seconds - before.seconds) / (now.count - before.count),
      };
      before = now;
      return since;
    },
    async close() {
      await store.end();
      await fleet.close();
      await database.stop();
      await world.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const median = (all: readonly number[]): number =>
  quantile(
    all.toSorted((a, b) => a - b),
    0.5,
  );
const seconds = (all: readonly number[]): string => median(all).toFixed(3);

const ways = options.ways.split(",");
const sides: Record<string, Side> = {};
const place = await mkdtemp(join(tmpdir(), "offstage-clones-"));
try {
  for (const way of ways) sides[way] = await startSide(way);
  const taken: Record<string, Taken[]> = Object.fromEntries(ways.map((way) => [way, []]));
  const checkpoints: Record<string, number[]> = Object.fromEntries(ways.map((way) => [way, []]));
  const cloned: number[] = [];
  // The first round fetches the mirrors, and with overlays makes the shared checkout.
  for (let round = -1; round < rounds; round += 1) {
    await mkdir(place, { recursive: true });
    const startedAt = performance.now();
    execFileSync("git", ["clone", "--quiet", Object.values(sides)[0]?.remote ?? "", join(place, "clone")]);
    if (round >= 0) cloned.push((performance.now() - startedAt) / 1_000);
    await rm(place, { recursive: true });
    for (const [way, side] of Object.entries(sides)) {
      const one = await side.session();
      const { seconds: each } = await side.checkpoints();
      if (round < 0) continue;
      taken[way]?.push(one);
      checkpoints[way]?.push(each);
    }
  }
  const rows = ways.map((way) => {
    const all = taken[way] ?? [];
    const toModel = all.map((one) => one.toModel);
    return [
      way,
      seconds(toModel),
      (median(toModel) / median(cloned)).toFixed(2),
      seconds(all.map((one) => one.firstStatus)),
      seconds(all.map((one) => one.secondStatus)),
      median(all.map((one) => one.firstStatus / one.secondStatus)).toFixed(2),
      seconds(checkpoints[way] ?? []),
      ((median(all.map(({ bytes }) => bytes)) * kept) / 1e6).toFixed(0),
    ];
  });
  const titles = [
    "",
    "to the model s",
    "of git clone",
    "status s",
    "again s",
    "ratio",
    "checkpoint s",
    `${kept} sessions MB`,
  ];
  process.stdout.write(
    `${machine()}\n${fileCount} files, ${Math.round(bytesOf(sides[ways[0] ?? ""]?.remote ?? "") / 1e6)} MB packed; git clone ${seconds(cloned)} s; medians of ${rounds}\n\n${table(titles, rows)}`,
  );
} finally {
  for (const side of Object.values(sides)) await side.close();
  await rm(place, { recursive: true, force: true });
}
