import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { open, readFile, rename, stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import type { Logger } from "../../observability.ts";
import { connect, ownerLock } from "./connection.ts";
import type { Place } from "./place.ts";
import { launch } from "./program.ts";

export interface EmbeddedServer {
  /** Connection string over the unix socket. */
  readonly url: string;
  stop(): Promise<void>;
}

/** For the first start; afterwards whoever asks the database sees that it is not there yet. */
const startTimeoutMs = 30_000;
/** Between two tries to start a server that does not come up: doubled each time, from the first to the last. */
const relaunchMs = { first: 100, last: 10_000 };
/** Warnings and errors alone go there; a long life gathers some all the same. */
const logLimit = 16 * 1024 * 1024;

/**
 * Launches the server and keeps it up until it is stopped, with the owner's lock held on it.
 * @throws Error where it does not start
 */
export async function supervise(program: string, place: Place, logger: Logger): Promise<EmbeddedServer> {
  const path = `${place.directory}.log`;
  await beginLogAnew(path);
  const log = await open(path, "a", 0o600);
  const stopping = new AbortController();
  let child = launch(program, place, log.fd);
  let owner: pg.Client | null = null;

  /** To be called right after the launch, to hear whether there is such a program. */
  async function own(timeoutMs: number): Promise<void> {
    await once(child, "spawn");
    owner = await untilAnswers(place, child, timeoutMs);
    await owner.query("select pg_advisory_lock($1)", [ownerLock]);
  }

  async function keepUp(): Promise<void> {
    let pauseMs = 0;
    let problem: unknown;
    for (;;) {
      await ended(child);
      if (stopping.signal.aborted) return;
      logger.error(
        { code: child.exitCode, signal: child.signalCode, err: problem, log: path, againInMs: pauseMs },
        "the embedded database ended by itself; starting it again",
      );
      await pause(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      child = launch(program, place, log.fd);
      try {
        await own(Infinity);
        [pauseMs, problem] = [0, undefined];
      } catch (error) {
        problem = error;
        pauseMs = Math.min(Math.max(pauseMs * 2, relaunchMs.first), relaunchMs.last);
      }
    }
  }

  async function end(): Promise<void> {
    stopping.abort();
    await owner?.end().catch(() => undefined);
    child.kill("SIGINT");
    await ended(child);
    await log.close();
  }

  try {
    await own(startTimeoutMs);
  } catch (error) {
    const said = (await readFile(path, "utf8")).slice(-1_000);
    await end();
    throw new Error(`the embedded database does not start: ${said}`, { cause: error });
  }
  const kept = keepUp();
  let stopped: Promise<void> | null = null;
  return { url: place.url, stop: () => (stopped ??= end().then(() => kept)) };
}

async function beginLogAnew(path: string): Promise<void> {
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  if (size > logLimit) await rename(path, `${path}.1`);
}

/** One without a number never began. */
const hasEnded = (child: ChildProcess): boolean =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

async function ended(child: ChildProcess): Promise<void> {
  if (!hasEnded(child)) await once(child, "exit");
}

async function untilAnswers(place: Place, child: ChildProcess, timeoutMs: number): Promise<pg.Client> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await connect(place);
    } catch (error) {
      if (hasEnded(child) || Date.now() > until) throw error;
    }
    await pause(10);
  }
}
