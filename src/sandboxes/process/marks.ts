import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { isSameProcess, knownProcess, processes } from "./process-table.ts";

/** Environment variable that every process of one start inherits, whatever process group it moves to. */
export const markName = "OFFSTAGE_PROCESS";

/** A mark that no other start has, and that says which process made it: `<process namespace>.<id>.<start time>.<random>`. */
export function newMark(): string {
  return [namespaceId(), process.pid, knownProcess(process.pid)?.startedAt ?? "", randomUUID()].join(".");
}

/**
 * Ids of all processes with this mark in their initial environment: finds descendants that left the process group
 * or session. Reads /proc; without it (macOS), returns none, and only the process group can be ended.
 */
export function carriersOf(mark: string): number[] {
  return processes().filter((pid) => markOf(pid) === mark);
}

/**
 * Ids of all processes whose mark was made by a process of this process namespace that has ended. The end of a killed server takes most
 * of its sandboxes with it, and not all: bubblewrap asks the kernel for that only after it has been started, and its child, which waits
 * for it, only later.
 */
export function orphans(): number[] {
  const own = namespaceId();
  return processes().filter((pid) => {
    const [namespace, maker, startedAt, random] = markOf(pid)?.split(".") ?? [];
    if (random === undefined || maker === undefined || startedAt === undefined) return false;
    return namespace === own && !isSameProcess({ pid: Number(maker), startedAt });
  });
}

/** The mark of a process; null if it has none, has ended, or is another user's. */
function markOf(pid: number): string | null {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
    return variables.find((variable) => variable.startsWith(`${markName}=`))?.slice(markName.length + 1) ?? null;
  } catch {
    return null;
  }
}

/** Number of this process's process namespace (namespaces(7)), in which ids mean something; empty if there are none. */
function namespaceId(): string {
  try {
    return /\d+/u.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "";
  } catch {
    return "";
  }
}
