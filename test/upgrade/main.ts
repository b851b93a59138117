import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import type { Client } from "../../src/client.ts";
import { startEmbeddedServer } from "../../src/database/embedded/embedded.ts";
import { createLogger } from "../../src/observability.ts";
import { script } from "../end-to-end/script.ts";
import { freePorts } from "../fleet.ts";
import { startServerProcess, type ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, untilOver, type World } from "../world.ts";

/**
 * A fleet that is upgraded node by node: `npm run upgrade -- --from v0.1.0`. Nodes of that version and of this tree run side
 * by side on one database, which this tree migrates under the feet of the other. Ends with 1 if a session was lost, or
 * has not exactly one pull request with all its work.
 */
const { values } = parseArgs({ options: { from: { type: "string", default: "HEAD~1" } } });
const root = join(import.meta.dirname, "../..");
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** A tree of the older version, ready to run. */
async function checkOut(version: string, folder: string): Promise<string> {
  const git = (...arguments_: string[]) => execFileSync("git", arguments_, { cwd: root, encoding: "utf8" });
  const tree = join(folder, "before");
  git("worktree", "add", "--detach", tree, version);
  const lock = (where: string): Promise<string> => readFile(join(where, "package-lock.json"), "utf8");
  if ((await lock(tree)) === (await lock(root))) await symlink(join(root, "node_modules"), join(tree, "node_modules"));
  else execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: tree, stdio: "inherit" });
  return tree;
}

async function upgrade(world: World): Promise<void> {
  const before = await checkOut(values.from, world.data);
  const server = await startEmbeddedServer({
    directory: join(world.data, "postgres"),
    logger: createLogger("error"),
  });
  const shared = {
    DATABASE_URL: server.url,
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_MASTER_KEY: randomBytes(32).toString("base64"),
    OFFSTAGE_CONCURRENCY: "2",
  };
  const nodes: ServerProcess[] = [];
  const [oldPort, newPort] = await freePorts(2);
  async function start(tree: string, command: "api" | "worker", name: string): Promise<ServerProcess> {
    const data = join(world.data, name);
    await mkdir(data, { recursive: true });
    const port = String(tree === before ? oldPort : newPort);
    const own = { OFFSTAGE_DATA: data, OFFSTAGE_PORT: port, OFFSTAGE_PUBLIC_URL: `http://127.0.0.1:${port}` };
    const node = await startServerProcess(world, { ...shared, ...own }, command, tree);
    nodes.push(node);
    return node;
  }
  const store = new pg.Pool({ connectionString: server.url });
  // The node that migrates closes connections that are older than its change.
  store.on("error", () => undefined);
  const newest = async (): Promise<number> =>
    (await store.query<{ newest: number }>("select max(number) as newest from migration")).rows[0]?.newest ?? 0;
  /** The functions of the database, as the newest of its nodes has defined them. */
  const functions = async (): Promise<string> => {
    const read = await store.query<{ all: string }>(
      `select string_agg(pg_get_functiondef(oid), '' order by oid) as all from pg_proc
       where pronamespace = 'public'::regnamespace`,
    );
    return read.rows[0]?.all ?? "";
  };

  const ids: string[] = [];
  async function create(client: Client, number: number): Promise<string> {
    const { url } = await world.forge.createRepository("acme", `repository-${number}`, { "README.md": "# Before\n" });
    const prompt = `write one.txt: first ${number}, then shell sleep 2, then write two.txt: second ${number}`;
    const { id } = await client.session.create({ prompt, repositories: [url] });
    ids[number] = id;
    return id;
  }

  try {
    const oldApi = await start(before, "api", "old-api");
    const oldWorker = await start(before, "worker", "old-worker");
    say(`${values.from} has migrated to ${await newest()}`);
    for (let number = 0; number < 4; number += 1) await create(oldApi.client, number);
    await waitFor(
      async () => (await oldApi.client.session.get(ids[0] ?? "")).status === "running",
      "the old worker works",
    );

    const newApi = await start(root, "api", "new-api");
    say(`this tree has migrated to ${await newest()}, beside it`);
    const newWorker = await start(root, "worker", "new-worker");
    for (let number = 4; number < 12; number += 1) {
      await create(number % 2 === 0 ? oldApi.client : newApi.client, number);
    }
    // Each takes what the other made, and shows it.
    await untilOver(newApi.client, ids[0] ?? "");
    await untilOver(oldApi.client, ids[5] ?? "");
    const held = await store.query("select from session where status = 'running' and worker = $1", [
      (await readFile(join(world.data, "old-worker/worker-id"), "utf8")).trim(),
    ]);
    say(`the old worker dies with ${held.rowCount} sessions`);
    await oldWorker.kill("SIGKILL");
    for (const id of ids) await untilOver(newApi.client, id);

    say("a node of the old version starts anew on what the new one has migrated");
    const defined = await functions();
    await oldApi.kill("SIGTERM");
    const oldAgain = await start(before, "api", "old-api");
    const oldWorkerAgain = await start(before, "worker", "old-worker");
    await newWorker.kill("SIGTERM");
    await oldAgain.client.session.message(ids[11] ?? "", { message: "write three.txt: third" });
    await untilOver(newApi.client, ids[11] ?? "");
    await oldWorkerAgain.kill("SIGTERM");

    const broken: string[] = [];
    if ((await functions()) !== defined) broken.push("the old node has put its functions back");
    for (const [number, id] of ids.entries()) {
      const { status, failure } = await newApi.client.session.get(id);
      const patch = (await newApi.client.session.diff(id)).repositories[0]?.patch ?? "";
      const pullRequests = (await world.forge.pullRequests("acme", `repository-${number}`)).length;
      const wanted = [`+first ${number}`, `+second ${number}`, ...(number === 11 ? ["+third"] : [])];
      const missing = wanted.filter((line) => !patch.includes(line));
      if (status === "completed" && pullRequests === 1 && missing.length === 0) continue;
      broken.push(
        `${id}: ${status} ${JSON.stringify(failure)}, ${pullRequests} pull requests, without ${missing.join()}`,
      );
    }
    if (broken.length > 0) throw new Error(`${values.from} and this tree did not go together:\n${broken.join("\n")}`);
    say(`${ids.length} sessions, each completed with one pull request and all its work`);
  } finally {
    for (const node of nodes) await node.kill("SIGKILL");
    await store.end();
    await server.stop();
    execFileSync("git", ["worktree", "remove", "--force", before], { cwd: root });
  }
}

const world = await createWorld(script, { embedded: true });
try {
  await upgrade(world);
} finally {
  await world.close();
}
process.exit(0);
