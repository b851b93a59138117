import { statfs } from "node:fs/promises";

/** The space of a disk, in bytes. */
export interface DiskSpace {
  /** For users other than root. */
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** The space of the disk that a folder is on. */
export async function spaceOf(folder: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** Whether the disk of a folder has so many bytes left for users other than root. */
export async function hasFreeSpace(folder: string, bytes: number): Promise<boolean> {
  return (await spaceOf(folder)).freeBytes >= bytes;
}
