import { statfs } from "node:fs/promises";

/** Whether the disk of a folder has so many bytes left for users other than root. */
export async function hasFreeSpace(folder: string, bytes: number): Promise<boolean> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize >= bytes;
}
