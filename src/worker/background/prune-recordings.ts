import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Removes recordings that were not written to for the given number of days.
 * @param days 0 removes none
 * @returns how many were removed
 */
export async function pruneRecordings(directory: string, days: number, signal: AbortSignal): Promise<number> {
  if (days === 0) return 0;
  let count = 0;
  for (const name of await readdir(directory).catch(() => [])) {
    if (signal.aborted) break;
    const path = join(directory, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs <= days * dayMs) continue;
    await rm(path, { force: true });
    count += 1;
  }
  return count;
}
