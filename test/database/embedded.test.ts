import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdtemp, open, readFile, rename, rm, stat, writeFile, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ownerLock } from "../../src/database/embedded/connection.ts";
import { startEmbeddedServer } from "../../src/database/embedded/embedded.ts";
import { prepareEmbeddedPaths } from "../../src/database/embedded/paths.ts";
import { findProgram, initializeCluster, launch } from "../../src/database/embedded/program.ts";
import { waitFor } from "../wait-for.ts";

let folder: string;
let directory: string;
let log: FileHandle;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-embedded-"));
  // The unprivileged user that the database runs as under root must be able to pass.
  await chmod(folder, 0o755);
  directory = join(folder, "postgres");
  log = await open(`${directory}.log`, "a");
});

afterEach(async () => {
  await log.close();
  await rm(folder, { recursive: true, force: true });
});

interface Ending {
  readonly msg: string;
  readonly againInMs?: number;
}

/** A logger whose lines are kept. */
function recordingLogger(): { logger: pino.Logger; lines: Ending[] } {
  const lines: Ending[] = [];
  return { logger: pino({}, { write: (line) => lines.push(JSON.parse(line) as Ending) }), lines };
}

/** @returns null if it does not answer */
async function ask<T>(url: string, question: (client: pg.Client) => Promise<T>): Promise<T | null> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await question(client);
  } catch {
    return null;
  } finally {
    await client.end().catch(() => undefined);
  }
}

const answers = async (url: string): Promise<boolean> => (await ask(url, () => Promise.resolve(true))) ?? false;

/** Whether it is up, and its owner knows. */
async function isOwned(url: string): Promise<boolean> {
  const lock = (client: pg.Client) =>
    client.query<{ free: boolean }>("select pg_try_advisory_lock($1) as free", [ownerLock]);
  return (await ask(url, lock))?.rows[0]?.free === false;
}

async function postmaster(): Promise<number> {
  return Number((await readFile(join(directory, "postmaster.pid"), "utf8")).split("\n")[0]);
}

test("a server that still shuts down is waited for, and another one started", async () => {
  const { logger, lines } = recordingLogger();
  const place = await prepareEmbeddedPaths(directory);
  const program = await findProgram(place);
  await initializeCluster(program, place);
  const earlier = launch(program, place, log.fd);
  await waitFor(() => answers(place.url), "the server answers");
  const client = new pg.Client({ connectionString: place.url });
  await client.connect();
  // "Smart": it takes no more clients and waits for those that are connected.
  earlier.kill("SIGTERM");

  const starting = startEmbeddedServer({ directory, logger });
  await waitFor(
    async () => (await readFile(`${directory}.log`, "utf8")).includes("the database system is shutting down"),
    "a newcomer was sent away",
  );
  await client.end();

  const server = await starting;
  expect(earlier.exitCode).toBe(0);
  expect(await answers(server.url)).toBe(true);
  await server.stop();
  expect(lines).toEqual([]);
});

test("a server that no longer answers, and has not ended yet, is waited for", async () => {
  const { logger } = recordingLogger();
  const first = await startEmbeddedServer({ directory, logger });
  await first.stop();
  // What is left of such a server: its process, and its id in the folder, which keeps another server from starting.
  const { uid, gid } = await stat(directory);
  const command = 'read line; rm "$0"';
  // As the server's user: of another's process PostgreSQL knows that it is no server of its own.
  const ending = spawn("sh", ["-c", command, join(directory, "postmaster.pid")], { cwd: directory, uid, gid });
  await writeFile(join(directory, "postmaster.pid"), `${ending.pid}\n`);
  let isUp = false;
  const starting = startEmbeddedServer({ directory, logger }).then((server) => {
    isUp = true;
    return server;
  });
  // Another server would have been sent away by then, as the control shows.
  await expect(startUnwarned()).rejects.toThrow(/postmaster.pid/u);
  expect(isUp).toBe(false);
  ending.stdin.end("\n");
  await (await starting).stop();
});

/** A server that is started without a look at who is there. */
async function startUnwarned(): Promise<void> {
  const place = await prepareEmbeddedPaths(directory);
  const child = launch(await findProgram(place), place, log.fd);
  await once(child, "exit");
  throw new Error(await readFile(`${directory}.log`, "utf8"));
}

