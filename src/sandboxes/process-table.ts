import { readdirSync, readFileSync } from "node:fs";

/** Ends a process, or with a negative id a process group; one that is gone already is no error. */
export function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // EPERM: the number is another user's process by now, and not ours to end.
    if (!["ESRCH", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

/**
 * Every process that was started with this variable in its environment, as a child of a child may be that made a session
 * of its own. Found through /proc: where there is none (macOS), a process group is all that can be ended.
 * @param variable `NAME=value`
 */
export function carriersOf(variable: string): number[] {
  return processes().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(variable);
    } catch {
      // Gone, or another user's.
      return false;
    }
  });
}

function processes(): number[] {
  try {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => pid > 0);
  } catch {
    return [];
  }
}
