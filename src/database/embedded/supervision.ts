import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { open, readFile, rename, stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { backoffMs } from "../../domain/time/backoff.ts";
import type { Logger } from "../../observability.ts";
import { connectEmbedded, ownerLock } from "./connection.ts";
import type { EmbeddedPaths } from "./paths.ts";
import { launch } from "./program.ts";

/** A running embedded PostgreSQL. */
export interface EmbeddedServer {
  /** Connection string for the unix socket. */
  readonly url: string;
  /** Stops the server and waits until it has ended. Can be called twice. */
  stop(): Promise<void>;
}

/** Limit of the first start. After a restart, queries simply fail until the server is up. */
const startTimeoutMs = 30_000;
/** Pauses between attempts to restart the server, without jitter: there is only one server. */
const relaunching = { fromMs: 100, toMs: 10_000, jitter: 0 };
/** Only warnings and errors are logged there, but over a long time these add up. */
const logLimit = 16 * 1024 * 1024;

/**
 * Starts the server, takes the owner's lock, and restarts the server if it ends before `stop`.
 * @param onProcess called as soon as its first process has started
 * @throws Error if it does not start
 */
export async function supervise(
  program: string,
  paths: EmbeddedPaths,
  logger: Logger,
  onProcess: () => void = () => undefined,
): Promise<EmbeddedServer> {
  const path = `${paths.directory}.log`;
  await rotateLog(path);
  const log = await open(path, "a", 0o600);
  const stopping = new AbortController();
  let child = launch(program, paths, log.fd);
  onProcess();
  let owner: pg.Client | null = null;

  /** Call this directly after `launch`, so that an error of spawning the program is not missed. */
  async function own(timeoutMs: number): Promise<void> {
    await once(child, "spawn");
    owner = await untilAnswers(paths, child, timeoutMs);
    await owner.query("select pg_advisory_lock($1)", [ownerLock]);
  }

  async function keepUp(): Promise<void> {
    let failures = 0;
    let problem: unknown;
    for (;;) {
      await ended(child);
      if (stopping.signal.aborted) return;
      // A server that had started is started again at once.
      const pauseMs = failures === 0 ? 0 : backoffMs(failures, relaunching);
      logger.error(
        { code: child.exitCode, signal: child.signalCode, err: problem, log: path, againInMs: pauseMs },
        "the embedded database ended by itself; starting it again",
      );
      await pause(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      child = launch(program, paths, log.fd);
      try {
        await own(Infinity);
        [failures, problem] = [0, undefined];
      } catch (error) {
        problem = error;
        failures += 1;
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
    const logTail = (await readFile(path, "utf8")).slice(-1_000);
    await end();
    throw new Error(`the embedded database does not start: ${logTail}`, { cause: error });
  }
  const kept = keepUp();
  let stopped: Promise<void> | null = null;
  return { url: paths.url, stop: () => (stopped ??= end().then(() => kept)) };
}

async function rotateLog(path: string): Promise<void> {
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  if (size > logLimit) await rename(path, `${path}.1`);
}

/** A process without an id was never started. */
const hasEnded = (child: ChildProcess): boolean =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

async function ended(child: ChildProcess): Promise<void> {
  if (!hasEnded(child)) await once(child, "exit");
}

async function untilAnswers(paths: EmbeddedPaths, child: ChildProcess, timeoutMs: number): Promise<pg.Client> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await connectEmbedded(paths);
    } catch (error) {
      if (hasEnded(child) || Date.now() > until) throw error;
    }
    await pause(10);
  }
}
