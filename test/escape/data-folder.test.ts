import { execFileSync, spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startServerProcess, type ServerProcess } from "../server-process.ts";
import { createWorld, untilOver, type World } from "../world.ts";
import { script } from "../end-to-end/script.ts";

/** What another user of the machine can read of a server's data folder, while it runs with its own database and after a session. */
let world: World;
let server: ServerProcess;
let sessionId: string;

/** A user of nothing else: the database may run as one that other programs have too. */
const stranger = ["--reuid", "65533", "--regid", "65533", "--clear-groups", "--"];

// Only root can run as another user.
const isRoot = process.getuid?.() === 0;

beforeAll(async () => {
  if (!isRoot) return;
  world = await createWorld(script, { embedded: true });
  server = await startServerProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", OFFSTAGE_RECORD: "true" });
  sessionId = await session("stolen");
});

afterAll(async () => {
  await server?.kill("SIGTERM");
  await world?.close();
});

async function session(content: string): Promise<string> {
  const { url } = await world.forge.createRepository("acme", `private-${content}`, { "a.txt": "of the repository\n" });
  const prompt = `shell echo ${content} > "$HOME/token"; chmod 666 "$HOME/token"; echo changed > a.txt`;
  const { id } = await server.client.session.create({ prompt, repositories: [url] });
  expect(await untilOver(server.client, id)).toMatchObject({ status: "completed" });
  return id;
}

/** @returns what a command of the stranger's prints */
function asStranger(command: string): string {
  const { stdout } = spawnSync("setpriv", [...stranger, "sh", "-c", command], { encoding: "utf8", cwd: "/" });
  return stdout;
}

const attempts = (): [what: string, command: string, found: RegExp][] => {
  const home = join(world.data, "sessions", sessionId, "home");
  return [
    ["a file of a session, by its name", `cat ${home}/token`, /stolen/u],
    [
      "a mirror's history",
      `for m in ${world.data}/mirrors/*.git; do git -c safe.directory='*' -C $m log --all; done`,
      /commit/u,
    ],
    ["the names of sessions", `ls ${world.data}/sessions`, /./u],
    ["any file at all", `find ${world.data} -type f -readable`, /./u],
    ["a gateway's socket, or a place for one", `ls ${world.data}/run`, /./u],
  ];
};

test.skipIf(!isRoot)("nothing below it can be read by another user", () => {
  for (const [what, command] of attempts()) expect(`${what}: ${asStranger(command)}`).toBe(`${what}: `);
  expect(statSync(world.data).mode & 0o777).toBe(0o711);
});

test.skipIf(!isRoot)("all of it could be before, and is closed when a server starts on it", async () => {
  await server.kill("SIGTERM");
  const open = ["sessions", `sessions/${sessionId}`, `sessions/${sessionId}/home`, "mirrors", "run", "worker-id", "."];
  for (const name of open) await chmod(join(world.data, name), 0o755);
  execFileSync("touch", [join(world.data, "run/a.sock")]);
  // As it was left by a version that did not close it, each attempt finds something.
  for (const [what, command, found] of attempts()) expect(`${what}: ${asStranger(command)}`).toMatch(found);
  server = await startServerProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" });
  for (const [what, command] of attempts()) expect(`${what}: ${asStranger(command)}`).toBe(`${what}: `);
  // And it works as before: the embedded database's user passes, and a sandbox's reads the mirror.
  await session("again");
});
