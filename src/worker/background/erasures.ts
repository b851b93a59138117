import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../../atomic-file.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { createPeriodic, withListener } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import { sweepObjects } from "../../store/checkpoints/objects.ts";
import { erasureChannel, finishErasure, lastErasure, unfinishedErasures } from "../../store/organization-data/erase.ts";
import { existingSessions } from "../../store/sessions/delete-session.ts";
import { removeUnusedCheckouts } from "../checkouts/remove-unused.ts";
import { namesIn } from "../disk/session-folders.ts";
import { removeWhenOver } from "./deleted-sessions.ts";
import type { Housekeeping } from "./housekeeping.ts";
import { maintainMirrors } from "./mirror-maintenance.ts";
import { pruneRecordingsOfDeleted } from "./prune-recordings.ts";

const everyMs = 30_000;

interface Place extends Omit<Housekeeping, "retention" | "hasRoom"> {
  /** Folder of kept results of setups. */
  readonly environmentsDirectory: string;
  /** File that says which erasure this worker's disk was last cleaned after. */
  readonly markFile: string;
  /** Waits until no attempt at a session runs on this worker. */
  readonly untilOver: (sessionId: string) => Promise<void>;
}

/**
 * Erases organizations whose erasure was requested, then removes their data from this worker's disk. A worker that was
 * offline at the time does so when it is back.
 */
export function createErasures(place: Place): Service {
  const { database, logger } = place;
  const passes = createPeriodic({
    pass: async (stopping) => {
      await eraseOrganizations(place, stopping);
      if (!stopping.aborted) await cleanDisk(place, stopping);
    },
    everyMs,
    onFailure: (error) => logger.warn({ err: error }, "could not erase an organization; will retry"),
  });
  return withListener(passes, (now) => database.listen(erasureChannel, now));
}

async function eraseOrganizations({ database, logger, objects }: Place, stopping: AbortSignal): Promise<void> {
  for (const organizationId of await unfinishedErasures(database)) {
    if (stopping.aborted || !(await finishErasure(database, organizationId, stopping))) return;
    logger.info({ organizationId }, "erased an organization");
    if (objects !== null) await sweepObjects(database, objects, stopping);
  }
}

/**
 * Removes folders and recordings of sessions that are gone, and all caches: checkouts and mirrors that no session uses,
 * and results of setups. Caches have no record of their organization; those of others are made again when needed. A
 * mirror that a session uses is removed once no session does.
 */
async function cleanDisk(place: Place, stopping: AbortSignal): Promise<void> {
  const { database, logger, folders, mirrors, recordingsDirectory, environmentsDirectory, markFile, untilOver } = place;
  const everything = { days: 0, maximumBytes: 1, alsoLater: true };
  const last = await lastErasure(database);
  if (last === null || (await contentOf(markFile)) === last) return;
  const ids = (await folders.list()).filter((name) => isUuid(name));
  const existing = await existingSessions(database, ids);
  for (const id of ids.filter((each) => !existing.has(each))) {
    // The attempt that the erasure cancelled may also be writing its recording.
    if (!(await removeWhenOver({ folders, mirrors, untilOver }, id, stopping))) return;
  }
  await pruneRecordingsOfDeleted(database, recordingsDirectory, stopping);
  for (const name of await namesIn(environmentsDirectory)) {
    await rm(join(environmentsDirectory, name), { recursive: true, force: true });
  }
  await removeUnusedCheckouts({ checkouts: place.checkouts, logger }, everything, stopping);
  const { failed } = await maintainMirrors({ mirrors, folders, logger }, everything, stopping);
  if (stopping.aborted) return;
  if (failed > 0) throw new Error(`${failed} mirrors that may be of an erased organization could not be removed`);
  await replaceFile(markFile, last, { mode: 0o600 });
}

/** @returns null if there is no such file */
async function contentOf(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  });
}
