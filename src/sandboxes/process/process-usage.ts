import { readFileSync } from "node:fs";
import type { SandboxUsage } from "../sandbox.ts";
import { memoryOf } from "./watch.ts";

/** Length of the kernel's unit of processor time (USER_HZ, 100 on every Linux), in ms. */
const tickMs = 10;

/** The usage of these processes now; null if there are none. Ended ones do not count. */
export function usageOf(pids: readonly number[]): SandboxUsage | null {
  if (pids.length === 0) return null;
  return { memoryBytes: memoryOf(pids), cpuMs: pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0) };
}

/** Time in user and kernel mode: fields 14 and 15 of proc_pid_stat(5); the name before them may contain any characters. */
function cpuMsOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13)
      .map(Number);
    return (user + system) * tickMs;
  } catch {
    // Ended in the meantime.
    return 0;
  }
}
