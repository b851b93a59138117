import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import { familyOf } from "../../src/sandboxes/process/process-table.ts";
import { callApi } from "../call.ts";
import { startFleet, type Fleet } from "../fleet.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { readScrape } from "../observability/scrape.ts";
import { startServerProcess, type ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/** Sessions that take a sandbox which was ready before them, beside what can go wrong with it. */
let world: World;
let store: pg.Client;
let server: ServerProcess | undefined;
let fleet: Fleet | undefined;
let repository: string;

const settings = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", OFFSTAGE_WARM: "1", OFFSTAGE_LEASE_SECONDS: "10" };

beforeEach(async () => {
  world = await createWorld(script);
  store = new pg.Client({ connectionString: world.variables["DATABASE_URL"] });
  await store.connect();
  repository = (await world.forge.createRepository("acme", "warm", { "README.md": "# Warm\n" })).url;
});

afterEach(async () => {
  await store?.end();
  await server?.kill("SIGKILL");
  server = undefined;
  await fleet?.close();
  fleet = undefined;
  await world?.close();
});

async function start(overrides: Record<string, string> = {}): Promise<ServerProcess> {
  server = await startServerProcess(world, { ...settings, ...overrides });
  return server;
}

/** Runs a session to its end. */
async function run({ client }: ServerProcess, prompt: string, more: { readonly agent?: string } = {}) {
  const { id } = await client.session.create({ prompt, repositories: [repository], ...more });
  const session = await untilOver(client, id);
  const { events } = await client.session.events(id, { limit: 1_000 });
  return { id, session, events };
}

/** What the session's commands printed. */
function outputOf(events: readonly SessionEvent[]): string {
  return events
    .flatMap((event) => (event.type === "agent.tool" && event.data.status === "completed" ? event.data.content : []))
    .map((content) => (content.type === "text" ? content.text : ""))
    .join("\n");
}

/** Ids of the sandboxes that wait for a session. */
async function waiting(): Promise<string[]> {
  const { rows } = await store.query<{ id: string }>("select id from warm_sandbox where session_id is null");
  return rows.map(({ id }) => id);
}

/** Waits until a sandbox waits for a session, which a first session has asked for. */
async function untilReady(current: ServerProcess, prompt = "say ready?"): Promise<string> {
  await run(current, prompt);
  return untilOneWaits().catch((cause: unknown) => {
    throw new Error(`no sandbox became ready: ${current.output()}`, { cause });
  });
}

/** It is made with low priority: if other sandboxes need the processor, it gets a quarter of their share. */
function untilOneWaits(): Promise<string> {
  return waitFor(async () => (await waiting())[0], "a sandbox is ready", 2 * hangTimeoutMs);
}

async function startsOf(current: ServerProcess): Promise<Record<string, number>> {
  const answer = await fetch(`${current.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } });
  const { samples } = readScrape(await answer.text());
  return Object.fromEntries(
    samples
      .filter(({ name, value }) => name === "offstage_warm_starts_total" && value > 0)
      .map(({ labels, value }) => [labels["outcome"] ?? "", value]),
  );
}

/** Ids of the harnesses that run below a server. */
function harnessesOf({ pid }: ServerProcess): number[] {
  return familyOf(pid).filter((one) => {
    try {
      const [, entry] = readFileSync(`/proc/${one}/cmdline`, "utf8").split("\0");
      return entry?.endsWith("agents/basic/main.ts") === true;
    } catch {
      return false;
    }
  });
}

describe.skipIf(process.getuid?.() !== 0)("a session whose sandbox was ready", () => {
  test("does its work in it, is answered in it alone, and goes on with its conversation", async () => {
    const current = await start();
    const id = await untilReady(current);
    const asked = world.model.requests.length;
    const { session, events } = await run(
      current,
      "write a.txt: alpha, then shell pwd; echo home $HOME; id -u; git log --oneline | wc -l",
    );
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(session.pullRequests).toHaveLength(1);
    expect(await startsOf(current)).toEqual({ none: 1, warm: 1 });
    // Its home is where the harness was started, its clone where the session's are.
    expect(outputOf(events)).toContain(`home ${join(world.data, "early", id, "home")}`);
    expect(outputOf(events)).toContain(join(world.data, "sessions", session.id, "workspace", "warm"));
    // To warm it up, no model was asked, and nothing of that is the session's.
    const conversations = world.model.requests.slice(asked).map(({ conversation }) => conversation.everything);
    expect(conversations.join("\n")).not.toContain("Say that you are ready");
    expect(events.filter(({ type }) => type === "agent.started")).toHaveLength(1);
    expect(JSON.stringify(events)).not.toContain("Ready.");
    const { rows } = await store.query("select id from warm_sandbox where id = $1", [id]);
    expect(rows).toEqual([]);

    await current.client.session.message(session.id, { message: "shell cat a.txt; echo; echo home $HOME" });
    const followed = await untilOver(current.client, session.id);
    expect(followed.status).toBe("completed");
    const later = (await current.client.session.events(session.id, { limit: 1_000 })).events.slice(events.length);
    expect(later.find(({ type }) => type === "agent.started")).toMatchObject({ data: { resumed: true } });
    expect(outputOf(later)).toContain(`alpha\nhome ${join(world.data, "early", id, "home")}`);
    expect(world.model.requests.at(-1)?.conversation.everything).toContain("write a.txt: alpha");
  });

  test("is one alone, of as many as come at once, and each has a user of its own", async () => {
    const current = await start();
    await untilReady(current);
    const all = await Promise.all(
      ["one", "two", "three"].map((name) => run(current, `write ${name}.txt: ${name}, then shell id -u; ls`)),
    );
    for (const { session } of all) expect(session).toMatchObject({ status: "completed", failure: null });
    expect(await startsOf(current)).toEqual({ none: 3, warm: 1 });
    const users = all.map(({ events }) => /^(\d{5,})$/mu.exec(outputOf(events))?.[1]);
    expect(new Set(users).size).toBe(3);
    for (const [index, { events }] of all.entries()) {
      const others = ["one.txt", "two.txt", "three.txt"].toSpliced(index, 1);
      for (const other of others) expect(outputOf(events)).not.toContain(other);
    }
  });

  test("reaches no more of the network, of git and of the server's files than another session's", async () => {
    const host = createServer((_, answer) => answer.end("ESCAPED"));
    await new Promise<void>((resolve) => host.listen(0, "0.0.0.0", resolve));
    try {
      const { port } = host.address() as AddressInfo;
      const current = await start();
      await untilReady(current);
      const curl = (more: string): string => `curl -s -m 5 ${more} http://127.0.0.1:${port}/`;
      const attempts = [
        curl("--noproxy '*'"),
        curl('--noproxy "" -x "$HTTP_PROXY"'),
        "mirror=$(cat .git/objects/info/alternates)",
        'git -C "$mirror/.." config core.fsmonitor evil 2> /dev/null && echo ESCAPED',
        'touch "$mirror/mark" 2> /dev/null && echo ESCAPED',
        `cat ${world.data}/master.key 2> /dev/null && echo ESCAPED`,
        `echo "sockets $(ls ${world.data}/run | wc -l)"`,
        `echo "sessions $(ls ${world.data}/sessions | wc -l)"`,
        "echo looked",
      ];
      const look = `shell ${attempts.join("; ")}`;
      const warm = await run(current, look);
      const cold = await run(current, look);
      expect(await startsOf(current)).toEqual({ none: 2, warm: 1 });
      for (const { session, events } of [warm, cold]) {
        expect(session).toMatchObject({ status: "completed", failure: null });
        expect(outputOf(events)).toMatch(/sockets 1\nsessions 1\nlooked/u);
        expect(outputOf(events)).not.toContain("ESCAPED");
      }
      // Outside each gets through.
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("ESCAPED");
      await untilReady(current);
      expect((await readdir(join(world.data, "run"))).length).toBeGreaterThan(0);
      expect((await readdir(join(world.data, "sessions"))).length).toBeGreaterThan(2);
    } finally {
      host.close();
    }
  });

  test("is none if it would start something else, and its harness starts with it", async () => {
    const current = await start();
    const first = await untilReady(current);
    const { session: other } = await run(current, "say hi", { agent: "basic:another" });
    expect(other.status).toBe("completed");
    expect(await startsOf(current)).toEqual({ none: 2 });
    const { id } = await callApi(current.url, "/repository/create", { url: repository });
    await callApi(current.url, `/repository/${id}/environment`, { variables: { OWN: "the repository's" } });
    const { session, events } = await run(current, "shell echo $OWN");
    expect(session.status).toBe("completed");
    expect(outputOf(events)).toContain("the repository's");
    expect(await startsOf(current)).toEqual({ none: 2, different: 1 });
    // No session took it.
    const { rows } = await store.query("select session_id from warm_sandbox where session_id is not null");
    expect(rows).toEqual([]);
    expect(first).toBeDefined();
  });

  test("is of another agent once that alone was asked for some times in a row, and not before", async () => {
    const current = await start();
    const first = await untilReady(current);
    const other = { agent: "basic:another" };
    for (const _ of [1, 2]) await run(current, "say hi", other);
    expect(await waiting()).toEqual([first]);
    await run(current, "say hi", other);
    await waitFor(async () => (await waiting()).some((id) => id !== first), "another is ready", 2 * hangTimeoutMs);
    expect(await startsOf(current)).toEqual({ none: 4 });
    await run(current, "say hi", other);
    expect(await startsOf(current)).toEqual({ none: 4, warm: 1 });
  });

  test("starts another harness if what a file of the repository says of it was not known, with what it says", async () => {
    const devcontainer = JSON.stringify({ containerEnv: { FROM_FILE: "a file's" } });
    repository = (
      await world.forge.createRepository("acme", "contained", {
        "README.md": "# Contained\n",
        ".devcontainer/devcontainer.json": devcontainer,
      })
    ).url;
    const current = await start();
    await untilReady(current);
    const { session, events } = await run(current, "shell echo $FROM_FILE");
    expect(session.status).toBe("completed");
    expect(outputOf(events)).toContain("a file's");
    expect(await startsOf(current)).toEqual({ none: 1, different: 1 });
  });

  test("starts another harness, and says nothing of it, if that one dies before its turn", async () => {
    const current = await start();
    await untilReady(current);
    const { id } = await callApi(current.url, "/repository/create", { url: repository });
    await callApi(current.url, `/repository/${id}/environment`, {
      setupScript: "until [ -e go ]; do sleep 0.05; done",
    });
    const created = await current.client.session.create({ prompt: "write a.txt: alpha", repositories: [repository] });
    await waitFor(async () => {
      const { events } = await current.client.session.events(created.id, { limit: 100 });
      return events.some((event) => event.type === "step.started" && event.data.step === "setup");
    }, "the setup runs");
    const harness = await waitFor(() => harnessesOf(current)[0], "its harness runs");
    process.kill(harness, "SIGKILL");
    const setups = join(world.data, "sessions", created.id, "setups");
    const clone = await waitFor(async () => {
      const names = await readdir(setups).catch(() => []);
      return names
        .map((name) => join(setups, name, "workspace/warm"))
        .find((path) => existsSync(join(path, "README.md")));
    }, "the setup has its clone");
    await writeFile(join(clone, "go"), "");
    const session = await untilOver(current.client, created.id);
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(session.pullRequests).toHaveLength(1);
    expect(await startsOf(current)).toEqual({ none: 1, failed: 1 });
    const { events } = await current.client.session.events(created.id, { limit: 1_000 });
    expect(events.filter(({ type }) => type === "agent.started")).toHaveLength(1);
    expect(events.filter(({ type }) => type === "notice")).toEqual([]);
  });

  test("goes on elsewhere after its worker died, with its conversation and its work", async () => {
    fleet = await startFleet(world, { apis: 1, variables: settings });
    const client = fleet.api(0);
    const one = await fleet.startWorker("one");
    const first = await client.session.create({ prompt: "say ready?", repositories: [repository] });
    await untilOver(client, first.id);
    await untilOneWaits();
    const created = await client.session.create({ prompt: "write a.txt: alpha", repositories: [repository] });
    expect(await untilOver(client, created.id)).toMatchObject({ status: "completed" });
    const { rows } = await store.query<{ id: string }>("select id from worker_node");
    expect(rows).toHaveLength(1);
    await one.kill("SIGKILL");
    await fleet.startWorker("two");
    await client.session.message(created.id, { message: "shell cat a.txt; echo; ls -d $HOME" });
    expect(await untilOver(client, created.id)).toMatchObject({ status: "completed" });
    const { events } = await client.session.events(created.id, { limit: 1_000 });
    const started = events.filter((event) => event.type === "agent.started");
    expect(started.map(({ data }) => data.resumed)).toEqual([false, true]);
    expect(outputOf(events)).toMatch(/alpha\n\S+one\/early\/\S+\/home/u);
  });
});

