import { existsSync, type Dirent } from "node:fs";
import { mkdir, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lfsPath, madeMark } from "./store.ts";

const dayMs = 24 * 60 * 60 * 1_000;
const atOnce = 100;

/** Folder of marks in a store, one for each commit whose contents were noted as used. */
const usedMarks = (store: string): string => join(store, "used");

/**
 * Records, at most once a day for each commit, that its contents are used. To be called before those that are missing
 * are fetched: none of the others is removed meanwhile.
 * @param store of a mirror
 * @param namesOf the contents of the commit's files; null if unknown
 */
export async function noteUsed(
  store: string,
  sha: string,
  namesOf: () => Promise<readonly string[] | null>,
): Promise<void> {
  const mark = join(usedMarks(store), sha);
  const { mtimeMs } = await stat(mark).catch(() => ({ mtimeMs: 0 }));
  if (Date.now() - mtimeMs < dayMs) return;
  const names = await namesOf();
  if (names === null) return;
  const now = new Date();
  for (let start = 0; start < names.length; start += atOnce) {
    const some = names.slice(start, start + atOnce);
    // Missing ones will be fetched, which is a use, too.
    await Promise.all(some.map((oid) => utimes(lfsPath(store, oid), now, now).catch(() => undefined)));
  }
  await mkdir(usedMarks(store), { recursive: true });
  await writeFile(mark, "");
}

/**
 * Removes contents that no session used for so many days. Those that a session made and that the remote is not known to
 * have stay; what is missing later is fetched again.
 * @param store of a mirror
 * @returns how many were removed
 */
export async function pruneContents(store: string, days: number, signal: AbortSignal): Promise<number> {
  const before = Date.now() - days * dayMs;
  const isOld = async (path: string): Promise<boolean> =>
    (await stat(path).catch(() => ({ mtimeMs: Date.now() }))).mtimeMs < before;
  let removed = 0;
  for (const { name: oid, parentPath } of await filesBelow(join(store, "objects"))) {
    signal.throwIfAborted();
    const path = join(parentPath, oid);
    if (existsSync(madeMark(store, oid)) || !(await isOld(path))) continue;
    await rm(path, { force: true });
    removed += 1;
  }
  for (const { name, parentPath } of await filesBelow(usedMarks(store))) {
    const mark = join(parentPath, name);
    if (await isOld(mark)) await rm(mark, { force: true });
  }
  return removed;
}

/** The files below a folder; none if it does not exist. */
async function filesBelow(folder: string): Promise<Dirent[]> {
  if (!existsSync(folder)) return [];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile());
}
