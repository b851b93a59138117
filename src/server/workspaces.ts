import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { createOneAtATime } from "../lifecycle/one-at-a-time.ts";
import { createService, joinServices, type Service } from "../lifecycle/service.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Logger } from "../observability.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import { createLayeredDisks } from "../worker/checkouts/layered-disks.ts";
import { removeUnusedCheckouts } from "../worker/checkouts/remove-unused.ts";
import { createSharedCheckouts, keepCheckout, type SharedCheckouts } from "../worker/checkouts/shared-checkouts.ts";
import { createImageDisks, watchedDisks } from "../worker/disk/session-disk.ts";
import { createSessionFolders, type SessionFolders } from "../worker/disk/session-folders.ts";
import type { Mirrors } from "../worker/git/mirrors/mirrors.ts";

/** The folders of sessions, and the bases of their clones. */
export interface Workspaces {
  readonly folders: SessionFolders;
  readonly checkouts: SharedCheckouts;
  /** Whether a session's folders are on a separate disk that is full. */
  readonly ownDiskIsFull: (sessionId: string) => Promise<boolean>;
  /** See `LayeredDisks`: for the server alone, and not for a replay beside it. */
  readonly mounts: Service;
}

const cleanUpFailed =
  "could not keep a new shared checkout, or remove those beyond their limit; it will be tried again";

/** Makes the workspaces of a worker's data folder. */
export function createWorkspaces(
  config: Pick<Config, "data" | "workspaces" | "sessionDisks" | "limits" | "retention">,
  parts: {
    readonly sandbox: Sandbox;
    readonly mirrors: Mirrors;
    readonly metrics: Pick<Metrics, "cloneMade">;
    readonly logger: Logger;
  },
): Workspaces {
  const { data, workspaces: asked, sessionDisks, limits, retention } = config;
  const { sandbox, mirrors, metrics, logger } = parts;
  const count = (way: Parameters<Metrics["cloneMade"]>[0]): void => metrics.cloneMade(way);
  const keeping = new Set<Promise<void>>();
  const onMade = (name: string): void => {
    const kept = Promise.all([keepCheckout(checkouts, name), removing.run()])
      .catch((error: unknown) => logger.warn({ err: error }, cleanUpFailed))
      .then(() => void keeping.delete(kept));
    keeping.add(kept);
  };
  const checkouts = createSharedCheckouts({ dataDirectory: data, asked, sandbox, count, onMade });
  const bounds = { days: 0, maximumBytes: retention.checkoutsBytes };
  const removing = createOneAtATime(() =>
    removeUnusedCheckouts({ checkouts, logger }, bounds, new AbortController().signal),
  );
  const disks = createLayeredDisks(
    sessionDisks === "image" ? createImageDisks(join(data, "disks"), limits) : watchedDisks,
    { checkouts, mirrors: mirrors.directory, bounds: limits, sandbox },
    (error) => logger.warn({ err: error }, "could not unmount a session's workspace; the next start will"),
  );
  const folders = createSessionFolders(data, disks, sandbox);
  const maintenance = createService({
    start: () => Promise.resolve(),
    async stop() {
      await removing.stop();
      await Promise.all(keeping);
    },
  });
  const ownDiskIsFull = (sessionId: string): Promise<boolean> => disks.isFull(folders.diskOf(sessionId));
  return { folders, checkouts, ownDiskIsFull, mounts: joinServices([maintenance, disks.mounts]) };
}
