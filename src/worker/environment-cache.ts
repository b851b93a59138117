import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../observability.ts";
import type { MadeAt } from "./session-folders.ts";

/** A prepared environment as it lies on disk: archives that only sandboxes unpack. */
export interface Archives {
  /** What the setup made in the clone beside what is in git. */
  readonly work: string;
  readonly home: string;
}

export interface EnvironmentCache {
  find(key: string): Promise<(Archives & { readonly madeAt: MadeAt }) | null>;
  /** Keeps what `write` writes under the key, unless it throws; forgets what was not used for the longest time. */
  keep(
    key: string,
    madeAt: MadeAt,
    write: (archives: Archives, maximumBytes: number) => Promise<void>,
    logger: Logger,
  ): Promise<void>;
}

/** Results of setups by the hash of their inputs. `maximumBytes` 0 keeps none. */
export function createEnvironmentCache(options: {
  readonly directory: string;
  readonly maximumBytes: number;
}): EnvironmentCache {
  const { directory, maximumBytes } = options;
  const at = (name: string): string => join(directory, name);
  const archivesIn = (folder: string): Archives => ({ work: join(folder, "work.tar"), home: join(folder, "home.tar") });

  const madeAtFile = (folder: string): string => join(folder, "made-at.json");

  /** Null where a machine that lost its power left nothing of it: it is made anew then. */
  async function readMadeAt(folder: string): Promise<MadeAt | null> {
    try {
      const { workspace, home } = JSON.parse(await readFile(madeAtFile(folder), "utf8")) as MadeAt;
      return { workspace, home };
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
    async find(key) {
      const archives = archivesIn(at(key));
      if ((await sizeOf(archives.home)) === 0) return null;
      const madeAt = await readMadeAt(at(key));
      if (madeAt === null) return null;
      const now = new Date();
      await utimes(at(key), now, now);
      return { ...archives, madeAt };
    },
    async keep(key, { workspace, home }, write, logger) {
      if (maximumBytes === 0) return;
      const folder = at(`${key}.${randomUUID()}`);
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await write(archivesIn(folder), maximumBytes);
        await writeFile(madeAtFile(folder), JSON.stringify({ workspace, home }));
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

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}
