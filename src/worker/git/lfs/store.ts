import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Folder of a mirror with the contents of its files in LFS, which all its clones read. */
export function lfsStore(mirror: string): string {
  return join(mirror, "lfs");
}

/** Path of a content in a store. */
export function lfsPath(store: string, oid: string): string {
  return join(store, "objects", oid.slice(0, 2), oid.slice(2, 4), oid);
}

/** Path of the mark of a content in a mirror's store that a session made and that the remote is not known to have. */
export function madeMark(store: string, oid: string): string {
  return join(store, "made", oid);
}

/** Marks a content that a session made. To be called before the content is in the store. */
export async function markMade(store: string, oid: string): Promise<void> {
  await mkdir(join(store, "made"), { recursive: true });
  await writeFile(madeMark(store, oid), "");
}

/** Whether the remote has a content, as far as a mirror's store knows: it came from there, or was uploaded. */
export function isOnServer(store: string, oid: string): boolean {
  return existsSync(lfsPath(store, oid)) && !existsSync(madeMark(store, oid));
}
