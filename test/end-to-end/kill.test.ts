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
    const lines = seen.map(({ createdAt, type, data }) => `${createdAt} ${type} ${JSON.stringify(data).slice(0, 100)}`);
    throw new Error(`step ${step} did not start:\n${lines.join("\n")}`, { cause });
  });
}

interface HeldStep {
  /** Waits until the step's work is done and only the record of that is missing. */
  untilItsEnd(): Promise<void>;
  /** From here on its end is recorded again; the record that waited when the server was killed is not. */
  letGo(): Promise<void>;
}

/** From here on no step of this name can be recorded as completed, so that a kill certainly comes before that. */
async function holdStep(step: StepName): Promise<HeldStep> {
  const store = new pg.Client({ connectionString: world.variables["DATABASE_URL"] });
  await store.connect();
  await store.query("select pg_advisory_lock(1307)");
  await store.query(
    `create function wait_in_step() returns trigger language plpgsql as $$ begin
       perform pg_advisory_xact_lock(1307);
       return new;
     end $$;
     create trigger wait_in_step before insert on event for each row
       when (new.type = 'step.completed' and new.data ->> 'step' = '${step}') execute function wait_in_step()`,
  );
  // The lock is of this database alone; those of other tests are listed too.
  const waiting = `from pg_locks join pg_database on pg_database.oid = database
    where datname = current_database() and locktype = 'advisory' and objid = 1307 and not granted`;
  return {
    untilItsEnd: async () => {
      await waitFor(async () => (await store.query(`select 1 ${waiting}`)).rowCount, `step ${step} comes to its end`);
    },
    letGo: async () => {
      // A statement that was sent is carried out even if its client is gone.
      await waitFor(async () => {
        const { rowCount } = await store.query(`select pg_terminate_backend(pid) ${waiting}`);
        return rowCount === 0;
      }, "nothing waits");
      await store.query("drop trigger wait_in_step on event");
      await store.query("drop function wait_in_step");
      await store.end();
    },
  };
}

/** Whether a kill cut the step off: it began, and the session changed hands before it was recorded as completed. */
function wasCutOff(events: readonly SessionEvent[], step: StepName): boolean {
  let isOpen = false;
  for (const event of events) {
    if (event.type === "step.started" && event.data.step === step) isOpen = true;
    if (event.type === "step.completed" && event.data.step === step) isOpen = false;
    if (isOpen && event.type === "session.status") return true;
  }
  return false;
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

/** A session of an automation that has a gate, which lets it pass. */
async function startGated({ url: serverUrl }: ServerProcess, url: string): Promise<{ readonly id: string }> {
  const automation = {
    name: "Gated",
    macro: "gated",
    instructions: prompt,
    gate: "sleep 1; echo go",
    repositories: [url],
  };
  await callApi(serverUrl, "/automation/create", automation);
  const job = await callApi(serverUrl, "/automation/gated/trigger", {});
  const { sessionId } = await waitFor(async () => {
    const found = await callApi(serverUrl, `/job/${job.id}`);
    return found.sessionId === undefined || found.sessionId === null ? null : found;
  }, "the job has its session");
  return { id: sessionId };
}

/** When in a step the server is killed: as soon as it has begun, or when only the record of its end is missing. */
type Moment = "soon" | "at its end";

async function killIn(step: StepName, moment: Moment, overrides: Record<string, string>): Promise<void> {
  const { url } = await world.forge.createRepository("acme", "survivor", { "README.md": "# Survivor\n" });
  server = await startServerProcess(world, overrides);
  const { id } = await callApi(server.url, "/repository/create", { url });
  await callApi(server.url, `/repository/${id}/environment`, { setupScript: "sleep 1; echo ready > ready" });
  // The server's own database dies with it, and with it the lock on the step.
  const isHeld = overrides["DATABASE_URL"] !== "";
  let held = isHeld && step !== "restore" ? await holdStep(step) : null;
  const session =
    step === "gate"
      ? await startGated(server, url)
      : await server.client.session.create({ prompt, repositories: [url] });
  if (step === "restore") {
    // A checkpoint of the whole turn is stored before this step.
    await untilStep(server, session.id, "commit");
    await server.kill("SIGKILL");
    await outdate(session.id);
    held = await holdStep(step);
    server = await startServerProcess(world, overrides);
  }
  await untilStep(server, session.id, step);
  if (moment === "at its end") await held?.untilItsEnd();
  await server.kill("SIGKILL");
  await held?.letGo();

  server = await startServerProcess(world, overrides);
  const done = await untilOver(server.client, session.id);
  expect(done).toMatchObject({ status: "completed", failure: null });
  expect(await world.forge.pullRequests("acme", "survivor")).toHaveLength(1);
  const { events } = await server.client.session.events(session.id, { limit: 1_000 });
  expect(wasCutOff(events, step), `step ${step} was cut off`).toBe(true);
  const patch = (await server.client.session.diff(session.id)).repositories[0]?.patch ?? "";
  expect(patch).toContain("+first");
  expect(patch).toContain("+second");
}

/** The harness that starts soonest: what is tried here does not depend on whose it is. */
const basic = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" };

/** In the step `agent` the harness is a real one, with its own processes and memory. */
const agentIn = (step: StepName): Record<string, string> => (step === "agent" ? {} : basic);

describe("a server killed with SIGKILL and started again ends with exactly one pull request and all the work", () => {
  test.each(stepNames)("in step %s", (step) => killIn(step, "soon", agentIn(step)));

  test.each(["commit", "push", "pullRequest"] as const)(
    "in step %s, with all of its work done and not recorded",
    (step) => killIn(step, "at its end", basic),
  );

  test("with the embedded database killed along", () => killIn("agent", "soon", { ...basic, DATABASE_URL: "" }));
});

test.each([
  ["push", "at its end"],
  ["pullRequest", "soon"],
  ["pullRequest", "at its end"],
] as const)(
  "killed in step %s (%s), a session on two repositories opens one pull request in each, together",
  async (step, moment) => {
    const names = ["one", "two"];
    const urls = await Promise.all(
      names.map(async (name) => (await world.forge.createRepository("acme", name, { "README.md": "# Part\n" })).url),
    );
    server = await startServerProcess(world, basic);
    const held = await holdStep(step);
    const { id } = await server.client.session.create({
      prompt: "shell for d in one two; do echo b > $d/b.txt; done",
      repositories: urls,
      pullRequestsTogether: true,
    });
    await untilStep(server, id, step);
    if (moment === "at its end") await held.untilItsEnd();
    await server.kill("SIGKILL");
    const opened = await Promise.all(names.map((name) => world.forge.pullRequests("acme", name)));
    expect(step === "push" ? opened.flat() : []).toEqual([]);
    await held.letGo();
    server = await startServerProcess(world, basic);
    expect(await untilOver(server.client, id)).toMatchObject({ status: "completed", failure: null });
    const [first, second] = names;
    const bodyOf = async (name = ""): Promise<string> => {
      const [pullRequest, ...others] = await world.forge.pullRequests("acme", name);
      expect(others).toEqual([]);
      return pullRequest?.body ?? "";
    };
    await waitFor(async () => (await bodyOf(first)).includes(`[acme/${second} #1]`), "the first names the second");
    await waitFor(async () => (await bodyOf(second)).includes(`[acme/${first} #1]`), "the second names the first");
  },
);

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
