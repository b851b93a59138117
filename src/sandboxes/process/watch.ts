import { readdirSync, readFileSync } from "node:fs";
import type { Exceeded, ResourceLimits } from "../sandbox.ts";
import { diskUsage, ownDiskUsage, type DiskUsage, type Holders } from "./disk-usage.ts";
import { createInFlightCount, freeSpaceOf, type FreeSpace } from "./in-flight.ts";

const measureEveryMs = 500;
/** Measuring a large folder takes long: measurements are spaced so that they take at most this share of the time. */
const measuringShare = 0.05;
const longestBetweenMs = 30_000;
const longestWhenFullMs = 3_000;
/**
 * If less than this is free on the machine's disk, a sandbox that used more than `filling` since its first measurement
 * is ended.
 */
const nearlyFull = { bytes: 512 * 1024 * 1024, files: 50_000 };
const filling = { bytes: 64 * 1024 * 1024, files: 20_000 };
const pageBytes = 4_096;
const nothing = { bytes: 0, files: 0, sharedBytes: 0 };

/** A running measurement of a sandbox. */
export interface Watch {
  exceeded(): Exceeded | null;
  stop(): void;
}

/**
 * Enforces the limits that the kernel does not: always disk and files, and memory and processes if no control group can
 * be created. Measures twice a second, so that a limit can be exceeded by what is used between two measurements.
 * @param options.pids all processes inside; null if a control group limits them
 * @param options.holders processes whose deleted open files count
 */
export function watchUsage(options: {
  readonly limits: Pick<ResourceLimits, "diskBytes" | "files"> & Partial<ResourceLimits>;
  readonly folders: readonly string[];
  /** The folder, or a parent of the folders, that may be a file system of the session's own. */
  readonly disk?: string;
  readonly pids: (() => readonly number[]) | null;
  readonly holders?: () => Holders | null;
  /** @param isMachines whether it is the machine's disk that is nearly full: what is used is within the limits */
  readonly onExceeded: (by: Exceeded, isMachines: boolean) => void;
}): Watch {
  const { limits, folders, disk, pids } = options;
  const { diskBytes, files = Infinity, memoryBytes = Infinity, processes = Infinity } = limits;
  let exceeded: Exceeded | null = null;
  let stopped = false;
  let measuring = false;
  let nextMeasure = 0;
  let sharedBytes = 0;
  let usedBefore: Pick<DiskUsage, "bytes" | "files"> | null = null;
  // The estimate of files in flight needs the free space at the start: a command may send descriptors at once.
  const roomAtStart = folders[0] === undefined ? Promise.resolve(null) : freeSpaceOf(folders[0]);
  const inFlight = createInFlightCount();
  let roomBefore: FreeSpace | null = null;

  function end(by: Exceeded, isMachines = false): void {
    if (stopped || exceeded !== null) return;
    exceeded = by;
    options.onExceeded(by, isMachines);
  }

  function measureProcesses(): void {
    const all = pids?.() ?? [];
    if (all.length > processes) end("processes");
    else if (all.length > 0 && memoryOf(all) + sharedBytes > memoryBytes) end("memory");
  }

  function isFilling(room: FreeSpace): boolean {
    if (roomBefore === null) return false;
    const bytes = roomBefore.bytes - room.bytes;
    const inodes = roomBefore.files === null || room.files === null ? 0 : roomBefore.files - room.files;
    return bytes > Math.min(diskBytes / 10, filling.bytes) || inodes > Math.min(files / 10, filling.files);
  }

  async function measureDisk(): Promise<void> {
    const [folder] = folders;
    if (measuring || folder === undefined) return;
    measuring = true;
    try {
      const own = disk === undefined ? null : await ownDiskUsage(disk);
      if (own !== null) {
        if (own.bytes > diskBytes) end("disk");
        else if (own.files > files) end("files");
        // Continue to measure shared memory otherwise.
        if (pids === null) return;
      }
      const room = await freeSpaceOf(folder);
      if ((room === null || !isFilling(room)) && performance.now() < nextMeasure) return;
      roomBefore = room;
      const startedAt = performance.now();
      const counted = await diskUsage(folders, options.holders?.() ?? null);
      const tookMs = performance.now() - startedAt;
      const isFull = room !== null && (room.bytes < nearlyFull.bytes || (room.files ?? Infinity) < nearlyFull.files);
      const longest = isFull ? longestWhenFullMs : longestBetweenMs;
      nextMeasure = performance.now() + Math.min(longest, Math.max(1_000, tookMs / measuringShare));
      if (counted === null) return;
      const hidden = room === null ? nothing : inFlight({ used: counted, room }, await roomAtStart);
      const used = {
        bytes: counted.bytes + hidden.bytes,
        files: counted.files + hidden.files,
        sharedBytes: counted.sharedBytes + hidden.sharedBytes,
      };
      usedBefore ??= used;
      // If the kernel limits memory, its limit includes shared memory.
      sharedBytes = pids === null ? 0 : used.sharedBytes;
      if (used.bytes > diskBytes) end("disk");
      else if (used.files > files) end("files");
      else if (isFull && used.bytes - usedBefore.bytes > filling.bytes) end("disk", true);
      else if (isFull && used.files - usedBefore.files > filling.files) end("files", true);
    } finally {
      measuring = false;
    }
  }

  const timer = setInterval(() => {
    measureProcesses();
    void measureDisk();
  }, measureEveryMs);
  return {
    exceeded: () => exceeded,
    stop() {
      stopped = true;
      clearInterval(timer);
    },
  };
}

/** Resident memory of processes that no file could give back, in bytes. */
export function memoryOf(pids: readonly number[]): number {
  return pids.reduce((total, pid) => {
    const pages = pagesOf(`/proc/${pid}`);
    // If a process's first thread has ended, its id shows no memory: use another thread's.
    return total + (pages === 0 ? Math.max(0, ...threadsOf(pid).map(pagesOf)) : pages) * pageBytes;
  }, 0);
}

/** Resident pages that are not shared with a file (proc_pid_statm(5)). */
function pagesOf(folder: string): number {
  try {
    const [, resident = 0, shared = 0] = readFileSync(`${folder}/statm`, "utf8").split(" ").map(Number);
    return resident - shared;
  } catch {
    return 0;
  }
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}`);
  } catch {
    return [];
  }
}
