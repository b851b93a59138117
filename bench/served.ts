import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";

/** A server in a process of its own, and what it has used. */
export interface Served<Ready> {
  readonly ready: Ready;
  readonly pid: number;
  /** Processor time that its process has used, in ms. */
  cpuMs(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts a program that says by IPC when it is ready, and answers any message with its processor time. */
export async function startServed<Ready extends object>(
  path: string,
  parameters: readonly string[] = [],
): Promise<Served<Ready>> {
  const child: ChildProcess = fork(path, [...parameters]);
  const exited = once(child, "exit");
  const [ready] = (await Promise.race([once(child, "message"), exited])) as [Ready | number | null];
  if (typeof ready !== "object" || ready === null || child.pid === undefined)
    throw new Error(`${path} ended before it was ready`);
  return {
    ready,
    pid: child.pid,
    async cpuMs() {
      child.send("cpu");
      const [{ cpuMs }] = (await once(child, "message")) as [{ cpuMs: number }];
      return cpuMs;
    },
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

/** Ticks of a processor's time in a second, as /proc counts them on every Linux that Node.js runs on. */
const ticksPerSecond = 100;

/**
 * Processor time that a process and all below it have used until now, in ms, those that ended included.
 * @returns NaN where there is no /proc
 */
export async function familyCpuMs(pid: number): Promise<number> {
  const stats = await Promise.all(
    (await readdir("/proc").catch(() => []))
      .filter((name) => /^\d+$/u.test(name))
      .map((name) => readStat(Number(name))),
  );
  const own = stats.find((each) => each?.pid === pid);
  if (own == null) return Number.NaN;
  const children = stats.filter((each) => each?.parent === pid);
  const ticks = own.used + own.usedByEnded + children.reduce((sum, each) => sum + (each?.used ?? 0), 0);
  return (ticks / ticksPerSecond) * 1_000;
}

async function readStat(pid: number) {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (text === null) return null;
  // The name before the bracket may have anything in it.
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const at = (number: number): number => fields[number - 3] ?? 0;
  return { pid, parent: at(4), used: at(14) + at(15), usedByEnded: at(16) + at(17) };
}
