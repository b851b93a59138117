import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { openDatabase, type Database } from "../src/database/database.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { createLogger } from "../src/observability.ts";
import { script } from "../test/end-to-end/script.ts";
import { freePorts } from "../test/fleet.ts";
import { startServerProcess, type ServerProcess } from "../test/server-process.ts";
import { waitFor } from "../test/wait-for.ts";
import { createWorld, untilOver, type World } from "../test/world.ts";
import { machine, quantile, table } from "./measure.ts";

/**
 * From `POST /session/create` to the first request that the model gets, and on to the pull request: with a sandbox that is ready, and
 * with none, beside the same work by hand in a shell script, with the same repository, harness and scripted model. API and worker are
 * processes apart; the ways are interleaved, each on an idle server.
 *
 *   npm run bench:first-request -- --rounds 20 --agents opencode,basic
 */
const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "10" }, agents: { type: "string", default: "opencode,basic" } },
});
const rounds = Number(options.rounds);
const prompt = "write hello.txt: hello there";
const run = promisify(execFile);

/** What one piece of the work took, in ms from its start. */
interface Took {
  readonly firstRequest: number;
  readonly pullRequest: number;
}

/** Does the work once, whose name is this. */
type Way = (name: string) => Promise<unknown>;

/** An API and a worker as processes of their own, with a database of their own. */
interface Deployment {
  readonly api: ServerProcess;
  readonly database: Database;
  stop(): Promise<void>;
}

