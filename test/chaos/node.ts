import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, openSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const main = join(import.meta.dirname, "../../src/main.ts");

/** One process of the fleet, which is started again whenever it ends, as a service manager would. */
export interface ChaosNode {
  readonly name: string;
  readonly data: string;
  pid(): number | null;
  /** When the process that works now was started, in ms since 1970; null if it is down or frozen. */
  workingSince(): number | null;
  /** Ends it at once; it comes back after so many milliseconds. */
  kill(downMs: number): void;
  freeze(forMs: number): void;
  /** As the worker calls itself in the store; null before it has ever run. */
  workerId(): Promise<string | null>;
  /**
   * SIGTERM, and no more starts.
   * @returns its exit code, or the signal that ended it; null where it was down just then, and had nothing to end
   */
  stop(): Promise<number | string | null>;
}

export async function startChaosNode(options: {
  readonly command: "api" | "worker";
  readonly name: string;
  readonly data: string;
  readonly log: string;
  readonly environment: Readonly<Record<string, string>>;
}): Promise<ChaosNode> {
  const { command, name, data, log, environment } = options;
  await mkdir(data, { recursive: true });
  const output = openSync(log, "a");
  let child: ChildProcess | null = null;
  let killed: ChildProcess | null = null;
  let downUntil = 0;
  let startedAt = 0;
  /** Those that overlap end with the first, as SIGCONT has it. */
  let frozen: ChildProcess | null = null;
  let stopping = false;

  async function keepRunning(): Promise<void> {
    while (!stopping) {
      await pause(Math.max(0, downUntil - Date.now()));
      if (stopping) return;
      startedAt = Date.now();
      child = spawn(process.execPath, [main, command], {
        env: { ...environment, OFFSTAGE_DATA: data },
        stdio: ["ignore", output, output],
      });
      const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
      appendFileSync(log, `${name} ended: ${signal ?? code}\n`);
      // The database may be down just now.
      if (!stopping && signal === null) await pause(300);
    }
  }
  const kept = keepRunning();

  const pid = (): number | null =>
    child !== null && child.exitCode === null && child.signalCode === null ? (child.pid ?? null) : null;

  return {
    name,
    data,
    pid,
    workingSince: () => (pid() === null || (frozen !== null && frozen === child) ? null : startedAt),
    kill(downMs) {
      downUntil = Date.now() + downMs;
      killed = child;
      child?.kill("SIGKILL");
    },
    freeze(forMs) {
      const stopped = child;
      frozen = stopped;
      stopped?.kill("SIGSTOP");
      setTimeout(() => {
        stopped?.kill("SIGCONT");
        if (frozen === stopped) frozen = null;
      }, forMs);
    },
    workerId: () => readFile(join(data, "worker-id"), "utf8").catch(() => null),
    async stop() {
      stopping = true;
      const down = pid() === null || child === killed;
      child?.kill("SIGCONT");
      child?.kill("SIGTERM");
      await kept;
      return down ? null : (child?.exitCode ?? child?.signalCode ?? null);
    },
  };
}
