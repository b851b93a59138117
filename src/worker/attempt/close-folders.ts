import { diskUsage, ownDiskUsage } from "../../sandboxes/process/disk-usage.ts";
import { removeSession } from "../clones/remove-session.ts";
import type { Attempt, AttemptServices } from "./attempt.ts";

type Services = Pick<AttemptServices, "folders" | "mirrors" | "limits">;

/**
 * Closes a session's folders, or removes them if they are over their disk bounds. To be called when no process of the
 * session runs any longer, and before another worker may claim it. The folders stay on the disk for days, and a process may
 * have written faster than the watch measured, or while the work was exported. If they are removed, the next attempt starts
 * from the last checkpoint or the branch, as on another worker. Never throws.
 */
export async function closeFolders(
  { session: { sessionId }, logger, emit }: Pick<Attempt, "session" | "logger" | "emit">,
  services: Services,
): Promise<void> {
  const { folders } = services;
  try {
    if ((await folders.started(sessionId)) === null) return;
    if (!(await isOverBounds(services, sessionId))) return await folders.close(sessionId);
    await folders.forget(sessionId);
    await removeSession(services, sessionId);
    const text = "The session's folders were more than a sandbox may have, so this worker did not keep them.";
    await emit({ type: "notice", data: { level: "warning", text } });
  } catch (error) {
    // This must not change the session's outcome; folders that stay are removed when they are old (retention).
    logger.warn({ err: error }, "could not check the folders that a session leaves");
  }
}

async function isOverBounds({ folders, limits }: Services, sessionId: string): Promise<boolean> {
  const { diskBytes, files = Infinity } = limits;
  const disk = folders.diskOf(sessionId);
  const used = (await ownDiskUsage(disk)) ?? (await diskUsage([disk], null));
  return used !== null && (used.bytes > diskBytes || used.files > files);
}
