import { readFile, statfs } from "node:fs/promises";
import type { DiskUsage } from "./disk-usage.ts";

/** Free space of a file system, and shared memory used on the machine. */
export interface FreeSpace {
  readonly bytes: number;
  /** Free inodes; null: the file system creates inodes as needed. */
  readonly files: number | null;
  /** Shared memory without a file on a disk (`Shmem`, proc_meminfo(5)); 0 if unknown. */
  readonly sharedBytes: number;
}

/** Free space around a folder. @returns null if the folder does not exist */
export async function freeSpaceOf(folder: string): Promise<FreeSpace | null> {
  try {
    const [{ bavail, bsize, files, ffree }, sharedBytes] = await Promise.all([statfs(folder), usedSharedBytes()]);
    return { bytes: bavail * bsize, files: files === 0 ? null : ffree, sharedBytes };
  } catch {
    return null;
  }
}

async function usedSharedBytes(): Promise<number> {
  const meminfo = await readFile("/proc/meminfo", "utf8").catch(() => "");
  return Number(/^Shmem:\s+(\d+) kB$/mu.exec(meminfo)?.[1] ?? 0) * 1024;
}

/**
 * After this many measurements in a row without a descriptor in flight, none is assumed to be in flight. Fewer could
 * miss one that is received and sent again between measurements.
 */
const quietMeasurements = 20;

type Measurement = { readonly used: DiskUsage; readonly room: FreeSpace };

/**
 * Estimates what files in flight hold, since their size can't be seen. Everything that the file system (or shared
 * memory) lost since the last measurement without descriptors in flight, and that was not measured otherwise, counts as
 * theirs. Other programs may have written it; but a program that hides nothing receives descriptors at once.
 * @returns a function to call with each measurement, in order of time, and with the free space at the start: returns
 * what to add to the measurement
 */
export function createInFlightCount(): (
  look: Measurement,
  atStart?: FreeSpace | null,
) => Pick<DiskUsage, "bytes" | "files" | "sharedBytes"> {
  let before: Measurement | null = null;
  let quiet = quietMeasurements;
  return (now, atStart = null) => {
    quiet = now.used.inFlight > 0 ? 0 : quiet + 1;
    before ??= { used: now.used, room: atStart ?? now.room };
    if (quiet >= quietMeasurements) {
      before = now;
      return { bytes: 0, files: 0, sharedBytes: 0 };
    }
    const { used, room } = before;
    const files = room.files === null || now.room.files === null ? 0 : room.files - now.room.files;
    return {
      bytes: Math.max(0, room.bytes - now.room.bytes - (now.used.bytes - used.bytes)),
      files: Math.max(now.used.inFlight, files - (now.used.files - used.files)),
      sharedBytes: Math.max(0, now.room.sharedBytes - room.sharedBytes - (now.used.sharedBytes - used.sharedBytes)),
    };
  };
}
