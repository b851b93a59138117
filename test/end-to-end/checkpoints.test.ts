import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import { startFleet, type Fleet } from "../fleet.ts";
import type { Script } from "../model/server.ts";
import type { ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, untilOver, type World } from "../world.ts";
import { script as ordered } from "./script.ts";

const harnessFolder = join(import.meta.dirname, "../../.harnesses/node_modules/.bin");

/** What a turn does first: everything that a folder can hold that git knows of. */
const firstPart = [
  "echo changed >> README.md",
  "printf 'one\\ntwo\\n' > 'with space.txt'",
  "mkdir -p bin && printf '#!/bin/sh\\n' > bin/run && chmod +x bin/run && ln -s run bin/link",
  "echo mine > mine.txt && git add mine.txt && git -c user.name=a -c user.email=a@b.c commit -qm 'The agent commits'",
  "rm old.txt",
].join(" && ");

/** Tells itself by the words of its task whether it was cut off, as a model would. */
const script: Script = (message, conversation) => {
  if (!message.includes("begin and wait"))
    return typeof ordered === "function" ? ordered(message, conversation) : ordered;
  if (message.includes("You go on on another machine. The folder is as it was")) {
    return [
      { shell: "git status --short; git log --format=%s; cat 'with space.txt' README.md; ls -l bin" },
      { write: { path: "last.txt", content: "the end" } },
      { say: "Went on." },
    ];
  }
  if (message.includes("could not be kept"))
    return [{ write: { path: "anew.txt", content: "anew" } }, { say: "Anew." }];
  const large = message.includes("something large") ? [{ shell: "head -c 3000000 /dev/urandom > large" }] : [];
  return [...large, { shell: firstPart }, { shell: "true; sleep 617" }, { say: "Never said." }];
};

let world: World;
let fleet: Fleet;
let store: pg.Pool;
let count = 0;

beforeAll(async () => {
  process.env["PATH"] = `${harnessFolder}${delimiter}${process.env["PATH"]}`;
  world = await createWorld(script);
  const { url } = world.model;
  fleet = await startFleet(world, {
    apis: 1,
    variables: {
      PATH: process.env["PATH"] ?? "",
      ANTHROPIC_API_KEY: "sk-key-of-the-test",
      ANTHROPIC_BASE_URL: url,
      OPENAI_API_KEY: "sk-key-of-the-test",
      OPENAI_BASE_URL: `${url}/v1`,
      GEMINI_API_KEY: "gemini-key-of-the-test",
      GOOGLE_GEMINI_BASE_URL: url,
      OFFSTAGE_RATE_LIMIT_PER_MINUTE: "100000",
    },
  });
  store = new pg.Pool({ connectionString: world.variables["DATABASE_URL"] });
});

afterAll(async () => {
  await store?.end();
  await fleet?.close();
  await world?.close();
});

const workers: ServerProcess[] = [];
async function worker(name = `worker-${(count += 1)}`, nodes = fleet): Promise<ServerProcess> {
  const started = await nodes.startWorker(name);
  workers.push(started);
  return started;
}

afterEach(async () => {
  for (const started of workers.splice(0)) await started.kill("SIGKILL");
});

const repository = async () => {
  const name = `work-${(count += 1)}`;
  const files = { "README.md": "# Before\n", "old.txt": "old\n" };
  return { name, url: (await world.forge.createRepository("acme", name, files)).url };
};
const eventsOf = async (id: string): Promise<readonly SessionEvent[]> =>
  (await fleet.api(0).session.events(id, { limit: 1_000 })).events;

/** Waits until the command that never ends runs, and a checkpoint was taken of what came before it. */
async function untilKept(id: string): Promise<void> {
  await waitFor(async () => {
    const sleeping = (await eventsOf(id)).find(
      (event) => event.type === "agent.tool" && JSON.stringify(event.data).includes("sleep 617"),
    );
    if (sleeping === undefined) return false;
    const { rowCount } = await store.query("select 1 from checkpoint where session_id = $1", [id]);
    return rowCount === 1;
  }, "a checkpoint is taken");
}

/** The API node has no files: it shows what the worker's last checkpoint has of them, while the agent works. */
async function requireFiles(id: string, folder: string): Promise<void> {
  const { from, entries } = await fleet.api(0).call("workspaceFolderSchema", `/session/${id}/file/list?path=${folder}`);
  expect([from, entries.map((entry) => [entry.name, entry.change])]).toEqual([
    "checkpoint",
    [
      ["bin", "added"],
      ["README.md", "changed"],
      ["mine.txt", "added"],
      ["with space.txt", "added"],
    ],
  ]);
}

