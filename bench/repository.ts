import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { script } from "../test/end-to-end/script.ts";
import { startServerProcess, type ServerProcess } from "../test/server-process.ts";
import { callApi } from "../test/call.ts";
import { createWorld, untilOver } from "../test/world.ts";
import { table } from "./measure.ts";

/**
 * Sessions on one large repository, each to its pull request: the first, whose mirror is fetched; a second; and one with some of
 * its folders. The history is content that no compression shortens. Needs three times its size on the disk.
 *
 *   npm run bench:repository -- --files 100000 --gigabytes 4
 */
const { values: options } = parseArgs({
  options: { files: { type: "string", default: "100000" }, gigabytes: { type: "string", default: "4" } },
});
const fileCount = Number(options.files);
const versionBytes = 2 * 1024 ** 2;
const versions = Math.round((Number(options.gigabytes) * 1024 ** 3) / versionBytes);
const filesInFolder = 100;

/** Writes the history by git-fast-import(1): all files in one commit, then a commit for each version of eight large files. */
async function seed(path: string): Promise<void> {
  const git = spawn("git", ["-C", path, "-c", "core.compression=0", "fast-import", "--quiet", "--force"], {
    stdio: ["pipe", "inherit", "inherit"],
  });
  const write = async (content: string | Buffer): Promise<void> => {
    if (!git.stdin.write(content)) await once(git.stdin, "drain");
  };
  const data = (content: string | Buffer): Buffer =>
    Buffer.concat([Buffer.from(`data ${Buffer.byteLength(content)}\n`), Buffer.from(content), Buffer.from("\n")]);
  const commit = (number: number): string =>
    `commit refs/heads/main\ncommitter A <a@example.com> ${1_700_000_000 + number} +0000\n`;
  await write(Buffer.concat([Buffer.from(commit(0)), data("All files")]));
  for (let index = 0; index < fileCount; index += 1) {
    const text = `${index}\n`.repeat(100);
    await write(`M 100644 inline f${Math.floor(index / filesInFolder)}/${index}.txt\n`);
    await write(data(text));
  }
  for (let version = 1; version <= versions; version += 1) {
    await write(Buffer.concat([Buffer.from(commit(version)), data(`Version ${version}`)]));
    await write(`M 100644 inline assets/${version % 8}.bin\n`);
    await write(data(randomBytes(versionBytes)));
  }
  git.stdin.end();
  const [code] = (await once(git, "exit")) as [number | null];
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
}

/** Mebibytes below a folder, on the disk. */
function sizeOf(folder: string): string {
  return String(Math.round(Number(execFileSync("du", ["-sk", folder]).toString().split("\t")[0]) / 1024));
}

/** Runs one session. @returns a row: what its steps took, in seconds, and how often the fetch reported its progress */
async function run(server: ServerProcess, url: string, name: string, data: string): Promise<string[]> {
  const startedAt = performance.now();
  const { client } = server;
  const { id } = await client.session.create({
    prompt: `shell git log --oneline | wc -l; git log -p -1 -- f1 > /dev/null; echo ${name} > f1/made.txt`,
    agent: "basic:scripted",
    repositories: [url],
  });
  let promptedAt = 0;
  let progress = 0;
  const steps: string[] = [];
  for await (const event of client.streamEvents(id)) {
    if (event.type === "agent.started" && promptedAt === 0) promptedAt = performance.now();
    if (event.type === "step.progress") progress += 1;
    if (event.type === "step.completed") steps.push(`${event.data.step} ${(event.data.durationMs / 1_000).toFixed(1)}`);
  }
  const session = await untilOver(client, id);
  if (session.status !== "completed" || session.pullRequests.length !== 1)
    throw new Error(`the session ${name} ended as ${session.status}: ${JSON.stringify(session.failure)}`);
  const seconds = (until: number): string => ((until - startedAt) / 1_000).toFixed(1);
  const folder = join(data, "sessions", id);
  return [name, seconds(promptedAt), seconds(performance.now()), steps.join(", "), String(progress), sizeOf(folder)];
}

const world = await createWorld(script, { embedded: true });
try {
  const { url } = await world.forge.createRepository("bench", "large", {});
  const remote = world.forge.pathOf("bench", "large");
  await seed(remote);
  const server = await startServerProcess(world);
  try {
    const rows = [await run(server, url, "first", world.data), await run(server, url, "second", world.data)];
    const { id } = await callApi(server.url, "/repository/create", { url });
    await callApi(server.url, `/repository/${id}/environment`, { sparse: ["f1"] });
    rows.push(await run(server, url, "sparse", world.data));
    const titles = ["session", "to the agent s", "to the pull request s", "steps s", "progress events", "folders MiB"];
    process.stdout.write(
      `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "cpu"}, load ${loadavg()[0]?.toFixed(1)}
${fileCount} files, ${versions} versions; repository ${sizeOf(remote)} MiB, mirror ${sizeOf(join(world.data, "mirrors"))} MiB

${table(titles, rows)}`,
    );
  } finally {
    await server.kill("SIGTERM");
  }
} finally {
  await world.close();
}
