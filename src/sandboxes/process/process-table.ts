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

/**
 * A process with all that it started, and what those did. Who sets an environment of its own is among them; who lives on
 * when its parent ends is where its namespace has a first process (pid_namespaces(7)), as that of bubblewrap.
 */
export function familyOf(first: number): number[] {
  const children = new Map<number, number[]>();
  for (const pid of processes()) {
    const parent = parentOf(pid);
    if (parent !== null) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const found = [first];
  for (const pid of found) found.push(...(children.get(pid) ?? []));
  return found;
}

/** The fourth field of proc_pid_stat(5); the name before it may hold anything. */
function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    // Gone in the meantime.
    return null;
  }
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