test("the first process is reported before anything answers, of a new folder and of one that has a database", async () => {
  const { logger } = recordingLogger();
  const { url } = await prepareEmbeddedPaths(directory);
  for (const _ of ["new", "again"]) {
    const { promise: begun, resolve: onProcess } = Promise.withResolvers<void>();
    let hasStarted = false;
    const starting = startEmbeddedServer({ directory, logger, onProcess }).then((server) => {
      hasStarted = true;
      return server;
    });
    await Promise.race([begun, starting]);
    expect(hasStarted).toBe(false);
    const server = await starting;
    expect(await answers(url)).toBe(true);
    await server.stop();
  }
});

test("a server that ends by itself is started again at once, and with growing pauses while it does not come up", async () => {
  const { logger, lines } = recordingLogger();
  const server = await startEmbeddedServer({ directory, logger });
  const control = join(directory, "global/pg_control");
  const first = await postmaster();
  await rename(control, `${control}.away`);
  process.kill(first, "SIGQUIT");

  await waitFor(() => lines.length >= 4, "it was tried four times");
  await rename(`${control}.away`, control);
  await waitFor(() => isOwned(server.url), "the server is up again");
  expect(lines.slice(0, 4).map(({ againInMs }) => againInMs)).toEqual([0, 100, 200, 400]);

  const second = await postmaster();
  const before = lines.length;
  process.kill(second, "SIGINT");
  await waitFor(async () => lines.length > before && (await isOwned(server.url)), "the server is up once more");
  expect(lines.slice(before).map(({ againInMs }) => againInMs)).toEqual([0]);
  await server.stop();
});

test("a server that does not come up can be stopped, and stays so", async () => {
  const { logger, lines } = recordingLogger();
  const server = await startEmbeddedServer({ directory, logger });
  const control = join(directory, "global/pg_control");
  await rename(control, `${control}.away`);
  process.kill(await postmaster(), "SIGQUIT");
  await waitFor(() => lines.length >= 3, "it was tried three times");
  await rename(`${control}.away`, control);
  await server.stop();
  await expect(postmaster()).rejects.toThrow("ENOENT");
});

const isRoot = process.getuid?.() === 0;

/** What the kernel has of the server's main process. */
const postmasterHas = async (file: string): Promise<string> => readFile(`/proc/${await postmaster()}/${file}`, "utf8");

test("its processes have a few named variables, and none of the server's own", async () => {
  const { logger } = recordingLogger();
  process.env["OFFSTAGE_MASTER_KEY"] = "the-master-key-of-this-test";
  try {
    const server = await startEmbeddedServer({ directory, logger });
    const names = (await postmasterHas("environ"))
      .split("\0")
      .flatMap((line) => (line === "" ? [] : line.split("=")[0]));
    expect(names).toEqual(expect.arrayContaining(["PATH", "LC_ALL"]));
    expect(names.filter((name) => !["PATH", "LC_ALL", "TZ"].includes(name ?? "") && !name?.startsWith("PG"))).toEqual(
      [],
    );
    await server.stop();
  } finally {
    delete process.env["OFFSTAGE_MASTER_KEY"];
  }
});

test.runIf(isRoot)("as root it never runs as nobody, also on what an earlier version left to nobody", async () => {
  const { logger } = recordingLogger();
  const nobody = { uid: 65_534, gid: 65_534 };
  const place = await prepareEmbeddedPaths(directory);
  const program = await findProgram(place);
  // As the version before would have made it on a machine without a better user, and left it running.
  await initializeCluster(program, { ...place, identity: nobody });
  await chown(place.socketDirectory, nobody.uid, nobody.gid);
  const earlier = launch(program, { ...place, identity: nobody }, log.fd);
  await waitFor(() => answers(place.url), "the earlier server answers");
  expect(await postmasterHas("status")).toMatch(/^Uid:\s+65534/mu);
  // Its owner is gone, and it is no longer young.
  const server = await startEmbeddedServer({ directory, logger });
  expect(earlier.exitCode).toBe(0);
  expect(await answers(server.url)).toBe(true);
  expect(await postmasterHas("status")).not.toMatch(/^Uid:\s+(?:65534|0)\s/mu);
  expect((await stat(join(directory, "base"))).uid).not.toBe(nobody.uid);
  await server.stop();
});

test("a folder in which no server starts is reported with the server's own words", async () => {
  const { logger } = recordingLogger();
  const place = await prepareEmbeddedPaths(directory);
  await initializeCluster(await findProgram(place), place);
  await rm(join(directory, "global/pg_control"));
  await expect(startEmbeddedServer({ directory, logger })).rejects.toThrow(/does not start: .*pg_control/su);
});
