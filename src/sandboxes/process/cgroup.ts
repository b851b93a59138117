import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Exceeded, ResourceLimits, SandboxUsage } from "../sandbox.ts";

/** A control group (cgroups(7)) of one sandbox. */
export interface ControlGroup {
  /** Files to which a process writes 0 to join, with all processes that it starts later. */
  readonly joinFiles: readonly string[];
  /** The limit that was exceeded, if any. */
  exceeded(): Exceeded | null;
  /** Gives it a quarter of the processor time that others get if both want it, or as much as others. */
  standBack(isBehind: boolean): void;
  /** The usage of all processes in it; null if the kernel does not report it. */
  usage(): SandboxUsage | null;
  /** Removes the group. @returns false while a process is still in it: try again */
  remove(): boolean;
}

/** Files of the kernel's control groups: one tree (version 2), or one for each controller (version 1). */
interface Tree {
  readonly folders: readonly string[];
  readonly limits: (limits: ResourceLimits) => readonly (readonly [file: string, value: string])[];
  /** Processor weight of all sandboxes together, below the server's. */
  readonly share: readonly [file: string, value: string];
  /** Processor weight of one sandbox among the others: a low-priority one, and the usual one. */
  readonly weight: { readonly file: string; readonly behind: string; readonly usual: string };
  readonly memoryEvents: string;
  readonly processEvents: string;
  /** File of the memory in use, and the line of `memory.stat` with what of it are copies of files that can be given up. */
  readonly memory: readonly [file: string, cached: string];
  /** File of the processor time, the text before the number in it, and how many of its units are a ms. */
  readonly cpu: readonly [file: string, before: string, units: number];
}

const root = "/sys/fs/cgroup";
const name = "offstage";

const cpuPeriod = 100_000;
/**
 * Processor weight of sandboxes in version 1; the default is 1,024 (version 2: 20 of 100). Priorities (nice) have no
 * effect between groups.
 */
export const sandboxShares = 204;

const version2: Tree = {
  folders: [join(root, name)],
  limits: ({ memoryBytes, processes, cpus }) => [
    ["memory.max", String(memoryBytes)],
    ["memory.swap.max", "0"],
    ["pids.max", String(processes)],
    ["cpu.max", `${Math.round(cpus * cpuPeriod)} ${cpuPeriod}`],
  ],
  share: ["cpu.weight", "20"],
  weight: { file: "cpu.weight", behind: "25", usual: "100" },
  memoryEvents: "memory.events",
  processEvents: "pids.events",
  memory: ["memory.current", "inactive_file"],
  cpu: ["cpu.stat", "usage_usec ", 1_000],
};

const version1: Tree = {
  folders: ["memory", "pids", "cpu"].map((controller) => join(root, controller, name)),
  limits: ({ memoryBytes, processes, cpus }) => [
    ["memory.limit_in_bytes", String(memoryBytes)],
    ["memory.memsw.limit_in_bytes", String(memoryBytes)],
    ["pids.max", String(processes)],
    ["cpu.cfs_period_us", String(cpuPeriod)],
    ["cpu.cfs_quota_us", String(Math.round(cpus * cpuPeriod))],
  ],
  share: ["cpu.shares", String(sandboxShares)],
  weight: { file: "cpu.shares", behind: "256", usual: "1024" },
  memoryEvents: "memory.oom_control",
  processEvents: "pids.events",
  memory: ["memory.usage_in_bytes", "total_inactive_file"],
  cpu: ["cpuacct.usage", "", 1_000_000],
};

/** Null if this process can't create control groups: it is not root, or they are read-only, as in most containers. */
function findTree(): Tree | null {
  if (process.getuid?.() !== 0) return null;
  const tree = existsSync(join(root, "cgroup.controllers")) ? version2 : version1;
  const isWritable = tree.folders.every((folder) => {
    try {
      accessSync(join(folder, ".."), constants.W_OK);
      return true;
    } catch {
      return false;
    }
  });
  return isWritable ? tree : null;
}

