import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Database } from "../../database/database.ts";
import { recordedSession, recordingName } from "../../domain/sessions/recording.ts";
import { existingSessions } from "../../store/sessions/delete-session.ts";
import { namesIn } from "../disk/session-folders.ts";

/** Recordings that one query looks up. */
const batchSize = 1_000;
const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Removes recordings that were not written to for the given number of days.
 * @param days 0 removes none
 * @returns how many were removed
 */
export async function pruneRecordings(directory: string, days: number, signal: AbortSignal): Promise<number> {
  if (days === 0) return 0;
  let count = 0;
  for (const name of await namesIn(directory)) {
    if (signal.aborted) break;
    const path = join(directory, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs <= days * dayMs) continue;
    await rm(path, { force: true });
    count += 1;
  }
  return count;
}

/**
 * Removes the recordings of sessions that were deleted.
 * @returns how many were removed
 */
export async function pruneRecordingsOfDeleted(
  database: Database,
  directory: string,
  signal: AbortSignal,
): Promise<number> {
  const names = await namesIn(directory);
  const ids = names.map(recordedSession).filter((id) => id !== null);
  let count = 0;
  for (let at = 0; at < ids.length && !signal.aborted; at += batchSize) {
    const batch = ids.slice(at, at + batchSize);
    const existing = await existingSessions(database, batch);
    for (const id of batch.filter((candidate) => !existing.has(candidate))) {
      await rm(join(directory, recordingName(id)), { force: true });
      count += 1;
    }
  }
  return count;
}
