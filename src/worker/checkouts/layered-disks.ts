import { join } from "node:path";
import { createService, type Service } from "../../lifecycle/service.ts";
import { unmountOverlays } from "../disk/overlay.ts";
import type { SessionDisks } from "../disk/session-disk.ts";
import { namesIn } from "../disk/session-folders.ts";
import { openWorkspace, type LayerServices } from "./layers.ts";

/** Most time in which a checkout that is gone is made again, in ms. */
const openLimitMs = 30 * 60_000;
/** Prefix of the names of replays' folders: a replay is a separate process, not the server's. */
const replayPrefix = "replay-";

/** Sessions' disks whose workspaces may be overlays. */
export interface LayeredDisks extends SessionDisks {
  /**
   * Unmounts all overlays of sessions when it starts, of a server that was killed, and when it stops. To be started before the worker,
   * and so stopped after it.
   */
  readonly mounts: Service;
}

/**
 * Mounts and unmounts workspaces with the disks that they are on.
 * @param onFailure called if an overlay could not be unmounted: the server's next start tries again
 */
export function createLayeredDisks(
  disks: SessionDisks,
  services: LayerServices,
  onFailure: (error: unknown) => void,
): LayeredDisks {
  const { sessions } = services.checkouts;
  /** Closings under way, by session. */
  const closing = new Map<string, Promise<void>>();

  async function closeDisk(sessionId: string, folder: string): Promise<void> {
    // A folder in use by a process stays mounted until the session's next end, or the server's.
    if (await unmountOverlays(folder, { lazily: false })) await disks.close(sessionId, folder);
  }

  async function unmountAll(): Promise<void> {
    await Promise.all(closing.values());
    for (const name of await namesIn(sessions)) {
      if (name.startsWith(replayPrefix)) continue;
      await unmountOverlays(join(sessions, name), { lazily: false }).catch(onFailure);
    }
  }

  return {
    make: (sessionId, folder) => disks.make(sessionId, folder),
    async open(sessionId, folder) {
      await closing.get(sessionId);
      await disks.open(sessionId, folder);
    },
    openWorkspace: (_sessionId, folder) => openWorkspace(services, folder, AbortSignal.timeout(openLimitMs)),
    // Not awaited: with an overlay the kernel writes out the whole file system that the folders are on, which may take
    // seconds.
    async close(sessionId, folder) {
      await closing.get(sessionId);
      const closed = closeDisk(sessionId, folder)
        .catch(onFailure)
        .finally(() => closing.delete(sessionId));
      closing.set(sessionId, closed);
    },
    isFull: (folder) => disks.isFull(folder),
    async remove(sessionId, folder) {
      await closing.get(sessionId);
      await unmountOverlays(folder, { lazily: true });
      await disks.remove(sessionId, folder);
    },
    mounts: createService({ start: unmountAll, stop: unmountAll }),
  };
}
