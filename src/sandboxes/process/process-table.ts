import { readdirSync, readFileSync } from "node:fs";

/** Kills a process or, if the id is negative, a process group; does nothing if it has ended. */
export function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // EPERM: the id now belongs to another user's process.
    if (!["ESRCH", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

/**
 * A process and its descendants, including those with another environment. A descendant whose parent has ended
 * is found only if its namespace has an init process (pid_namespaces(7)), as bubblewrap's has.
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

/** Whether a process has started another that runs (proc_pid_children(5); if the kernel has no such file, all are looked at). */
export function hasChildren(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8") !== "";
  } catch {
    return familyOf(pid).length > 1;
  }
}

/** A process, distinguishable from a later one of the same id. */
export interface KnownProcess {
  readonly pid: number;
  /** When it was started, as /proc says it. */
  readonly startedAt: string;
  readonly parent: number;
}

/** A process that runs; null if it has ended, even if its exit code was not read yet. */
export function knownProcess(pid: number): KnownProcess | null {
  const fields = fieldsOf(pid);
  const [state, parent] = fields ?? [];
  const startedAt = fields?.[19];
  return startedAt === undefined || state === "Z" ? null : { pid, startedAt, parent: Number(parent) };
}

/** Whether that process still runs. */
export function isSameProcess({ pid, startedAt }: Pick<KnownProcess, "pid" | "startedAt">): boolean {
  return knownProcess(pid)?.startedAt === startedAt;
}

function parentOf(pid: number): number | null {
  const parent = fieldsOf(pid)?.[1];
  return parent === undefined ? null : Number(parent);
}

/** Fields of proc_pid_stat(5) from the third on; the name before them may contain any characters. */
function fieldsOf(pid: number): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    // Ended in the meantime.
    return null;
  }
}

/** Ids of all processes of this process namespace; none if there is no /proc (macOS). */
export function processes(): number[] {
  try {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => pid > 0);
  } catch {
    return [];
  }
}
