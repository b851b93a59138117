import { randomUUID } from "node:crypto";
import { chmod, copyFile, link, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../observability.ts";
import type { MadeAt } from "./session-folders.ts";

/** A prepared environment as it lies on disk: archives that only sandboxes unpack. */
export interface Archives {
  /** What the setup made in the clone beside what is in git. */
  readonly work: string;
  readonly home: string;
}

/** What is known of a result beside its files. */
export interface SetupRecord {
  /** Folders in which it finds itself. */
  readonly madeAt: MadeAt;
  /** Files that are no part of it, because a secret was in them. */
  readonly leftOut: readonly string[];
}

export interface EnvironmentCache {
  /**
   * @param into an empty folder, made by this, in which the archives are found by names of their own: what is forgotten or replaced
   * meanwhile stays whole there until the folder is removed
   */
  find(key: string, into: () => Promise<string>): Promise<(Archives & SetupRecord) | null>;
  /**
   * Keeps archives under the key, which nothing writes from then on, and forgets what was not used for the longest time. What
   * can't be kept is told of in the log: it is made anew the next time.
   */
  keep(key: string, result: Archives & SetupRecord, logger: Logger): Promise<void>;
}

/** Results of setups by the hash of their inputs. `maximumBytes` 0 keeps none. */
export function createEnvironmentCache(options: {
  readonly directory: string;
  readonly maximumBytes: number;
}): EnvironmentCache {
  const { directory, maximumBytes } = options;
  const at = (name: string): string => join(directory, name);
  const archivesIn = (folder: string): Archives => ({ work: join(folder, "work.tar"), home: join(folder, "home.tar") });

  const recordFile = (folder: string): string => join(folder, "made-at.json");

  /** Null where a machine that lost its power left nothing of it: it is made anew then. */
  async function readRecord(file: string, folder: string): Promise<SetupRecord | null> {
    try {
      const { madeAt, leftOut } = JSON.parse(await readFile(file, "utf8")) as SetupRecord;
      return { madeAt, leftOut };
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
        const held = await into();
        const archives = archivesIn(held);
        await put(archivesIn(folder).work, archives.work);
        await put(archivesIn(folder).home, archives.home);
        await put(recordFile(folder), recordFile(held));
        // Another one by now, of which some of these may be.
        if ((await madeOf(folder)) !== found) return null;
        const record = await readRecord(recordFile(held), folder);
        if (record === null) return null;
        const now = new Date();
        await utimes(folder, now, now);
        return { ...archives, ...record };
      } catch (error) {
        // Forgotten in the meantime: it is made anew.
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
    },
    async keep(key, { work, home, madeAt, leftOut }, logger) {
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
        await writeFile(recordFile(folder), JSON.stringify({ madeAt, leftOut }), { mode: 0o400 });
        await rename(folder, at(key));
        await prune();
      } catch (error) {
        await rm(folder, { recursive: true, force: true });
        // Another session kept the same at the same moment, or the disk is full: the next one sets itself up anew.
        logger.info({ err: error }, "did not keep the result of a setup");
      }
    },
  };
}

/** The same file by another name, if the file system can do that. */
async function put(file: string, to: string): Promise<void> {
  await link(file, to).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw error;
    return copyFile(file, to);
  });
  await chmod(to, 0o400);
}

/** Tells a folder from another that took its place, which may have the number that it had. */
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