const agents = [
  { agent: "basic:scripted", program: null, resumes: true as unknown },
  { agent: "opencode:scripted", program: null, resumes: true as unknown },
  { agent: "claudeCode:default", program: "claude-agent-acp", resumes: true as unknown },
  { agent: "codex:scripted", program: "codex-acp", resumes: true as unknown },
  { agent: "gemini:gemini-3.1-pro-preview", program: "gemini", resumes: expect.any(Boolean) as unknown },
];

describe.each(agents)("a turn of $agent whose worker is killed", ({ agent, program, resumes }) => {
  test.skipIf(program !== null && !existsSync(join(harnessFolder, program)))(
    "is gone on with by another worker, with its files, its commits and its memory",
    async () => {
      const first = await worker();
      const { name, url } = await repository();
      const session = await fleet.api(0).session.create({ prompt: "begin and wait", repositories: [url], agent });
      await untilKept(session.id);
      if (program === null) await requireFiles(session.id, name);
      await first.kill("SIGKILL");
      const second = await worker();
      expect(await untilOver(fleet.api(0), session.id)).toMatchObject({ status: "completed", failure: null });
      await second.kill("SIGTERM");

      const events = await eventsOf(session.id);
      const seen = JSON.stringify(events);
      // Gemini CLI never shows what its commands print.
      for (const line of program === "gemini"
        ? []
        : ["?? bin/", "M README.md", "D old.txt", "The agent commits", "one\\\\ntwo", "link -> run"]) {
        expect(seen).toContain(line);
      }
      const starts = events.filter((event) => event.type === "agent.started");
      expect(starts.map(({ data }) => data.resumed)).toEqual([false, resumes]);
      expect(events.filter((event) => event.type === "notice").map(({ data }) => data.text)).toEqual([
        expect.stringContaining("continues from what another had done by") as string,
      ]);
      expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
      const patch = (await fleet.api(0).session.diff(session.id)).repositories[0]?.patch ?? "";
      for (const part of [
        "+changed",
        "with space.txt",
        "new file mode 100755",
        "new file mode 120000",
        "+mine",
        "+the end",
      ]) {
        expect(patch).toContain(part);
      }
      expect(patch).toContain("deleted file mode");
    },
  );
});

