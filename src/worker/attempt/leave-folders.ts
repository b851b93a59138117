import { diskUsage, ownDiskUsage } from "../../sandboxes/process/disk-usage.ts";
import type { Run } from "./run.ts";
import { foldersOf } from "./session-repositories.ts";

/**
 * To be called when nothing of a session runs any longer, and before it is anybody else's. What it leaves on the disk stays for
 * days, so it is looked at once more: what it wrote faster than it was watched, or while its work was taken out, may be more than
 * its bound. Then its folders are removed, and a follow-up begins from its last checkpoint or its branch, as on another worker.
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
    // Its end is not to be lost over it; what is kept too long is removed by its age.
    logger.warn({ err: error }, "could not see to what a session leaves on the disk");
  }
}

async function isOverBounds(run: Run): Promise<boolean> {
  const { diskBytes, files = Infinity } = run.dependencies.limits;
  const { disk } = foldersOf(run);
  const used = (await ownDiskUsage(disk)) ?? (await diskUsage([disk], null));
  return used !== null && (used.bytes > diskBytes || used.files > files);
}
