import { diskUsage, ownDiskUsage } from "../../sandboxes/process/disk-usage.ts";
import type { Run } from "./run.ts";
import { foldersOf } from "./session-repositories.ts";

/**
 * Checks a session's folders against its disk bounds, and removes them if they are over. To be called when no process of the
 * session runs any longer, and before another worker may claim it. The folders stay on the disk for days, and a process may
 * have written faster than the watch measured, or while the work was exported. If they are removed, the next attempt starts
 * from the last checkpoint or the branch, as on another worker. Never throws.
 */
export async function leaveFolders(run: Run): Promise<void> {
  const { workspaces, logger } = run.dependencies;
  const { sessionId } = run.session;
  try {
    if (!(await workspaces.exists(sessionId))) return;
    if (!(await isOverBounds(run))) return await workspaces.close(sessionId);
    await workspaces.forget(sessionId);
    await workspaces.remove(sessionId);
    const text = "The session's folders were more than a sandbox may have, so this worker did not keep them.";
    await run.emit({ type: "notice", data: { level: "warning", text } });
  } catch (error) {
    // This must not change the session's outcome; folders that stay are removed when they are old (retention).
    logger.warn({ err: error }, "could not see to what a session leaves on the disk");
  }
}

async function isOverBounds(run: Run): Promise<boolean> {
  const { diskBytes, files = Infinity } = run.dependencies.limits;
  const { disk } = foldersOf(run);
  const used = (await ownDiskUsage(disk)) ?? (await diskUsage([disk], null));
  return used !== null && (used.bytes > diskBytes || used.files > files);
}