/**
 * Whether limits can be set here. Creates a group to find out, because a container may show a tree that it can't use.
 */
export function canLimit(): boolean {
  removeLeft();
  const group = createControlGroup({ memoryBytes: 2 ** 30, processes: 100, diskBytes: 2 ** 30, cpus: 1 });
  group?.remove();
  return group !== null;
}

/** Removes groups of killed servers; one that still contains a process stays. */
function removeLeft(): void {
  for (const folder of findTree()?.folders ?? []) {
    if (!existsSync(folder)) continue;
    for (const entry of readdirSync(folder)) {
      const server = Number(/^(\d+)-/u.exec(entry)?.[1] ?? Number.NaN);
      if (!Number.isNaN(server) && !existsSync(`/proc/${server}`)) removed(join(folder, entry));
    }
  }
}

/** Errors of the kernel if this process may not change the tree, as in most containers. */
const notOurs = new Set(["EACCES", "EBUSY", "EINVAL", "ENOENT", "EOPNOTSUPP", "EPERM", "EROFS"]);

/** Creates a control group with these limits (cgroups(7)). @returns null if this process can't create one */
export function createControlGroup(limits: ResourceLimits): ControlGroup | null {
  const tree = findTree();
  if (tree === null) return null;
  // The server's process id in the name shows whether the server still lives.
  const folders = tree.folders.map((folder) => join(folder, `${process.pid}-${randomUUID()}`));
  try {
    makeGroups(tree, folders, limits);
  } catch (error) {
    for (const folder of folders) removed(folder);
    if (notOurs.has((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
  /** The number behind these words, in whichever tree has the file; null if none has. */
  const read = (file: string, before: string): number | null => {
    const path = folders.map((folder) => join(folder, file)).find((one) => existsSync(one));
    const text = path === undefined ? "" : readFileSync(path, "utf8");
    const number = new RegExp(`^${before}(\\d+)$`, "mu").exec(text)?.[1];
    return number === undefined ? null : Number(number);
  };
  const count = (file: string, key: string): number => read(file, `${key} `) ?? 0;
  return {
    joinFiles: folders.map((folder) => join(folder, "cgroup.procs")),
    exceeded() {
      if (count(tree.memoryEvents, "oom_kill") > 0) return "memory";
      return count(tree.processEvents, "max") > 0 ? "processes" : null;
    },
    standBack(isBehind) {
      const { file, behind, usual } = tree.weight;
      setIn(folders, [file, isBehind ? behind : usual]);
    },
    usage() {
      const used = read(tree.memory[0], "");
      const time = read(tree.cpu[0], tree.cpu[1]);
      if (used === null || time === null) return null;
      return { memoryBytes: Math.max(0, used - count("memory.stat", tree.memory[1])), cpuMs: time / tree.cpu[2] };
    },
    remove: () => folders.map(removed).every(Boolean),
  };
}

function makeGroups(tree: Tree, folders: readonly string[], limits: ResourceLimits): void {
  for (const folder of tree.folders) mkdirSync(folder, { recursive: true });
  if (tree === version2) {
    for (const folder of [root, ...tree.folders])
      writeFileSync(join(folder, "cgroup.subtree_control"), "+memory +pids +cpu");
  }
  for (const folder of folders) mkdirSync(folder);
  setIn(tree.folders, tree.share);
  for (const limit of tree.limits(limits)) setIn(folders, limit);
}

function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return true;
    if (code === "EBUSY") return false;
    throw error;
  }
}

/** Does nothing if the kernel lacks the file, as without accounting of swap. */
function setIn(folders: readonly string[], [file, value]: readonly [string, string]): void {
  const path = folders.map((folder) => join(folder, file)).find((one) => existsSync(one));
  if (path !== undefined) writeFileSync(path, value);
}
