import { readFile, readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { ResourceLimits } from "../sandbox.ts";
import type { Inspected } from "./api.ts";
import type { Handshake, KernelFile } from "./handshake.ts";
import { requireNoNetwork } from "./network.ts";

/**
 * What the kernel says of a container before its command runs; the engine's own description is not trusted. Read from
 * /proc of this machine by the process id that the engine names, if that process is in the container's control group;
 * else printed inside, by the image's shell.
 */
interface Kernel {
  /** `/proc/<pid>/status` (proc_pid_status(5)). */
  readonly status: string;
  readonly mounts: string;
  readonly interfaces: string;
  /** Null if there is no limit, or it can't be read. */
  readonly memoryBytes: number | null;
  readonly processes: number | null;
  readonly cpus: number | null;
  /** Whether it has the server's own network; null if that can't be seen. */
  readonly sharesNetwork: boolean | null;
}

/** What a container must have. */
export interface Expected {
  readonly limits: ResourceLimits | undefined;
  /** False for a runtime with its own kernel (gVisor), which shows neither its filter nor its control groups. */
  readonly sameKernel: boolean;
}

/**
 * Verifies a container that waits before its command against what was asked for, and tries in it what must be impossible.
 * @throws ConflictError that names what the engine or the kernel has instead, or what can be reached
 */
export async function verifyContainer(inspected: Inspected, handshake: Handshake, expected: Expected): Promise<void> {
  const kernel = (await readFromOutside(inspected)) ?? (await readFromInside(handshake));
  const problem = engineProblem(inspected.HostConfig, expected.limits) ?? kernelProblem(kernel, expected);
  if (problem !== null) {
    throw new ConflictError(
      `the container was not started, because the engine did not set it up as requested: ${problem}`,
    );
  }
  await requireNoNetwork(handshake.probeNetwork);
}

function engineProblem(has: Inspected["HostConfig"], limits: ResourceLimits | undefined): string | null {
  if (has.NetworkMode !== "none") return `the engine reports the network ${has.NetworkMode} instead of none`;
  if (has.Privileged === true) return "the engine reports that the container is privileged";
  if (has.ReadonlyRootfs !== true) return "the engine reports a writable root file system";
  if (limits === undefined) return null;
  const { memoryBytes, processes, cpus } = limits;
  if (has.Memory !== memoryBytes) return `the engine reports ${has.Memory} bytes of memory instead of ${memoryBytes}`;
  if (has.PidsLimit !== processes) return `the engine reports ${has.PidsLimit} processes instead of ${processes}`;
  if (has.NanoCpus !== nanoCpus(cpus))
    return `the engine reports ${(has.NanoCpus ?? 0) / 1e9} cores instead of ${cpus}`;
  // Ended in the meantime, or not readable for this user.
  return null;
}

/** Cores as engines count them: billionths of a core. */
export function nanoCpus(cpus: number): number {
  return Math.round(cpus * 1e9);
}

/** Maximum size of a memory page, to which the kernel rounds limits. */
const biggestPage = 65_536;
/**
 * Interfaces that some kernels create in each new network namespace, down and without an address; no process inside can
 * change that.
 */
const emptyTunnels = /^(?:tunl|gre|gretap|erspan|ip_vti|ip6_vti|sit|ip6tnl|ip6gre)0$/u;

function kernelProblem(kernel: Kernel, { limits, sameKernel }: Expected): string | null {
  const others = interfacesOf(kernel.interfaces).filter((name) => name !== "lo" && !emptyTunnels.test(name));
  if (others.length > 0) return `the kernel shows a network (${others.join(", ")}); only loopback is allowed`;
  if (kernel.sharesNetwork === true) return "the kernel shows it in the server's own network";
  const status = (name: string): string | undefined =>
    new RegExp(`^${name}:\\s+(\\S+)$`, "mu").exec(kernel.status)?.[1];
  const capabilities = ["CapInh", "CapPrm", "CapEff", "CapBnd"].find((name) => !/^0+$/u.test(status(name) ?? "none"));
  if (capabilities !== undefined)
    return `the kernel shows capabilities (${capabilities} ${status(capabilities) ?? "unknown"})`;
  if (!isRootReadOnly(kernel.mounts)) return "the kernel shows a writable root file system";
  if (!sameKernel) return null;
  if (status("NoNewPrivs") !== "1") return "the kernel lets it gain privileges (no_new_privs is not set)";
  if (status("Seccomp") !== "2") return "the kernel does not filter its system calls (seccomp)";
  return limits === undefined ? null : limitProblem(kernel, limits);
}

function limitProblem({ memoryBytes, processes, cpus }: Kernel, limits: ResourceLimits): string | null {
  if (memoryBytes === null || memoryBytes > limits.memoryBytes || memoryBytes <= limits.memoryBytes - biggestPage) {
    return `the kernel has ${memoryBytes ?? "no"} bytes as its memory limit instead of ${limits.memoryBytes} (rootless engines need control groups of version 2)`;
  }
  if (processes !== limits.processes) {
    return `the kernel has ${processes ?? "nothing"} as its limit of processes instead of ${limits.processes}`;
  }
  // The kernel counts in fractions of a period, of at least a thousandth of a core.
  if (cpus === null || Math.abs(cpus - limits.cpus) > 0.01 * limits.cpus + 0.001) {
    return `the kernel has ${cpus ?? "nothing"} as its limit of cores instead of ${limits.cpus}`;
  }
  return null;
}

function interfacesOf(text: string): string[] {
  return text.split("\n").flatMap((line) => /^\s*([^\s:|]+):/u.exec(line)?.[1] ?? []);
}

/** The last mount on `/` is the visible one (proc_pid_mountinfo(5)). */
function isRootReadOnly(mounts: string): boolean {
  const root = mounts.split("\n").findLast((line) => line.split(" ")[4] === "/");
  return root?.split(" ")[5]?.split(",").includes("ro") === true;
}

/** Whether the process id, as seen from this process, belongs to the container. */
export async function isOf(pid: number, container: string): Promise<boolean> {
  if (pid <= 0) return false;
  const groups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
  return groups.includes(container);
}

async function readFromOutside({ Id: id, State: { Pid: pid } }: Inspected): Promise<Kernel | null> {
  if (!(await isOf(pid, id))) return null;
  try {
    const read = (name: string): Promise<string> => readFile(`/proc/${pid}/${name}`, "utf8");
    const [status, mounts, interfaces, groups] = await Promise.all(
      ["status", "mountinfo", "net/dev", "cgroup"].map(read) as [
        Promise<string>,
        Promise<string>,
        Promise<string>,
        Promise<string>,
      ],
    );
    const bounds = await boundsOf(groups, id);
    const networks = await Promise.all([pid, "self"].map((of) => readlink(`/proc/${of}/ns/net`).catch(() => null)));
    const sharesNetwork = networks.includes(null) ? null : networks[0] === networks[1];
    return bounds === null ? null : { status, mounts, interfaces, ...bounds, sharesNetwork };
  } catch {
    // Gone in the meantime, or not to be read by this user.
    return null;
  }
}

type Bounds = Pick<Kernel, "memoryBytes" | "processes" | "cpus">;
const tree = "/sys/fs/cgroup";

/**
 * The lowest limits of the container's group and of the groups between it and the process. Null if they can't be read.
 */
async function boundsOf(groups: string, container: string): Promise<Bounds | null> {
  const paths = new Map(
    groups.split("\n").flatMap((line): [string, string][] => {
      const [, controllers = "", path] = /^\d+:([^:]*):(.*)$/u.exec(line) ?? [];
      return path?.includes(container) === true ? controllers.split(",").map((name) => [name, path]) : [];
    }),
  );
  const found = await Promise.all(
    (["memory", "pids", "cpu"] as const).map(async (controller) => {
      const path = paths.get(controller);
      const [folder, at] = path === undefined ? [tree, paths.get("")] : [join(tree, controller), path];
      return at === undefined ? null : bestBound(controller, folder, at, container);
    }),
  );
  const [memoryBytes, processes, cpus] = found;
  if (memoryBytes == null || processes == null || cpus == null) return null;
  const bounded = (value: number): number | null => (Number.isFinite(value) ? value : null);
  return { memoryBytes: bounded(memoryBytes), processes: bounded(processes), cpus: bounded(cpus) };
}

type Controller = "memory" | "pids" | "cpu";

async function bestBound(
  controller: Controller,
  folder: string,
  path: string,
  container: string,
): Promise<number | null> {
  let best: number | null = null;
  for (let at = path; at.includes(container); at = dirname(at)) {
    const bound = await readBound(controller, (file) => readFile(join(folder, at, file), "utf8"));
    if (bound !== null) best = Math.min(best ?? Number.POSITIVE_INFINITY, bound);
  }
  return best;
}

/** Infinite if there is no limit, null if there is no such file. */
async function readBound(
  controller: Controller,
  read: (file: string) => Promise<string | undefined>,
): Promise<number | null> {
  const first = async (...files: string[]): Promise<string | null> => {
    for (const file of files) {
      const content = await read(file).catch(() => undefined);
      if (content !== undefined) return content.trim();
    }
    return null;
  };
  const quantity = (content: string | null): number | null =>
    content === null ? null : /^\d+$/u.test(content) ? Number(content) : Number.POSITIVE_INFINITY;
  if (controller === "memory") return quantity(await first("memory.max", "memory.limit_in_bytes"));
  if (controller === "pids") return quantity(await first("pids.max"));
  const [quota, period] = (
    (await first("cpu.max")) ?? `${await first("cpu.cfs_quota_us")} ${await first("cpu.cfs_period_us")}`
  ).split(" ");
  if (quota === "null" || quota === undefined) return null;
  return /^\d+$/u.test(quota) ? Number(quota) / Number(period) : Number.POSITIVE_INFINITY;
}

async function readFromInside(handshake: Handshake): Promise<Kernel> {
  const files = await handshake.readKernelFiles();
  const bound = async (controller: Controller): Promise<number | null> => {
    const read = (file: string): Promise<string | undefined> =>
      Promise.resolve(files[`${tree}/${file}` as KernelFile] ?? files[`${tree}/${controller}/${file}` as KernelFile]);
    const value = await readBound(controller, read);
    return value !== null && Number.isFinite(value) ? value : null;
  };
  return {
    status: files["/proc/self/status"] ?? "",
    mounts: files["/proc/self/mountinfo"] ?? "",
    interfaces: files["/proc/self/net/dev"] ?? "",
    memoryBytes: await bound("memory"),
    processes: await bound("pids"),
    cpus: await bound("cpu"),
    sharesNetwork: null,
  };
}
