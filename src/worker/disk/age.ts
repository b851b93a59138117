import { stat } from "node:fs/promises";

const dayMs = 24 * 60 * 60 * 1_000;

/** Whether a file or folder was last changed more than a day ago: what is made at its place is then given up. False if it is gone. */
export async function isOlderThanADay(path: string): Promise<boolean> {
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
  return Date.now() - mtimeMs > dayMs;
}
