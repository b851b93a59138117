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
import type { Exceeded, Limits } from "../sandbox.ts";

export interface ControlGroup {
  /** Files to which a process writes itself to be bound with all that it starts. */
  readonly joinFiles: readonly string[];
  /** The bound that was run into, if any. */
  exceeded(): Exceeded | null;
  /** False while something is still in it: to be tried again. */
  remove(): boolean;
}

/** Where the kernel shows control groups: one tree (version 2), or one for each controller (version 1). */
interface Tree {
  readonly folders: readonly string[];
  readonly limits: (limits: Limits) => readonly (readonly [file: string, value: string])[];
  /** The processor time of all sandboxes together beside the server's, which comes first if both want some. */
  readonly share: readonly [file: string, value: string];
  readonly memoryEvents: string;
  readonly processEvents: string;
}

const root = "/sys/fs/cgroup";
const name = "offstage";

const cpuPeriod = 100_000;
/** Where everybody else has 1,024 (version 1), or 100 (version 2). Priorities of processes (nice) don't count between groups. */
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
  memoryEvents: "memory.events",
  processEvents: "pids.events",
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
  memoryEvents: "memory.oom_control",
  processEvents: "pids.events",
};

/** Null where this process may not make control groups: it is not root, or they are read-only as in most containers. */
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

/** Whether bounds can be set here: one is really made to find out, since a container may show a tree that it can't use. */
export function canLimit(): boolean {
  removeLeft();
  const group = createControlGroup({ memoryBytes: 2 ** 30, processes: 100, diskBytes: 2 ** 30, cpus: 1 });
  group?.remove();
  return group !== null;
}

/** Removes the groups of servers that were killed; what still has a process in it stays. */
function removeLeft(): void {
  for (const folder of findTree()?.folders ?? []) {
    if (!existsSync(folder)) continue;
    for (const entry of readdirSync(folder)) {
      const server = Number(/^(\d+)-/u.exec(entry)?.[1] ?? Number.NaN);
      if (!Number.isNaN(server) && !existsSync(`/proc/${server}`)) removed(join(folder, entry));
    }
  }
}

/** What the kernel says where the tree is not ours to change, as in most containers. */
const notOurs = new Set(["EACCES", "EBUSY", "EINVAL", "ENOENT", "EOPNOTSUPP", "EPERM", "EROFS"]);

/** A control group with these bounds (cgroups(7)); null where none can be made. */
export function createControlGroup(limits: Limits): ControlGroup | null {
  const tree = findTree();
  if (tree === null) return null;
  // The server's own number in it tells whose groups are left when it was killed.
  const folders = tree.folders.map((folder) => join(folder, `${process.pid}-${randomUUID()}`));
  try {
    makeGroups(tree, folders, limits);
  } catch (error) {
    for (const folder of folders) removed(folder);
    if (notOurs.has((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
  const count = (file: string, key: string): number => {
    const path = folders.map((folder) => join(folder, file)).find((one) => existsSync(one));
    const text = path === undefined ? "" : readFileSync(path, "utf8");
    return Number(new RegExp(`^${key} (\\d+)$`, "mu").exec(text)?.[1] ?? 0);
  };
  return {
    joinFiles: folders.map((folder) => join(folder, "cgroup.procs")),
    exceeded() {
      if (count(tree.memoryEvents, "oom_kill") > 0) return "memory";
      return count(tree.processEvents, "max") > 0 ? "processes" : null;
    },
    remove: () => folders.map(removed).every(Boolean),
  };
}

function makeGroups(tree: Tree, folders: readonly string[], limits: Limits): void {
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

/** A kernel without accounting of swap, for example, has no file for it. */
function setIn(folders: readonly string[], [file, value]: readonly [string, string]): void {
  const path = folders.map((folder) => join(folder, file)).find((one) => existsSync(one));
  if (path !== undefined) writeFileSync(path, value);
}
