import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import { readConfig } from "../../src/config/config.ts";
import { createLogger } from "../../src/observability.ts";
import { startOffstage } from "../../src/server/offstage.ts";
import { createTestDatabase } from "../database.ts";
import { startFleet, type Fleet } from "../fleet.ts";
import type { ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/** Two API nodes and two workers. */
let world: World;
let fleet: Fleet;
const workers: ServerProcess[] = [];

beforeAll(async () => {
  world = await createWorld(script);
  fleet = await startFleet(world, { apis: 2 });
});

afterAll(async () => {
  await fleet?.close();
  await world?.close();
});

const api = (index: number): Client => fleet.api(index);

test("API nodes take sessions while no worker is there, and say so", async () => {
  const { agents } = await api(0).agent.list();
  expect(agents.find(({ id }) => id === "basic")).toMatchObject({ available: false, problem: "no worker is running" });
  const { id } = await api(1).session.create({ prompt: "say taken early" });
  expect((await api(0).session.get(id)).status).toBe("queued");
  for (const name of ["worker-0", "worker-1"]) workers.push(await fleet.startWorker(name));
  expect((await untilOver(api(0), id)).status).toBe("completed");
  const after = await api(1).agent.list();
  expect(after.agents.find(({ id: agent }) => agent === "basic")).toMatchObject({ available: true, isDefault: true });
});

test("any API node takes, shows and follows every session, and any worker carries it out, each once", async () => {
  const { url } = await world.forge.createRepository("acme", "fleet", { "README.md": "# Before\n" });
  const sessions = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      api(index).session.create({ prompt: `write ${index}.txt: number ${index}`, repositories: [url] }),
    ),
  );
  const done = await Promise.all(sessions.map(({ id }, index) => untilOver(api(index + 1), id)));
  expect(done.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => "completed"));
  const pullRequests = await world.forge.pullRequests("acme", "fleet");
  expect(new Set(pullRequests.map(({ head }) => head)).size).toBe(12);
  expect(pullRequests).toHaveLength(12);
});

describe("a worker that dies", () => {
  test("loses its session to another, which ends it with one pull request and all the work", async () => {
    const { url } = await world.forge.createRepository("acme", "orphan", { "README.md": "# Before\n" });
    const { id } = await api(0).session.create({
      prompt: "write a.txt: alpha, then shell sleep 3, then write b.txt: beta",
      repositories: [url],
    });
    for await (const event of api(1).streamEvents(id, {})) {
      if (event.type === "agent.tool" && event.data.title.includes("sleep")) break;
    }
    // Which of them has it is known to none: both are ended, and one is started anew in a folder that knows nothing.
    for (const worker of workers.splice(0)) await worker.kill("SIGKILL");
    workers.push(await fleet.startWorker("worker-2"));
    const session = await untilOver(api(1), id);
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(await world.forge.pullRequests("acme", "orphan")).toHaveLength(1);
    const { patch } = (await api(0).session.diff(id)).repositories[0] ?? { patch: "" };
    expect(patch).toContain("+alpha");
    expect(patch).toContain("+beta");
  });

  test("leaves follow-ups to others, on the same branch and pull request", async () => {
    const { url } = await world.forge.createRepository("acme", "moved", { "README.md": "# Before\n" });
    const { id } = await api(0).session.create({ prompt: "write a.txt: alpha", repositories: [url] });
    await untilOver(api(0), id);
    for (const worker of workers.splice(0)) await worker.kill("SIGKILL");
    workers.push(await fleet.startWorker("worker-3"));
    await api(1).session.message(id, { message: "write b.txt: beta" });
    expect((await untilOver(api(1), id)).status).toBe("completed");
    expect(await world.forge.pullRequests("acme", "moved")).toHaveLength(1);
    const { patch } = (await api(0).session.diff(id)).repositories[0] ?? { patch: "" };
    expect(patch).toContain("+alpha");
    expect(patch).toContain("+beta");
  });
});

test("a worker that is asked to stop ends with 0 and hands over its sessions", async () => {
  const { id } = await api(0).session.create({ prompt: "shell sleep 2, then say handed over" });
  await waitFor(async () => (await api(0).session.get(id)).status === "running", "it runs");
  const [leaving] = workers.splice(0, 1);
  workers.push(await fleet.startWorker("worker-4"));
  await leaving?.kill("SIGTERM");
  expect((await untilOver(api(1), id)).status).toBe("completed");
});

test("a worker that is up first leaves the admin key to the API node, which prints it", async () => {
  const empty = await createTestDatabase();
  const data = await mkdtemp(join(tmpdir(), "offstage-first-"));
  const logger = createLogger("silent");
  const stops: (() => Promise<void>)[] = [];
  try {
    const own = { DATABASE_URL: empty.url, OFFSTAGE_DATA: data, OFFSTAGE_ADMIN_KEY: "" };
    const config = readConfig({ ...world.variables, ...fleet.shared, ...own });
    const worker = await startOffstage(config, logger, "worker");
    stops.push(() => worker.stop());
    expect(worker.first).toBeNull();
    const node = await startOffstage(config, logger, "api");
    stops.push(() => node.stop());
    expect(node.first?.adminKey).toMatch(/^ofs_/u);
    expect(node.first?.loginLink).toContain("/sign-in#");
  } finally {
    for (const stop of stops.reverse()) await stop();
    await empty.close();
    await rm(data, { recursive: true, force: true });
  }
});

test.each([
  ["DATABASE_URL", /^DATABASE_URL: must be set/u],
  ["OFFSTAGE_MASTER_KEY", /^OFFSTAGE_MASTER_KEY: must be set, to the same value on every node/u],
  ["OFFSTAGE_PUBLIC_URL", /^OFFSTAGE_PUBLIC_URL: must be set/u],
])("a node without %s says what it lacks", async (missing, sentence) => {
  const config = readConfig({ ...world.variables, ...fleet.shared, [missing]: "" });
  for (const role of ["api", "worker"] as const) {
    await expect(startOffstage(config, createLogger("silent"), role)).rejects.toThrow(sentence);
  }
});
