import { randomBytes } from "node:crypto";
import { link, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** How a file is written. */
export interface AtomicFile {
  /** Permissions; default: what the process's umask leaves of reading and writing. */
  readonly mode?: number;
  /**
   * Whether the file must outlast a loss of power from the moment on at which the call settles. Its content and its name are
   * then synced to the disk, which takes milliseconds. If not, a loss of power may leave it empty or as it was before, and
   * its reader must know what to do then; the end of a process never does.
   */
  readonly durable?: boolean;
}

/**
 * Writes a file, or replaces it: a reader, also after a crash, finds the old content or the new, never a part. There
 * may be one writer of a path at a time.
 */
export async function replaceFile(path: string, content: string, options: AtomicFile = {}): Promise<void> {
  // One name, so that a process that is killed again and again leaves one file.
  const fresh = `${path}.new`;
  await write(fresh, content, { ...options, flags: "w" });
  await rename(fresh, path);
  if (options.durable === true) await syncFolder(dirname(path));
}

/**
 * Writes a file, whole or not at all, unless there is one. If several do so at the same time, the first one's stays.
 * @returns whether it was written
 */
export async function createFile(path: string, content: string, options: AtomicFile = {}): Promise<boolean> {
  const fresh = `${path}.${randomBytes(6).toString("hex")}.new`;
  try {
    await write(fresh, content, { ...options, flags: "wx" });
    // Unlike a rename, a link replaces nothing.
    await link(fresh, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(fresh, { force: true });
  }
  if (options.durable === true) await syncFolder(dirname(path));
  return true;
}

async function write(
  path: string,
  content: string,
  { mode, durable, flags }: AtomicFile & { readonly flags: "w" | "wx" },
): Promise<void> {
  const file = await open(path, flags, mode);
  try {
    // One that a killed process left may have other permissions.
    if (mode !== undefined) await file.chmod(mode);
    await file.writeFile(content);
    if (durable === true) await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes the names in a folder outlast a loss of power: the sync of a file does not (fsync(2)). */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
