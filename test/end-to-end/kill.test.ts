import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import { stepNames, type StepName } from "../../src/domain/sessions/step.ts";
import { callApi } from "../call.ts";
import { startServerProcess, type ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let server: ServerProcess | undefined;

beforeEach(async () => {
  world = await createWorld(script);
});

afterEach(async () => {
  await server?.kill("SIGKILL");
  await world.close();
});

/** Waits for the step to have started, in the store, as a watcher of the page would see it. */
async function untilStep(current: ServerProcess, id: string, step: StepName): Promise<void> {
  const seen: SessionEvent[] = [];
  await waitFor(async () => {
    const after = String(seen.at(-1)?.seq ?? 0);
    seen.push(...(await current.client.session.events(id, { after, limit: 100 })).events);
    return seen.some((event) => event.type === "step.started" && event.data.step === step);
  }, `step ${step} starts`).catch((cause: unknown) => {
    const told = seen.map(({ createdAt, type, data }) => `${createdAt} ${type} ${JSON.stringify(data).slice(0, 100)}`);
    throw new Error(`step ${step} did not start:\n${told.join("\n")}`, { cause });
  });
}

const prompt = "write one.txt: first, then write two.txt: second";

/** The folders here count as outdated from now on, as if another worker had had the session since. */
async function outdate(sessionId: string): Promise<void> {
  const store = new pg.Client({ connectionString: world.variables["DATABASE_URL"] });
  await store.connect();
  const updated = "update session set workspace_worker = 'another' where id = $1 and workspace_worker is not null";
  const { rowCount } = await store.query(updated, [sessionId]);
  await store.end();
  expect(rowCount).toBe(1);
}

async function killIn(step: StepName, overrides: Record<string, string> = {}): Promise<void> {
  const { url } = await world.forge.createRepository("acme", "survivor", { "README.md": "# Survivor\n" });
  server = await startServerProcess(world, overrides);
  const { id } = await callApi(server.url, "/repository/create", { url });
  await callApi(server.url, `/repository/${id}/environment`, { setupScript: "sleep 1; echo ready > ready" });
  const session = await server.client.session.create({ prompt, repositories: [url] });
  if (step === "restore") {
    // A checkpoint of the whole turn is stored before this step.
    await untilStep(server, session.id, "commit");
    await server.kill("SIGKILL");
    await outdate(session.id);
    server = await startServerProcess(world, overrides);
  }
  await untilStep(server, session.id, step);
  await server.kill("SIGKILL");

  server = await startServerProcess(world, overrides);
  const done = await untilOver(server.client, session.id);
  expect(done).toMatchObject({ status: "completed", failure: null });
  expect(await world.forge.pullRequests("acme", "survivor")).toHaveLength(1);
  const patch = (await server.client.session.diff(session.id)).repositories[0]?.patch ?? "";
  expect(patch).toContain("+first");
  expect(patch).toContain("+second");
}

/** The harness that starts soonest: what is tried here does not depend on whose it is. */
const basic = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" };

/** Where the harness is at work it is another's, with processes and a memory of its own. */
const agentIn = (step: StepName): Record<string, string> => (step === "agent" ? {} : basic);

describe("a server killed with SIGKILL and started again ends with exactly one pull request and all the work", () => {
  test.each(stepNames)("in step %s", (step) => killIn(step, agentIn(step)));

  test("with the embedded database killed along", () => killIn("agent", { ...basic, DATABASE_URL: "" }));
});

test("SIGTERM hands a running session back, and the next start goes on with it", async () => {
  const { url } = await world.forge.createRepository("acme", "drained", { "README.md": "# Drained\n" });
  server = await startServerProcess(world, basic);
  const session = await server.client.session.create({ prompt, repositories: [url] });
  await untilStep(server, session.id, "agent");
  await server.kill("SIGTERM");
  server = await startServerProcess(world, basic);
  expect((await untilOver(server.client, session.id)).status).toBe("completed");
  expect(await world.forge.pullRequests("acme", "drained")).toHaveLength(1);
});
