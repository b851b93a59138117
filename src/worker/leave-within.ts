import { dirname } from "node:path";
import { diskUsage } from "../sandboxes/disk-usage.ts";
import type { Run } from "./run.ts";
import { foldersOf } from "./session-repositories.ts";

/**
 * What a session leaves on the disk stays for days, so it is looked at once more when nothing of it runs any longer: what it
 * wrote faster than it was watched, or while its work was taken out, may be more than its bound. Then its folders are removed,
 * and a follow-up begins from its last checkpoint or its branch, as on another worker.
 */
export async function leaveWithinBounds(run: Run): Promise<void> {
  const { workspaces, limits, logger } = run.dependencies;
  const { sessionId } = run.session;
  const { workspace, home } = foldersOf(run);
  try {
    if (!(await workspaces.exists(sessionId))) return;
    const own = await diskUsage([workspace, home], null);
    // Beside them are records and the checkpoints' objects.
    const all = await diskUsage([dirname(workspace)], null);
    if (own === null || all === null) return;
    const files = limits.files ?? Infinity;
    const isOver = own.bytes > limits.diskBytes || own.files > files || all.bytes > 2 * limits.diskBytes;
    if (!isOver) return;
    await workspaces.forget(sessionId);
    await workspaces.remove(sessionId);
    const text = "The session's folders were more than a sandbox may have, so this worker did not keep them.";
    await run.emit({ type: "notice", data: { level: "warning", text } });
  } catch (error) {
    // Its end is not to be lost over it; what is kept too long is removed by its age.
    logger.warn({ err: error }, "could not see that a session left no more than it may");
  }
}
