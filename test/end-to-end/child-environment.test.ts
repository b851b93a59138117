import { chmod, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createClient } from "../../src/client.ts";
import { startServerProcess, type ServerProcess } from "../server-process.ts";
import { createWorld, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/** What the server is given and no process that it starts may have. The forge's token is git's, and in no such place. */
const planted = {
  OFFSTAGE_MASTER_KEY: Buffer.alloc(32, "planted-master-key").toString("base64"),
  OFFSTAGE_ADMIN_KEY: "planted-admin-key-0123456789abcdefghijklmn",
  ANTHROPIC_API_KEY: "planted-anthropic-key-0123456789",
  OPENAI_API_KEY: "planted-openai-key-0123456789",
  GITHUB_TOKEN: "planted-github-token-0123456789",
  GITLAB_TOKEN: "planted-gitlab-token-0123456789",
  COMPANY_SECRET: "planted-secret-of-somebody-else",
};

let world: World;
let server: ServerProcess | undefined;
let folder: string;

beforeEach(async () => {
  world = await createWorld(script, { embedded: true });
  folder = await mkdtemp(join(tmpdir(), "offstage-children-"));
  await chmod(folder, 0o711);
});

afterEach(async () => {
  await server?.kill("SIGKILL");
  await world.close();
  await rm(folder, { recursive: true, force: true });
});

/** Stands before every program of the path, and writes down what it was started with. */
async function recordPrograms(path: string): Promise<string> {
  const [programs, seen] = [join(folder, "programs"), join(folder, "seen")];
  await mkdir(programs);
  await mkdir(seen);
  // Programs that run as other users write there too.
  await chmod(seen, 0o1777);
  const taken = new Set<string>();
  for (const directory of path.split(delimiter)) {
    for (const name of await readdir(directory).catch(() => [])) {
      // The recorder's own.
      if (taken.has(name) || ["env", "sh", "dash", "bash", "node"].includes(name)) continue;
      taken.add(name);
      const recorder = `#!/bin/sh\n/usr/bin/env -0 > '${seen}/${name}.'$$ 2> /dev/null\nexec '${directory}/${name}' "$@"\n`;
      await writeFile(join(programs, name), recorder, { mode: 0o755 });
    }
  }
  return [programs, path].join(delimiter);
}

/** The environments of the programs that were started by name, and of the processes that run below the server. */
async function environments(serverPid: number): Promise<{ readonly name: string; readonly text: string }[]> {
  const started = await Promise.all(
    (await readdir(join(folder, "seen"))).map(async (file) => ({
      name: file.replace(/\.\d+$/u, ""),
      text: await readFile(join(folder, "seen", file), "utf8"),
    })),
  );
  const processes: { pid: number; parent: number; name: string }[] = [];
  for (const entry of await readdir("/proc")) {
    const stat = /^\d+$/u.test(entry) ? await readFile(`/proc/${entry}/stat`, "utf8").catch(() => "") : "";
    const [, pid, name = "", parent] = /^(\d+) \((.*)\) \S (\d+) /su.exec(stat) ?? [];
    if (pid !== undefined) processes.push({ pid: Number(pid), parent: Number(parent), name });
  }
  const family = new Set([serverPid]);
  for (let size = 0; size !== family.size;) {
    size = family.size;
    for (const { pid, parent } of processes) if (family.has(parent)) family.add(pid);
  }
  family.delete(serverPid);
  const running = processes
    .filter(({ pid }) => family.has(pid))
    .map(async ({ pid, name }) => ({ name, text: await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "") }));
  return [...started, ...(await Promise.all(running))];
}

test.runIf(process.platform === "linux")("no process but the server sees the server's environment", async () => {
  const path = await recordPrograms(world.variables["PATH"] ?? process.env["PATH"] ?? "");
  server = await startServerProcess(world, { ...planted, PATH: path, OFFSTAGE_DEFAULT_AGENT: "basic:scripted" });
  const { url } = await world.forge.createRepository("acme", "children", { "README.md": "# Children\n" });
  const key = planted.OFFSTAGE_ADMIN_KEY;
  const call = async (operation: string, body: object) => {
    const answer = await fetch(`${server?.url}${operation}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as { readonly id: string };
  };
  const client = createClient({ baseUrl: server.url, key });
  const { id } = await call("/session/create", { prompt: "write one.txt: first", repositories: [url] });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed" });

  const found = await environments(server.pid);
  const names = new Set(found.map(({ name }) => name));
  // The control: these were looked at, and what they were given shows that the server has it all.
  expect([...names]).toEqual(expect.arrayContaining(["git", "bwrap", "postgres"]));
  expect(await readFile(`/proc/${server.pid}/environ`, "utf8")).toContain(planted.COMPANY_SECRET);
  const leaks = found.flatMap(({ name, text }) =>
    Object.entries(planted).flatMap(([variable, value]) => (text.includes(value) ? [`${name}: ${variable}`] : [])),
  );
  expect([...new Set(leaks)]).toEqual([]);
});
