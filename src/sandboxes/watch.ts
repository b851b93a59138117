import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { promisify } from "node:util";
import type { Exceeded, Limits } from "./sandbox.ts";

const run = promisify(execFile);
const lookEveryMs = 500;
/** Measuring a big folder takes its time: it is done so seldom that it takes at most this share of it. */
const measuringShare = 0.05;
const longestBetweenMs = 30_000;
const longestWhenFullMs = 3_000;
/** Where the machine's disk is nearly full, whoever filled that much of it lately is ended. */
const nearlyFullBytes = 512 * 1024 * 1024;
const fillingBytes = 64 * 1024 * 1024;
const pageBytes = 4_096;

export interface Watch {
  exceeded(): Exceeded | null;
  stop(): void;
}

/**
 * Watches what a sandbox uses of what the kernel does not bound by itself: its folders' disk always, and memory and processes
 * where no control group can be made. A look takes place twice a second: what is used up faster goes over by that much.
 * @param options.pids all processes inside; null where a control group bounds them
 */
export function watchUsage(options: {
  readonly limits: Limits;
  readonly folders: readonly string[];
  readonly pids: (() => readonly number[]) | null;
  readonly onExceeded: () => void;
}): Watch {
  const { limits, folders, pids } = options;
  let exceeded: Exceeded | null = null;
  let stopped = false;
  let measuring = false;
  let nextMeasure = 0;
  let usedBefore: number | null = null;
  let freeBefore: number | null = null;

  function end(by: Exceeded): void {
    if (stopped || exceeded !== null) return;
    exceeded = by;
    options.onExceeded();
  }

  function lookAtProcesses(): void {
    const all = pids?.() ?? [];
    if (all.length > limits.processes) end("processes");
    else if (all.length > 0 && memoryOf(all) > limits.memoryBytes) end("memory");
  }

  async function lookAtDisk(): Promise<void> {
    const [folder] = folders;
    if (measuring || folder === undefined) return;
    measuring = true;
    try {
      const free = await freeBytes(folder);
      const shrunk =
        freeBefore !== null && free !== null && freeBefore - free > Math.min(limits.diskBytes / 10, fillingBytes);
      const full = free !== null && free < nearlyFullBytes;
      if (!shrunk && performance.now() < nextMeasure) return;
      freeBefore = free;
      const startedAt = performance.now();
      const used = await usedBytes(folders);
      const tookMs = performance.now() - startedAt;
      const longest = full ? longestWhenFullMs : longestBetweenMs;
      nextMeasure = performance.now() + Math.min(longest, Math.max(1_000, tookMs / measuringShare));
      if (used === null) return;
      usedBefore ??= used;
      if (used > limits.diskBytes || (full && used - usedBefore > fillingBytes)) end("disk");
    } finally {
      measuring = false;
    }
  }

  const look = setInterval(() => {
    lookAtProcesses();
    void lookAtDisk();
  }, lookEveryMs);
  return {
    exceeded: () => exceeded,
    stop() {
      stopped = true;
      clearInterval(look);
    },
  };
}

async function freeBytes(folder: string): Promise<number | null> {
  return statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => null,
  );
}

/** As the file system counts blocks. Names in the folders are the agent's: nothing is followed, and nothing else is read. */
async function usedBytes(folders: readonly string[]): Promise<number | null> {
  // What vanishes while it is counted makes the program end with 1, and is counted all the same.
  const said = await run("du", ["-s", "-x", "-B1", "--", ...folders]).catch((error: { stdout?: string }) => ({
    stdout: error.stdout ?? "",
  }));
  const sums = said.stdout.split("\n").flatMap((line) => /^(\d+)\t/u.exec(line)?.[1] ?? []);
  return sums.length === 0 ? null : sums.reduce((total, sum) => total + Number(sum), 0);
}

/** Resident and not shared with a file (proc_pid_statm(5)). */
function memoryOf(pids: readonly number[]): number {
  return pids.reduce((total, pid) => {
    try {
      const [, resident = 0, shared = 0] = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ").map(Number);
      return total + (resident - shared) * pageBytes;
    } catch {
      return total;
    }
  }, 0);
}
