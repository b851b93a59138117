import { execFileSync } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startServerProcess, type ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/** The program as it is packed: built, and below a `node_modules` that has its packages, too. */
const root = join(import.meta.dirname, "../..");
let installed: string;
let world: World;
let server: ServerProcess;

beforeAll(async () => {
  const folder = join(root, "node_modules/.cache");
  await mkdir(folder, { recursive: true });
  installed = await mkdtemp(join(folder, "offstage-installed-"));
  // Agents are other users.
  await chmod(installed, 0o755);
  execFileSync(process.execPath, [join(root, "scripts/build-server.ts"), join(installed, "dist")], { stdio: "pipe" });
  for (const part of ["bin", "docs", "package.json"])
    await cp(join(root, part), join(installed, part), { recursive: true });
  await symlink(join(root, "dist/web"), join(installed, "dist/web"));
  world = await createWorld(script);
  server = await startServerProcess(world, {}, "start", installed, "bin/offstage.cjs");
});

afterAll(async () => {
  await server?.kill("SIGTERM");
  await world?.close();
  await rm(installed, { recursive: true, force: true });
});

test.each(["basic:scripted", "opencode:scripted"])("a session of %s ends with its pull request", async (agent) => {
  const name = agent.replace(":", "-");
  const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
  const asked = { prompt: "write hello.txt: hello", repositories: [url], agent };
  const { id } = await server.client.session.create(asked);
  const over = await untilOver(server.client, id);
  expect([over.status, over.pullRequests.length]).toEqual(["completed", 1]);
});

test("a secret in the work is found by the thread that looks for one", async () => {
  const { url } = await world.forge.createRepository("acme", "secret", { "README.md": "# Before\n" });
  const token = `ghp_${"k3J9".repeat(9)}`;
  const { id } = await server.client.session.create({
    prompt: `write key.txt: ${token}`,
    repositories: [url],
    agent: "basic:scripted",
  });
  const over = await untilOver(server.client, id);
  expect([over.status, over.failure?.code]).toEqual(["failed", "token_in_work"]);
});

test("an automation's instructions are rendered in their own process", async () => {
  const { url } = await world.forge.createRepository("acme", "automated", { "README.md": "# Before\n" });
  await server.client.automation.create({
    macro: "greet",
    name: "Greet",
    repositories: [url],
    instructions: "write {{ event.name | downcase }}.txt: hello",
    agent: "basic:scripted",
  });
  const job = await server.client.automation.trigger("greet", { name: "ADA" });
  const sessionId = await waitFor(
    async () => (await server.client.job.get(job.id)).sessionId,
    "the job has its session",
  );
  const over = await untilOver(server.client, sessionId);
  expect([over.status, over.pullRequests.length]).toEqual(["completed", 1]);
});

test.each(["/", "/reference", "/openapi.json", "/skills/offstage/SKILL.md", "/readyz"])(
  "%s is served",
  async (path) => {
    const answer = await fetch(`${server.url}${path}`);
    expect([answer.status, (await answer.text()).length > 1]).toEqual([200, true]);
  },
);

test("the command line runs", () => {
  const said = execFileSync(process.execPath, [join(installed, "bin/offstage.cjs"), "--help"], { encoding: "utf8" });
  expect(said).toContain("start");
});