describe.skipIf(process.getuid?.() !== 0)("a worker that is killed", () => {
  /** Users that have a process and own one of the folders in question. */
  function processesIn(folder: string): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/u.test(name))
      .map(Number)
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/environ`, "utf8").includes(folder);
        } catch {
          return false;
        }
      });
  }

  test("while a sandbox waits leaves no process, and after its start no folder and no row", async () => {
    const current = await start();
    const id = await untilReady(current);
    const folder = join(world.data, "early", id);
    expect(processesIn(folder).length).toBeGreaterThan(0);
    await current.kill("SIGKILL");
    await waitFor(() => processesIn(folder).length === 0, "its processes have ended");
    const again = await start({ OFFSTAGE_WARM: "0" });
    await waitFor(async () => (await waiting()).length === 0, "its row is gone");
    expect(await readdir(join(world.data, "early")).catch(() => [])).toEqual([]);
    expect(await run(again, "write b.txt: beta")).toMatchObject({ session: { status: "completed" } });
  });

  test.each([
    ["once a session has taken it", "step.started", "setup"],
    ["while its agent works", "agent.started", null],
  ] as const)("%s does the session once", async (_, type, step) => {
    const current = await start();
    await untilReady(current);
    const { id } = await callApi(current.url, "/repository/create", { url: repository });
    await callApi(current.url, `/repository/${id}/environment`, { setupScript: "sleep 1" });
    const prompt = "write a.txt: alpha, then shell sleep 2, then write b.txt: beta";
    const created = await current.client.session.create({ prompt, repositories: [repository] });
    await waitFor(async () => {
      const { events } = await current.client.session.events(created.id, { limit: 1_000 });
      return events.some(
        (event) => event.type === type && (step === null || ("step" in event.data && event.data.step === step)),
      );
    }, "its moment has come");
    const { rows } = await store.query("select id from warm_sandbox where session_id = $1", [created.id]);
    expect(rows).toHaveLength(1);
    await current.kill("SIGKILL");
    const again = await start();
    const session = await untilOver(again.client, created.id);
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(session.pullRequests).toHaveLength(1);
    const left = await store.query("select id from warm_sandbox where session_id is not null");
    expect(left.rows).toEqual([]);
  });

  test("that is asked to stop leaves no warm sandbox", async () => {
    const current = await start();
    const id = await untilReady(current);
    await current.kill("SIGTERM");
    expect(processesIn(join(world.data, "early", id))).toEqual([]);
    expect(await readdir(join(world.data, "early"))).toEqual([]);
    expect(await waiting()).toEqual([]);
  });
});
