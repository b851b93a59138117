import { readdirSync, readFileSync } from "node:fs";

export interface RunningProcess {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Every process of the machine, as /proc has it now. */
export function listProcesses(): RunningProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .flatMap((name) => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        const parent = Number(/^PPid:\s+(\d+)$/mu.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1]);
        return { pid: Number(name), parent, command };
      } catch {
        // It ended while it was looked at.
        return [];
      }
    });
}

/** Those below a process. */
export function descendantsOf(root: number): RunningProcess[] {
  const all = listProcesses();
  const below = new Set([root]);
  for (let grown = true; grown;) {
    grown = false;
    for (const { pid, parent } of all) {
      if (!below.has(parent) || below.has(pid)) continue;
      below.add(pid);
      grown = true;
    }
  }
  return all.filter(({ pid }) => pid !== root && below.has(pid));
}
