import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Database } from "../../database/database.ts";
import type { ListenerHandle } from "../../database/notifications.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { recordingName } from "../../domain/sessions/recording.ts";
import { createService, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { deletedChannel, existingSessions } from "../../store/sessions/delete-session.ts";
import { removeSession } from "../clones/remove-session.ts";
import type { SessionFolders } from "../disk/session-folders.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";

/** Services of the worker for removing sessions. */
interface RemovalServices {
  readonly database: Database;
  readonly logger: Logger;
  readonly folders: SessionFolders;
  readonly mirrors: Mirrors;
  readonly recordingsDirectory: string;
  /** Waits until no attempt at a session runs on this worker. */
  readonly untilOver: (sessionId: string) => Promise<void>;
}

/**
 * Removes from this worker's disk what it has of a session that was deleted: folders, pins in the mirrors, and recording.
 * Housekeeping finds what a worker had of it that was not running then.
 */
export function createRemovalOfDeleted(services: RemovalServices): Service {
  const { database, logger } = services;
  let subscription: ListenerHandle | null = null;
  const removing = new Set<Promise<void>>();
  const stopping = new AbortController();
  return createService({
    async start() {
      subscription = await database.listen(deletedChannel, (sessionId) => {
        if (!isUuid(sessionId)) return;
        const removal = removeDeleted(services, sessionId, stopping.signal)
          .catch((error: unknown) =>
            logger.warn(
              { err: error, sessionId },
              "could not remove a deleted session's files; housekeeping will retry",
            ),
          )
          .finally(() => removing.delete(removal));
        removing.add(removal);
      });
    },
    async stop() {
      await subscription?.close();
      stopping.abort();
      await Promise.all(removing);
    },
  });
}

async function removeDeleted(services: RemovalServices, id: string, stopping: AbortSignal): Promise<void> {
  const { database, folders, mirrors, recordingsDirectory, untilOver } = services;
  // A notification says only what to look at.
  if ((await existingSessions(database, [id])).has(id)) return;
  if (!(await removeWhenOver({ folders, mirrors, untilOver }, id, stopping))) return;
  await rm(join(recordingsDirectory, recordingName(id)), { force: true });
}

/**
 * Removes what a worker has of a session that is gone, once no attempt uses it: one that was cancelled may still be saving its
 * diff.
 * @returns false if the worker stopped before that
 */
export async function removeWhenOver(
  { folders, mirrors, untilOver }: Pick<RemovalServices, "folders" | "mirrors" | "untilOver">,
  id: string,
  stopping: AbortSignal,
): Promise<boolean> {
  if (stopping.aborted) return false;
  const over = new AbortController();
  try {
    await Promise.race([untilOver(id), once(stopping, "abort", { signal: over.signal }).catch(() => undefined)]);
  } finally {
    over.abort();
  }
  if (stopping.aborted) return false;
  if (folders.isKept(id)) await removeSession({ folders, mirrors }, id);
  return true;
}
