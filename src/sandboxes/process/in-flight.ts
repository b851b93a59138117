import { readFile, statfs } from "node:fs/promises";
import type { DiskUsage } from "./disk-usage.ts";

/** What a file system has left, and what the machine has given away of memory without a name. */
export interface Room {
  readonly bytes: number;
  /** Null: the file system makes inodes as they are needed. */
  readonly files: number | null;
  /** Of memory that belongs to files of no disk (`Shmem` of proc_meminfo(5)); 0 if the system does not say. */
  readonly sharedBytes: number;
}

/** @returns null if the folder is gone */
export async function roomAround(folder: string): Promise<Room | null> {
  try {
    const [{ bavail, bsize, files, ffree }, sharedBytes] = await Promise.all([statfs(folder), usedSharedBytes()]);
    return { bytes: bavail * bsize, files: files === 0 ? null : ffree, sharedBytes };
  } catch {
    return null;
  }
}

async function usedSharedBytes(): Promise<number> {
  const said = await readFile("/proc/meminfo", "utf8").catch(() => "");
  return Number(/^Shmem:\s+(\d+) kB$/mu.exec(said)?.[1] ?? 0) * 1024;
}

/** So many looks without a descriptor in flight in between may be ones at which it was just received and not sent again. */
const quietLooks = 20;

type Look = { readonly used: DiskUsage; readonly room: Room };

/**
 * What files in flight may hold: nobody can see their size. From the last look before a session had any in flight, all that the
 * file system (or the machine's memory) lost and that was not counted counts as theirs. Others may have written it; but a
 * program that does not mean to hide anything receives at once what it is sent.
 * @returns what is to be added to each next look's count, which is given in the order of time with what there was before them
 */
export function createInFlightCount(): (
  look: Look,
  atStart?: Room | null,
) => Pick<DiskUsage, "bytes" | "files" | "sharedBytes"> {
  let before: Look | null = null;
  let quiet = quietLooks;
  return (now, atStart = null) => {
    quiet = now.used.inFlight > 0 ? 0 : quiet + 1;
    before ??= { used: now.used, room: atStart ?? now.room };
    if (quiet >= quietLooks) {
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
