import { randomUUID } from "node:crypto";
import { chmod, copyFile, link, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../observability.ts";
import type { SessionPaths } from "./session-folders.ts";

/** The result of a setup on disk: two tar archives, which are only unpacked inside sandboxes. */
export interface Archives {
  /** Files that the setup made in the clone and that are not in git. */
  readonly work: string;
  /** The home after the setup. */
  readonly home: string;
}

/** The record of a setup's result, in addition to its archives. */
export interface SetupRecord {
  /** Paths of the folders in which the result was made: its files may contain them. */
  readonly originalPaths: SessionPaths;
  /** Files that were left out because they contained a secret. */
  readonly leftOut: readonly string[];
}

/** A `SetupRecord` as it is in its file, under the names that every version of Offstage reads. */
interface StoredRecord extends Pick<SetupRecord, "leftOut"> {
  readonly madeAt: SessionPaths;
}

/** A cache of setup results on this machine's disk. */
export interface EnvironmentCache {
  /**
   * Finds a result, and marks it as used.
   * @param into makes an empty folder, into which the archives are linked: they stay there if the cache drops or replaces the
   *   result, until the folder is removed
   * @returns null if there is none
   */
  find(key: string, into: () => Promise<string>): Promise<(Archives & SetupRecord) | null>;
  /**
   * Stores archives under the key, and removes the least recently used results beyond the size limit. The archives must
   * not be written to afterwards. Failing to store is only logged: the setup then runs again the next time.
   */
  keep(key: string, result: Archives & SetupRecord, logger: Logger): Promise<void>;
}

/**
 * Makes a cache of setup results by the hash of their inputs.
 * @param options.maximumBytes of all archives together; 0: nothing is stored
 */
export function createEnvironmentCache(options: {
  readonly directory: string;
  readonly maximumBytes: number;
}): EnvironmentCache {
  const { directory, maximumBytes } = options;
  const at = (name: string): string => join(directory, name);
  const archivesIn = (folder: string): Archives => ({ work: join(folder, "work.tar"), home: join(folder, "home.tar") });

  const recordFile = (folder: string): string => join(folder, "made-at.json");

  /** Null if a loss of power left the record unreadable: the result is deleted, and made again. */
  async function readRecord(file: string, folder: string): Promise<SetupRecord | null> {
    try {
      const { madeAt, leftOut } = JSON.parse(await readFile(file, "utf8")) as StoredRecord;
      return { originalPaths: madeAt, leftOut };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      await rm(folder, { recursive: true, force: true });
      return null;
    }
  }

  async function prune(): Promise<void> {
    const folders = await Promise.all(
      (await readdir(directory)).map(async (name) => {
        const { work, home } = archivesIn(at(name));
        const [one, other, folder] = await Promise.all([sizeOf(work), sizeOf(home), stat(at(name)).catch(() => null)]);
        return { name, bytes: one + other, usedAt: folder?.mtimeMs ?? 0 };
      }),
    );
    let total = folders.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { name, bytes } of folders.toSorted((a, b) => a.usedAt - b.usedAt)) {
      if (total <= maximumBytes) return;
      await rm(at(name), { recursive: true, force: true });
      total -= bytes;
    }
  }

  return {
    async find(key, into) {
      const folder = at(key);
      try {
        const found = await madeOf(folder);
        if ((await sizeOf(archivesIn(folder).home)) === 0) return null;
        const archived = await into();
        const archives = archivesIn(archived);
        await put(archivesIn(folder).work, archives.work);
        await put(archivesIn(folder).home, archives.home);
        await put(recordFile(folder), recordFile(archived));
        // The result was replaced meanwhile, so the files may be of two different ones.
        if ((await madeOf(folder)) !== found) return null;
        const record = await readRecord(recordFile(archived), folder);
        if (record === null) return null;
        const now = new Date();
        await utimes(folder, now, now);
        return { ...archives, ...record };
      } catch (error) {
        // Deleted in the meantime: the setup runs again.
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
    },
    async keep(key, { work, home, originalPaths, leftOut }, logger) {
      if (maximumBytes === 0) return;
      const folder = at(`${key}.${randomUUID()}`);
      try {
        const bytes = (await sizeOf(work)) + (await sizeOf(home));
        if (bytes > maximumBytes) throw new Error("it is larger than OFFSTAGE_SETUP_CACHE_MB");
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await chmod(directory, 0o700);
        const kept = archivesIn(folder);
        await put(work, kept.work);
        await put(home, kept.home);
        const record: StoredRecord = { madeAt: originalPaths, leftOut };
        await writeFile(recordFile(folder), JSON.stringify(record), { mode: 0o400 });
        await rename(folder, at(key));
        await prune();
      } catch (error) {
        await rm(folder, { recursive: true, force: true });
        // Another session stored the same result at the same time, or the disk is full: the next session runs the setup again.
        logger.info({ err: error }, "could not cache the result of a setup");
      }
    },
  };
}

/** Makes a hard link to a file, or a copy if the file system can't link. */
async function put(file: string, to: string): Promise<void> {
  await link(file, to).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw error;
    return copyFile(file, to);
  });
  await chmod(to, 0o400);
}

/** Identifies a folder: the creation time differs even if a replaced folder's inode number is used again. */
async function madeOf(folder: string): Promise<string> {
  const { ino, birthtimeNs } = await stat(folder, { bigint: true });
  return `${ino}:${birthtimeNs}`;
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}
