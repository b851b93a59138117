import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Client } from "../src/client.ts";
import type { SessionDetail } from "../src/domain/sessions/session.ts";
import { script } from "../test/end-to-end/script.ts";
import { startServerProcess } from "../test/server-process.ts";
import { createWorld, type World } from "../test/world.ts";
import { machine, quantile, table } from "./measure.ts";

/**
 * Many sessions at once through the whole server, a process of its own: the agent in the sandbox, a scripted
 * model; without a repository, and with one each and a pull request on the test forge.
 *
 *   npm run bench:sessions -- --plain 1000 --pull-requests 100 --concurrency 8
 *   npm run bench:sessions -- --plain 0 --pull-requests 30 --concurrency 30 --agent opencode:scripted
 */
const { values: options } = parseArgs({
  options: {
    plain: { type: "string", default: "1000" },
    "pull-requests": { type: "string", default: "100" },
    concurrency: { type: "string", default: "8" },
    sandbox: { type: "string", default: "bubblewrap" },
    agent: { type: "string", default: "basic:scripted" },
  },
});
const creationLanes = 16;

/** What the kernel says of the process, in MiB: now, and at most so far. */
function memoryOf(pid: number): { readonly now: number; readonly most: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mebibytes = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, "mu").exec(status)?.[1]) / 1024;
  return { now: mebibytes("VmRSS"), most: mebibytes("VmHWM") };
}

async function inLanes<T>(inputs: readonly T[], work: (input: T) => Promise<void>): Promise<void> {
  const left = inputs.values();
  const lane = async (): Promise<void> => {
    for (const input of left) await work(input);
  };
  await Promise.all(Array.from({ length: creationLanes }, lane));
}

/** @returns the least memory that was free meanwhile, in MiB */
async function untilAllOver(client: Client): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (;;) {
    least = Math.min(least, process.availableMemory() / 1024 ** 2);
    const pages = await Promise.all(
      ["queued", "running"].map((status) => client.session.list({ limit: 1, status } as { limit: number })),
    );
    if (pages.every((page) => page.sessions.length === 0)) return least;
    await pause(500);
  }
}

async function allSessions(client: Client, ids: ReadonlySet<string>): Promise<SessionDetail[]> {
  const found: SessionDetail[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await client.session.list({ limit: 100, ...(cursor !== undefined && { cursor }) });
    found.push(...page.sessions.filter((session) => ids.has(session.id)));
    if (page.nextCursor === null) return found;
    cursor = page.nextCursor;
  }
}

async function measure(
  client: Client,
  pid: number,
  name: string,
  requests: readonly { readonly prompt: string; readonly repositories?: string[] }[],
): Promise<string[]> {
  const ids = new Set<string>();
  const before = performance.now();
  await inLanes(requests, async (request) => void ids.add((await client.session.create(request)).id));
  const createdMs = performance.now() - before;
  const leastFree = await untilAllOver(client);
  const minutes = (performance.now() - before) / 60_000;
  const sessions = await allSessions(client, ids);
  const failed = sessions.filter(({ status }) => status !== "completed");
  if (failed.length > 0) process.stderr.write(`${failed.length} failed: ${JSON.stringify(failed[0]?.failure)}\n`);
  const pullRequests = sessions.reduce((sum, session) => sum + session.pullRequests.length, 0);
  const since = (session: SessionDetail, start: string | null): number =>
    (new Date(session.finishedAt ?? 0).valueOf() - new Date(start ?? 0).valueOf()) / 1_000;
  const sorted = (of: (session: SessionDetail) => number): number[] => sessions.map(of).toSorted((a, b) => a - b);
  const fromCreation = sorted((session) => since(session, session.createdAt));
  const fromStart = sorted((session) => since(session, session.startedAt));
  const memory = memoryOf(pid);
  return [
    name,
    String(requests.length),
    String(sessions.length - failed.length),
    String(pullRequests),
    (createdMs / 1_000).toFixed(1),
    (requests.length / minutes).toFixed(0),
    ...[fromCreation, fromStart].flatMap((all) => [quantile(all, 0.5).toFixed(1), quantile(all, 0.99).toFixed(1)]),
    memory.now.toFixed(0),
    memory.most.toFixed(0),
    leastFree.toFixed(0),
  ];
}

async function repositories(world: World, count: number): Promise<string[]> {
  const urls: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const made = await world.forge.createRepository("bench", `repository-${number}`, { "README.md": "# Bench\n" });
    urls.push(made.url);
  }
  return urls;
}

const world = await createWorld(script, { embedded: true });
try {
  const server = await startServerProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: options.agent,
    OFFSTAGE_CONCURRENCY: options.concurrency,
    OFFSTAGE_MAX_RUNNING_PER_ORGANIZATION: options.concurrency,
    OFFSTAGE_RATE_LIMIT_PER_MINUTE: "1000000",
    OFFSTAGE_SANDBOX: options.sandbox,
    OFFSTAGE_LEASE_SECONDS: "30",
  });
  try {
    const plain = Array.from({ length: Number(options.plain) }, (_, number) => ({ prompt: `say hello ${number}` }));
    const urls = await repositories(world, Number(options["pull-requests"]));
    const changes = urls.map((url) => ({ prompt: "write hello.txt: hello there", repositories: [url] }));
    const lines: string[][] = [];
    if (plain.length > 0) lines.push(await measure(server.client, server.pid, "no repository", plain));
    if (changes.length > 0) lines.push(await measure(server.client, server.pid, "to the pull request", changes));
    const head = [
      `${options.concurrency} run at once`,
      "sessions",
      "completed",
      "pull requests",
      "created in s",
      "a minute",
      "from creation p50 s",
      "p99 s",
      "from start p50 s",
      "p99 s",
      "server MiB",
      "at most",
      "free at least",
    ];
    process.stdout.write(`${machine()}\n\n${table(head, lines)}`);
  } finally {
    await server.kill("SIGTERM");
  }
} finally {
  await world.close();
}