async function deploy(world: World, name: string, variables: Record<string, string>): Promise<Deployment> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-first-"));
  // The unprivileged user that the database runs as under root must be able to pass.
  await chmod(folder, 0o755);
  const [port = 0] = await freePorts(1);
  const logger = createLogger("error");
  const postgres = await startEmbeddedServer({ directory: join(folder, "postgres"), logger });
  const node = async (command: "api" | "worker"): Promise<ServerProcess> => {
    const data = join(world.data, name, command);
    await mkdir(data, { recursive: true });
    const own = {
      DATABASE_URL: postgres.url,
      OFFSTAGE_PORT: String(port),
      OFFSTAGE_PUBLIC_URL: `http://127.0.0.1:${port}`,
      OFFSTAGE_DATA: data,
      OFFSTAGE_LEASE_SECONDS: "30",
      ...variables,
    };
    return startServerProcess(world, { ...own, OFFSTAGE_MASTER_KEY: masterKey }, command);
  };
  const api = await node("api");
  const worker = await node("worker");
  const database = await openDatabase({ url: postgres.url, directory: "", logger });
  return {
    api,
    database,
    async stop() {
      await worker.kill("SIGTERM");
      await api.kill("SIGTERM");
      await database.close();
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const masterKey = Buffer.alloc(32, "bench").toString("base64");

function session({ api: { client } }: Deployment, repositoryUrl: string, agent: string): Way {
  return async () => {
    const { id } = await client.session.create({ prompt, repositories: [repositoryUrl], agent });
    const done = await untilOver(client, id);
    if (done.pullRequests.length === 0) throw new Error(done.failure?.reason ?? `the session is ${done.status}`);
  };
}

function byHand(world: World, repositoryUrl: string, apiUrl: string): Way {
  const model = "scripted/scripted";
  const provider = {
    npm: "@ai-sdk/openai-compatible",
    options: { baseURL: world.variables["OFFSTAGE_MODEL_BASE_URL"], apiKey: world.variables["OFFSTAGE_MODEL_API_KEY"] },
    models: { scripted: {} },
  };
  const settings = {
    enabled_providers: ["scripted"],
    model,
    small_model: model,
    autoupdate: false,
    share: "disabled",
    permission: { edit: "allow", bash: "allow", webfetch: "allow", external_directory: "allow" },
    provider: { scripted: provider },
  };
  return (name) =>
    run(join(import.meta.dirname, "by-hand.sh"), {
      env: {
        PATH: process.env["PATH"],
        REPOSITORY_URL: repositoryUrl,
        API_URL: apiUrl,
        FORGE_TOKEN: world.forge.token,
        BRANCH: `by-hand-${name}`,
        PROMPT: prompt,
        HARNESS: join(import.meta.dirname, "../node_modules/.bin/opencode"),
        OPENCODE_CONFIG_CONTENT: JSON.stringify(settings),
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      },
    });
}

/** Waits until a sandbox is ready for the next session, so that none is made while something is measured. */
async function untilReady({ database }: Deployment, key: string | null): Promise<string> {
  return waitFor(async () => {
    const { rows } = await database.pool.query<{ key: string }>(
      "select key from warm_sandbox where session_id is null and ($1::text is null or key = $1)",
      [key],
    );
    return rows[0]?.key;
  }, "a sandbox is ready");
}

async function once(world: World, way: Way, name: string): Promise<Took> {
  const { requests } = world.model;
  const before = requests.length;
  const startedAt = performance.now();
  let first = Number.NaN;
  const looking = setInterval(() => {
    if (Number.isNaN(first) && requests.length > before) first = performance.now() - startedAt;
  }, 1);
  try {
    await way(name);
  } finally {
    clearInterval(looking);
  }
  return { firstRequest: first, pullRequest: performance.now() - startedAt };
}

const world = await createWorld(script, { embedded: true });
const cold = await deploy(world, "cold", { OFFSTAGE_WARM: "0" });
try {
  const demo = join(import.meta.dirname, "../test/forge/demo-repository");
  const { url } = await world.forge.createRepository("bench", "repository", demo);
  const hand = byHand(world, url, `${world.forge.apiUrl}/repos/bench/repository/pulls`);
  const lines: string[][] = [];
  for (const agent of options.agents.split(",")) {
    const named = `${agent}:scripted`;
    // One for each agent, so that what is ready is its own.
    const warm = await deploy(world, `warm-${agent}`, { OFFSTAGE_WARM: "1" });
    const ways: Record<string, Way> = {
      ...(agent === "opencode" && { "by hand": hand }),
      warm: session(warm, url, named),
      cold: session(cold, url, named),
    };
    let key: string | null = null;
    const took: Record<string, Took[]> = {};
    // The first round is not counted: it makes the mirrors, and asks for the sandbox.
    for (let round = 0; round <= rounds; round += 1) {
      for (const [way, work] of Object.entries(ways)) {
        const one = await once(world, work, `${agent}-${round}`);
        if (round > 0) (took[way] ??= []).push(one);
        if (way === "warm") key = await untilReady(warm, key);
      }
    }
    await warm.stop();
    const bare = medianOf(took["by hand"] ?? [], "firstRequest");
    const bareWhole = medianOf(took["by hand"] ?? [], "pullRequest");
    for (const [way, all] of Object.entries(took)) {
      const [first, whole] = [medianOf(all, "firstRequest"), medianOf(all, "pullRequest")];
      const share = (one: number, other: number): string => (Number.isNaN(other) ? "" : (one / other).toFixed(2));
      lines.push([
        agent,
        way,
        ...[first, p99Of(all, "firstRequest")].map(inSeconds),
        share(first, bare),
        ...[whole, p99Of(all, "pullRequest")].map(inSeconds),
        share(whole, bareWhole),
      ]);
    }
  }
  const head = [
    "agent",
    "way",
    "first request p50 s",
    "p99 s",
    "of by hand",
    "pull request p50 s",
    "p99 s",
    "of by hand",
  ];
  process.stdout.write(`${machine()}, ${rounds} rounds\n\n${table(head, lines)}`);
} finally {
  await cold.stop();
  await world.close();
}

function sortedOf(all: readonly Took[], which: keyof Took): number[] {
  return all.map((one) => one[which]).toSorted((a, b) => a - b);
}

function medianOf(all: readonly Took[], which: keyof Took): number {
  return quantile(sortedOf(all, which), 0.5);
}

function p99Of(all: readonly Took[], which: keyof Took): number {
  return quantile(sortedOf(all, which), 0.99);
}

function inSeconds(ms: number): string {
  return (ms / 1_000).toFixed(2);
}