test("a repository is set up before the work comes back, which the setup neither sees nor undoes", async () => {
  const first = await worker();
  const { name, url } = await repository();
  const { id } = await fleet.call("/repository/create", { url });
  const setupScript = "ls; echo changed by the setup > README.md; echo made > made.txt; echo $HOME >> made.txt";
  await fleet.call(`/repository/${id}/environment`, { setupScript });
  const session = await fleet.api(0).session.create({ prompt: "begin and wait", repositories: [url] });
  await untilKept(session.id);
  await first.kill("SIGKILL");
  await worker();
  expect(await untilOver(fleet.api(0), session.id)).toMatchObject({ status: "completed", failure: null });
  const events = await eventsOf(session.id);
  const printed = events.flatMap((event) => (event.type === "setup.output" ? event.data.text : []));
  // An event may end in a name: what could be the beginning of a secret waits for what comes next.
  expect(printed.join("").match(/old\.txt/gu)).toHaveLength(2);
  expect(printed.join("")).not.toContain("mine.txt");
  const starts = events.filter((event) => event.type === "agent.started");
  expect(starts.map(({ data }) => data.resumed)).toEqual([false, true]);
  const patch = (await fleet.api(0).session.diff(session.id)).repositories[0]?.patch ?? "";
  for (const part of ["+changed\n", "with space.txt", "+mine", "+the end", "deleted file mode"])
    expect(patch).toContain(part);
  for (const part of ["changed by the setup", "made.txt"]) expect(patch).not.toContain(part);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("a session without a repository keeps its files too", async () => {
  const first = await worker();
  const session = await fleet.api(0).session.create({ prompt: "begin and wait" });
  await untilKept(session.id);
  await first.kill("SIGKILL");
  const second = await worker();
  await untilOver(fleet.api(0), session.id);
  await second.kill("SIGTERM");
  expect(JSON.stringify(await eventsOf(session.id))).toContain("one\\\\ntwo");
});

test("a worker that is asked to stop stores the work before it hands over", async () => {
  const first = await worker();
  const { name, url } = await repository();
  const session = await fleet.api(0).session.create({ prompt: "begin and wait", repositories: [url] });
  await untilKept(session.id);
  await first.kill("SIGTERM");
  const second = await worker();
  expect(await untilOver(fleet.api(0), session.id)).toMatchObject({ status: "completed" });
  await second.kill("SIGTERM");
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  expect((await fleet.api(0).session.diff(session.id)).repositories[0]?.patch).toContain("+the end");
});

test("a worker that comes back after others went on forgets its own old folder", async () => {
  const { name, url } = await repository();
  const first = await worker("returning");
  const session = await fleet.api(0).session.create({ prompt: "write a.txt: alpha", repositories: [url] });
  await untilOver(fleet.api(0), session.id);
  await first.kill("SIGTERM");
  const second = await worker();
  await fleet.api(0).session.message(session.id, { message: "write b.txt: beta" });
  await untilOver(fleet.api(0), session.id);
  await second.kill("SIGTERM");
  const again = await worker("returning");
  await fleet.api(0).session.message(session.id, { message: "write c.txt: gamma" });
  expect(await untilOver(fleet.api(0), session.id)).toMatchObject({ status: "completed", failure: null });
  await again.kill("SIGTERM");
  const patch = (await fleet.api(0).session.diff(session.id)).repositories[0]?.patch ?? "";
  for (const part of ["+alpha", "+beta", "+gamma"]) expect(patch).toContain(part);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  const starts = (await eventsOf(session.id)).filter((event) => event.type === "agent.started");
  expect(starts.map(({ data }) => data.resumed)).toEqual([false, true, true]);
  const commits = (await eventsOf(session.id)).filter((event) => event.type === "workspace.commit");
  expect(new Set(commits.map(({ data }) => data.sha)).size).toBe(commits.length);
});

test("a turn that is over, but whose work was nowhere when its worker died, is taken once more", async () => {
  const small = await startFleet(world, { apis: 0, variables: { ...fleet.shared, OFFSTAGE_CHECKPOINT_MB: "1" } });
  try {
    const first = await worker("lost", small);
    const { name, url } = await repository();
    await world.forge.failNext({ kind: "hang", at: "push" });
    const prompt = "shell head -c 3000000 /dev/urandom > large, then write a.txt: alpha";
    const session = await fleet.api(0).session.create({ prompt, repositories: [url] });
    await waitFor(() => world.forge.pendingFailures() === 0, "the push hangs");
    await first.kill("SIGKILL");
    await worker("found", small);
    expect(await untilOver(fleet.api(0), session.id)).toMatchObject({ status: "completed", failure: null });
    expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
    expect((await fleet.api(0).session.diff(session.id)).repositories[0]?.patch).toContain("+alpha");
  } finally {
    await small.close();
  }
});

test("work that is too large to store is reported, and begun anew by another worker", async () => {
  const small = await startFleet(world, { apis: 0, variables: { ...fleet.shared, OFFSTAGE_CHECKPOINT_MB: "1" } });
  try {
    const first = await worker("small", small);
    const { name, url } = await repository();
    const prompt = "something large: begin and wait";
    const session = await fleet.api(0).session.create({ prompt, repositories: [url] });
    await waitFor(
      async () => JSON.stringify(await eventsOf(session.id)).includes("sleep 617"),
      "the command runs that never ends",
    );
    await waitFor(
      async () => (await eventsOf(session.id)).some(({ type }) => type === "notice"),
      "a notice says that the work is not stored",
    );
    await first.kill("SIGKILL");
    const second = await worker("small-2", small);
    expect(await untilOver(fleet.api(0), session.id)).toMatchObject({ status: "completed", failure: null });
    await second.kill("SIGTERM");
    expect((await fleet.api(0).session.diff(session.id)).repositories[0]?.patch).toContain("+anew");
    expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
    const notices = (await eventsOf(session.id)).filter((event) => event.type === "notice");
    expect(notices.map(({ data }) => data.text)).toEqual([
      expect.stringMatching(/could not be stored outside this worker \(it is larger than OFFSTAGE_CHECKPOINT_MB\)/u),
    ]);
  } finally {
    await small.close();
  }
});
